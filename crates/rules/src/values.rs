// SPDX-License-Identifier: MIT
//! The values of settings as text, on the command line and in rule files.
//!
//! `xqos_core::setting` declares the ranges. An error says what to write instead. Nothing is rounded.

use std::fmt;
use std::str::FromStr;
use xqos_core::Range;
use xqos_core::setting::{
    BLOCKING, CAP, CUT, DESKTOP, MAX_UTILIZATION, PACING, POLICY_SLICE, PRIORITY, SLICE, USER_LIMIT, WEIGHT,
};
use xqos_text::number::{self, NumberError, Units, decimal};
use xqos_text::quantity::{Micros, Share, within, within_or};

/// Parses a number with one of the units, in a setting's range. The error says that the text is finer than `step`, or
/// what is `wanted`.
fn number(text: &str, units: &Units, range: &Range, step: &str, wanted: &str) -> Result<u32, String> {
    let value = number::read(text, units).map(|value| u32::try_from(value).ok());
    match value.map(|value| value.filter(|value| range.typed().contains(value))) {
        Ok(Some(value)) => Ok(value),
        Err(NumberError::TooFine) => Err(format!("{text} is finer than {step}")),
        _ => Err(format!("'{text}' is not {wanted}")),
    }
}

/// Weight in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(pub u32);

impl fmt::Display for Weight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&decimal(self.0.into(), 2))
    }
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [least, most] = [WEIGHT.typed, WEIGHT.most].map(Weight);
        let wanted = format!("a weight: write a number from {least} to {most}, such as 2 or 0.5");
        number(text, &[("", 100)], &WEIGHT, "0.01, the step of weights", &wanted).map(Weight)
    }
}

/// Maximum share of a group, in millionths; 100 % means no cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u32);

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [least, most] = [CAP.typed, CAP.most].map(|ppm| decimal(ppm.into(), 4));
        let wanted = format!("a share: write a percentage from {least} to {most}, such as \"20%\"");
        // One percent is 10,000 millionths.
        number(text, &[("%", 10_000)], &CAP, "0.0001%, the step of shares", &wanted).map(Cap)
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", decimal(self.0.into(), 4))
    }
}

/// A priority for policy `fixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(pub i32);

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let priority = text.parse().ok().filter(|&priority| PRIORITY.contains(priority)).map(Priority);
        let (least, most) = (PRIORITY.least, PRIORITY.most);
        priority.ok_or_else(|| format!("'{text}' is not a priority: write a whole number from {least} to {most}"))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
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
        within_or(text, SLICE.typed(), SLICE.words, "the word none").map(|time| Slice(time.0))
    }
}

/// Parses a slice or a timer interval of a policy.
pub fn slice(text: &str) -> Result<Micros, String> {
    within(text, POLICY_SLICE.typed())
}

/// Parses a limit of expose pacing, or `off`, which is 0.
pub fn limit(text: &str) -> Result<Micros, String> {
    within_or(text, PACING.typed(), PACING.words, "the word 'off'")
}

/// Parses a blocking time; 0 means the observed blocking time.
pub fn blocking(text: &str) -> Result<Micros, String> {
    within_or(text, BLOCKING.typed(), BLOCKING.words, "the word 'observed'")
}

/// Parses the time after which a long request lets other clients in: `on`, `off` (0), or a time.
pub fn cut(text: &str) -> Result<Micros, String> {
    within_or(text, CUT.typed(), CUT.words, "on or off")
}

/// Parses the maximum sum of all reservations.
pub fn max_utilization(text: &str) -> Result<Share, String> {
    let most = Share(MAX_UTILIZATION.most);
    let wanted = format!("a share: write a number above 0 and at most {most}, such as 0.9");
    number(text, &[("", 1_000_000)], &MAX_UTILIZATION, "a millionth", &wanted).map(Share)
}

/// Parses the maximum sum of one user's reservations, or `off`, which is 0.
pub fn user_limit(text: &str) -> Result<Share, String> {
    share(text, &USER_LIMIT, "a limit: write off, or", "0.3")
}

/// Parses the maximum share of compositors and window managers: `on`, `off` (0), or a share.
pub fn desktop(text: &str) -> Result<Share, String> {
    share(text, &DESKTOP, "a setting: write on, off, or", "0.5")
}

fn share(text: &str, range: &Range, wanted: &str, example: &str) -> Result<Share, String> {
    let ppm = range.value_of(text).or_else(|| number(text, &[("", 1_000_000)], range, "", "").ok());
    let [least, most] = [range.typed, range.most].map(Share);
    ppm.map(Share).ok_or_else(|| format!("'{text}' is not {wanted} a number from {least} to {most}, such as {example}"))
}

/// A time as typed on the command line: a word, or `3ms`.
pub fn typed_time(us: u32, range: &Range) -> String {
    range.word_for(us).map_or_else(|| Micros(us).typed(), str::to_owned)
}

/// A share as typed on the command line: a word, or `0.9`.
pub fn typed_share(ppm: u32, range: &Range) -> String {
    range.word_for(ppm).map_or_else(|| Share(ppm).to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_requests_are_cut_after_a_time_or_not_at_all() {
        assert_eq!((cut("on"), cut("off")), (Ok(Micros(250)), Ok(Micros(0))));
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
        assert_eq!(max_utilization("0.9"), Ok(Share(900_000)));
        assert_eq!(Share(900_000).to_string(), "0.9");
        for text in ["0", "1", "0.951", "90%", "", "nan"] {
            assert!(max_utilization(text).is_err(), "{text}");
        }
    }
}
