// SPDX-License-Identifier: MIT
//! The values of settings as text, on the command line and in rule files.
//!
//! `xqos_core::setting` declares the ranges, units, words and errors. Nothing is rounded.

use std::fmt;
use std::str::FromStr;
use xqos_core::setting::{CAP, PRIORITY, SLICE, WEIGHT};
use xqos_core::{Range, Unit};
use xqos_text::number::{self, NumberError, Units, decimal};
use xqos_text::quantity::{Micros, within};

/// Parses a value: a word, or a number in the setting's unit. The error says what to write instead.
pub fn read(text: &str, of: &Range) -> Result<u32, String> {
    if let Some(value) = of.value_of(text) {
        return Ok(value);
    }
    if of.unit == Unit::Micros {
        let time = within(text, of.typed()).map(|time| time.0);
        return time.map_err(|error| match of.wanted {
            "" => error,
            words => format!("{error}; or write {words}"),
        });
    }
    let value = number::read(text, format_of(of.unit).0).map(|value| u32::try_from(value).ok());
    match value.map(|value| value.filter(|value| of.typed().contains(value))) {
        Ok(Some(value)) => Ok(value),
        Err(NumberError::TooFine) if !of.finer.is_empty() => Err(format!("{text} is finer than {}", of.finer)),
        _ => Err(format!("'{text}' is not {}", of.wanted)),
    }
}

/// Returns [`read`] for this range, as a value parser of the command line.
pub fn reader(of: &'static Range) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| read(text, of)
}

/// A value as typed on the command line: a word, `3ms` or `0.9`.
pub fn typed(value: u32, of: &Range) -> String {
    let (units, places) = format_of(of.unit);
    match of.word_for(value) {
        Some(word) => word.to_owned(),
        None if of.unit == Unit::Micros => Micros(value).typed(),
        None => decimal(value.into(), places) + units[0].0,
    }
}

/// The unit of a number with its factor, and the number of decimal places.
fn format_of(unit: Unit) -> (&'static Units, u32) {
    match unit {
        Unit::Hundredths => (&[("", 100)], 2),
        Unit::Millionths => (&[("", 1_000_000)], 6),
        Unit::Percent => (&[("%", 10_000)], 4),
        Unit::Micros | Unit::Whole => (&[("", 1)], 0),
    }
}

macro_rules! values {
    ($($(#[$meta:meta])* $name:ident $range:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                read(text, &$range).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                match ($range.unit, $range.word_for(self.0)) {
                    (Unit::Micros, None) => Micros(self.0).fmt(out),
                    _ => out.write_str(&typed(self.0, &$range)),
                }
            }
        }
    )*};
}

values! {
    /// Weight in hundredths.
    Weight WEIGHT;
    /// Maximum share of a group, in millionths; 100 % means no cap.
    Cap CAP;
    /// Longest slice of a client in microseconds; 0 stands for the policy's own slice.
    Slice SLICE;
}

/// A priority for policy `fixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(pub i32);

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let priority = text.parse().ok().filter(|&priority| PRIORITY.contains(priority)).map(Priority);
        priority.ok_or_else(|| format!("'{text}' is not {}", PRIORITY.wanted))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::setting::{CUT, MAX_UTILIZATION, POLICY_SLICE};

    #[test]
    fn the_cut_length_is_a_time_or_on_or_off() {
        assert_eq!((read("on", &CUT), read("off", &CUT)), (Ok(250), Ok(0)));
        assert_eq!((read("0.05ms", &CUT), read("100ms", &CUT)), (Ok(50), Ok(100_000)));
        for text in ["49us", "101ms", "1s"] {
            assert!(read(text, &CUT).unwrap_err().contains("choose from 0.05ms to 100ms"), "{text}");
        }
        for text in ["", "0", "yes", "250"] {
            assert!(read(text, &CUT).unwrap_err().ends_with("or write on or off"), "{text}");
        }
    }

    #[test]
    fn timer_slices_outside_of_the_servers_range_are_refused() {
        assert_eq!(read("2ms", &POLICY_SLICE), Ok(2000));
        assert_eq!((read("0.1ms", &POLICY_SLICE).is_ok(), read("1s", &POLICY_SLICE).is_ok()), (true, true));
        for text in ["99us", "1001ms", "2s"] {
            assert!(read(text, &POLICY_SLICE).unwrap_err().contains("from 0.1ms to 1s"), "{text}");
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
        assert_eq!(read("0.9", &MAX_UTILIZATION), Ok(900_000));
        assert_eq!(typed(900_000, &MAX_UTILIZATION), "0.9");
        for text in ["0", "1", "0.951", "90%", "", "nan"] {
            assert!(read(text, &MAX_UTILIZATION).is_err(), "{text}");
        }
    }
}
