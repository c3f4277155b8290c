// SPDX-License-Identifier: MIT
//! Quantities of the command line: times, reservations, weights, shares and X identifiers.
//!
//! Each quantity is parsed only here, into the integers that the extension uses. An error says what to write instead,
//! and the program exits with status 2. Nothing is rounded: a value that cannot be represented is refused.

use crate::number::{self, NumberError, decimal};
use crate::time;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A time in microseconds, greater than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u32);

impl Micros {
    /// The time as typed on the command line: `3ms`.
    pub fn typed(self) -> String {
        format!("{}ms", self.ms())
    }

    pub fn ns(self) -> u64 {
        u64::from(self.0) * 1000
    }

    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0.into())
    }

    /// The number of milliseconds without a unit: `0.5`.
    pub fn ms(self) -> String {
        decimal(u64::from(self.0), 3)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ms", self.ms())
    }
}

impl FromStr for Micros {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let ns = time::read_ns(text)?;
        if ns % 1000 != 0 {
            return Err(format!("{text} is finer than a microsecond, the smallest unit of xqos"));
        }
        match u32::try_from(ns / 1000) {
            Ok(0) => Err(format!("{text} is too short: a time must be above 0")),
            Ok(us) => Ok(Micros(us)),
            Err(_) => Err(format!("{text} is too long: the maximum is 4294s")),
        }
    }
}

/// Parses a time from `least` to `most`, which are written as on the command line.
pub fn within(text: &str, least: &str, most: &str) -> Result<Micros, String> {
    let [time, first, last] = [text, least, most].map(str::parse::<Micros>);
    let time = time?;
    match (first?..=last?).contains(&time) {
        true => Ok(time),
        false => Err(format!("{text} is out of range: choose from {least} to {most}")),
    }
}

/// Parses a slice or a timer interval.
pub fn slice(text: &str) -> Result<Micros, String> {
    within(text, "0.1ms", "1s")
}

/// A reservation: a budget of server time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub budget: Micros,
    pub period: Micros,
}

impl Reservation {
    /// The reservation as typed on the command line: `3ms/10ms`.
    pub fn typed(self) -> String {
        format!("{}/{}", self.budget.typed(), self.period.typed())
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} / {}", self.budget, self.period)
    }
}

impl FromStr for Reservation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (budget, period) = text
            .split_once('/')
            .ok_or_else(|| format!("'{text}' is not a reservation: write budget/period such as 3ms/10ms"))?;
        let budget: Micros = budget.parse().map_err(|error| format!("the budget: {error}"))?;
        let period: Micros = period.parse().map_err(|error| format!("the period: {error}"))?;
        if budget > period {
            return Err(format!(
                "the budget of {budget} is longer than the period of {period}: write budget/period such as 3ms/10ms"
            ));
        }
        Ok(Reservation { budget, period })
    }
}

/// Parses a limit from 1ms to 1s, or `off`, which is 0.
pub fn limit(text: &str) -> Result<Micros, String> {
    match text {
        "off" => Ok(Micros(0)),
        _ => within(text, "1ms", "1s").map_err(|error| format!("{error}; or write the word 'off'")),
    }
}

/// Longest slice of a client in microseconds; 0 stands for the policy's own slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice(pub u32);

impl fmt::Display for Slice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { out.write_str("none") } else { Micros(self.0).fmt(out) }
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Slice(0)),
            _ => slice(text).map(|time| Slice(time.0)).map_err(|error| format!("{error}; or write the word none")),
        }
    }
}

/// Weight in hundredths, 1 to 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(pub u32);

impl fmt::Display for Weight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&decimal(u64::from(self.0), 2))
    }
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match number::read(text, &[("", 100)]) {
            Ok(weight @ 1..=10_000) => Ok(Weight(weight as u32)),
            Err(NumberError::TooFine) => Err(format!("{text} is finer than 0.01, the step of weights")),
            _ => Err(format!("'{text}' is not a weight: write a number from 0.01 to 100, such as 2 or 0.5")),
        }
    }
}

/// Maximum share of the server's time that may be reserved, in millionths. The extension accepts at most 950000, so
/// that other clients always get some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u32);

impl Share {
    /// Parses a share in this range of millionths, or `off`, which is 0.
    pub fn or_off(text: &str, range: RangeInclusive<u32>) -> Option<Share> {
        match text {
            "off" => Some(Share(0)),
            _ => text.parse().ok().filter(|share: &Share| range.contains(&share.0)),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&decimal(u64::from(self.0), 6))
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match number::read(text, &[("", 1_000_000)]) {
            Ok(share @ 1..=950_000) => Ok(Share(share as u32)),
            Err(NumberError::TooFine) => Err(format!("{text} is finer than a millionth")),
            _ => Err(format!("'{text}' is not a share: write a number above 0 and at most 0.95, such as 0.9")),
        }
    }
}

/// The time after which a long request lets other clients in, if cutting is on without a time.
pub const CUT_ON: Micros = Micros(250);

/// Parses a blocking time; 0 means the observed blocking time.
pub fn blocking(text: &str) -> Result<Micros, String> {
    match text {
        "observed" => Ok(Micros(0)),
        text => text.parse().map_err(|error| format!("{error}; or write the word 'observed'")),
    }
}

/// Parses the time after which a long request lets other clients in: `on`, `off` (0), or 0.05ms to 100ms.
pub fn cut(text: &str) -> Result<Micros, String> {
    match text {
        "on" => Ok(CUT_ON),
        "off" => Ok(Micros(0)),
        _ => within(text, "0.05ms", "100ms").map_err(|error| format!("{error}; or write on or off")),
    }
}

