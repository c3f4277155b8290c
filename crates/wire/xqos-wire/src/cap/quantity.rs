// SPDX-License-Identifier: MIT
//! Parses the option values of `xqos cap`: times and ports.

use std::ops::RangeInclusive;
use std::time::Duration;

pub fn time(text: &str) -> Result<Duration, String> {
    match xqos_text::time::read_ns(text)? {
        0 => Err(format!("{text} is too short: give a time above 0")),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

pub fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(first..=last),
        _ => Err(format!("'{text}' is not a port: write one such as 6010, or a range such as 6000-6063")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text: &str| time(text).map(|time| time.as_millis());
        assert_eq!((ms("500ms"), ms("1.5s"), ms("2min"), ms("1h")), (Ok(500), Ok(1500), Ok(120_000), Ok(3_600_000)));
        for (text, words) in [
            ("", "such as 3ms"),
            ("5", "write 5ms"),
            ("s", "such as 3ms"),
            ("-1s", "such as 3ms"),
            ("0s", "above 0"),
            ("1day", "use us, ms, s, min or h"),
            ("99999999999999999999h", "such as 3ms"),
        ] {
            assert!(ms(text).is_err_and(|error| error.contains(words)), "{text}");
        }
    }

    #[test]
    fn ports_are_one_or_a_range() {
        assert_eq!(ports("6010"), Ok(6010..=6010));
        assert_eq!(ports("6000-6063"), Ok(6000..=6063));
        for text in ["", "0", "x", "6063-6000", "6000-", "65536"] {
            assert!(ports(text).is_err_and(|error| error.contains("such as 6010")), "{text}");
        }
    }
}
