// SPDX-License-Identifier: MIT
//! Quantities of the command line: times, reservations, shares and X identifiers.
//!
//! Each quantity is parsed only here, into the integers that the extension uses. An error says what to write instead,
//! and the program exits with status 2. Nothing is rounded: a value that cannot be represented is refused.

use crate::number::decimal;
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

/// Parses a time in this range of microseconds.
pub fn within(text: &str, range: RangeInclusive<u32>) -> Result<Micros, String> {
    let time: Micros = text.parse()?;
    if range.contains(&time.0) {
        return Ok(time);
    }
    let [least, most] = [*range.start(), *range.end()].map(|us| match us % 1_000_000 {
        0 => format!("{}s", us / 1_000_000),
        _ => Micros(us).typed(),
    });
    Err(format!("{text} is out of range: choose from {least} to {most}"))
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

/// A share of the server's time, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u32);

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&decimal(u64::from(self.0), 6))
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
    fn a_reservation_is_budget_over_period() {
        let reservation: Reservation = "3ms/10ms".parse().unwrap();
        assert_eq!(reservation, Reservation { budget: Micros(3000), period: Micros(10_000) });
        assert_eq!(reservation.to_string(), "3 ms / 10 ms");
        assert_eq!(reservation.typed(), "3ms/10ms");
        assert_eq!("500us / 0.01s".parse::<Reservation>().unwrap().typed(), "0.5ms/10ms");
        assert_eq!("10ms/10ms".parse::<Reservation>().unwrap().typed(), "10ms/10ms", "the budget may be the period");
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
    fn identifiers_are_hexadecimal_or_decimal() {
        assert_eq!("0x1c00007".parse(), Ok(XId(0x1c0_0007)));
        assert_eq!("4194304".parse(), Ok(XId(0x40_0000)));
        for text in ["0", "0x", "1c00007", "-1", "0x100000000"] {
            assert!(text.parse::<XId>().is_err(), "{text}");
        }
    }
}