/// Identifier of a window or another resource: `0x1c00007`, or decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XId(pub u32);

impl FromStr for XId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let id = match digits {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        match id {
            Ok(id) if id != 0 => Ok(XId(id)),
            _ => Err(format!("'{text}' is not an X identifier: copy it from xwininfo, such as 0x1c00007")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> Result<u32, String> {
        text.parse::<Micros>().map(|micros| micros.0)
    }

    #[test]
    fn times_are_read_in_every_unit_without_rounding() {
        for (text, us) in [
            ("3ms", 3000),
            ("0.5ms", 500),
            ("500us", 500),
            ("500µs", 500),
            ("1s", 1_000_000),
            ("1.000001s", 1_000_001),
            (".25ms", 250),
            ("3 ms", 3000),
            ("4294s", 4_294_000_000),
            ("10min", 600_000_000),
            ("1h", 3_600_000_000),
            ("007ms", 7000),
            ("1.50000000000000000ms", 1500),
        ] {
            assert_eq!(micros(text), Ok(us), "{text}");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_a_correction() {
        for (text, words) in [
            ("3", "write 3ms"),
            ("3days", "use us, ms, s, min or h"),
            ("", "such as 3ms"),
            ("ms", "such as 3ms"),
            ("-3ms", "is not a number"),
            ("1e3ms", "is not a number"),
            ("1.2.3ms", "is not a number"),
            (".ms", "is not a number"),
            ("0ms", "above 0"),
            ("0.0001ms", "finer than a microsecond"),
            ("0.5us", "finer than a microsecond"),
            ("5000s", "too long"),
            ("99999999999999999999999999999999999999999s", "is not a number"),
            ("infs", "such as 3ms"),
            ("∞ms", "is not a number"),
        ] {
            let error = micros(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn long_requests_are_cut_after_a_time_or_not_at_all() {
        assert_eq!((cut("on"), cut("off")), (Ok(CUT_ON), Ok(Micros(0))));
        assert_eq!((cut("0.05ms"), cut("100ms")), (Ok(Micros(50)), Ok(Micros(100_000))));
        for text in ["49us", "101ms", "1s"] {
            assert!(cut(text).unwrap_err().contains("choose from 0.05ms to 100ms"), "{text}");
        }
        for text in ["", "0", "yes", "250"] {
            assert!(cut(text).unwrap_err().ends_with("or write on or off"), "{text}");
        }
    }

    #[test]
    fn timer_slices_outside_of_the_servers_range_are_refused() {
        assert_eq!(slice("2ms"), Ok(Micros(2000)));
        assert_eq!((slice("0.1ms").is_ok(), slice("1s").is_ok()), (true, true));
        for text in ["99us", "1001ms", "2s"] {
            assert!(slice(text).unwrap_err().contains("from 0.1ms to 1s"), "{text}");
        }
    }

    #[test]
    fn a_reservation_is_budget_over_period() {
        let reservation: Reservation = "3ms/10ms".parse().unwrap();
        assert_eq!(reservation, Reservation { budget: Micros(3000), period: Micros(10_000) });
        assert_eq!(reservation.to_string(), "3 ms / 10 ms");
        assert_eq!(reservation.typed(), "3ms/10ms");
        assert_eq!("500us / 0.01s".parse::<Reservation>().unwrap().typed(), "0.5ms/10ms");
        assert_eq!("10ms/10ms".parse::<Reservation>().unwrap().typed(), "10ms/10ms", "all may be requested");
        for (text, words) in [
            ("10ms/3ms", "longer than the period"),
            ("3ms", "budget/period"),
            ("0ms/10ms", "the budget: 0ms is too short"),
            ("3ms/0ms", "the period: 0ms"),
            ("3/10ms", "the budget: '3' has no unit"),
            ("3ms/10ms/5ms", "the period"),
            ("/", "the budget"),
        ] {
            let error = text.parse::<Reservation>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn client_slices_outside_of_the_servers_range_are_refused() {
        for (text, us) in [("2ms", 2000), ("100us", 100), ("1s", 1_000_000), ("none", 0)] {
            assert_eq!(text.parse(), Ok(Slice(us)));
            assert_eq!(Slice(us).to_string().parse(), Ok(Slice(us)));
        }
        for text in ["99us", "1001ms", "0", "two"] {
            assert!(text.parse::<Slice>().is_err(), "{text}");
        }
    }

    #[test]
    fn weights_and_shares_are_not_rounded() {
        assert_eq!("2".parse(), Ok(Weight(200)));
        assert_eq!("0.5".parse(), Ok(Weight(50)));
        assert_eq!("100".parse(), Ok(Weight(10_000)));
        assert_eq!((Weight(50).to_string(), Weight(300).to_string()), ("0.5".to_owned(), "3".to_owned()));
        for text in ["0", "101", "-1", "x", "0.001", "1e2", ""] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
        assert_eq!("0.9".parse(), Ok(Share(900_000)));
        assert_eq!(Share(900_000).to_string(), "0.9");
        for text in ["0", "1", "0.951", "90%", "", "nan"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn identifiers_are_hexadecimal_or_decimal() {
        assert_eq!("0x1c00007".parse(), Ok(XId(0x1c0_0007)));
        assert_eq!("4194304".parse(), Ok(XId(0x40_0000)));
        for text in ["0", "0x", "1c00007", "-1", "0x100000000"] {
            assert!(text.parse::<XId>().is_err(), "{text}");
        }
    }
}
