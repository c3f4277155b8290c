// SPDX-License-Identifier: MIT
//! Parsing and printing of times.

use crate::number::{self, NumberError, TIMES};
use chrono::{DateTime, Local};

/// Parses a time into nanoseconds. The error is a sentence that says what to write instead.
pub fn read_ns(text: &str) -> Result<u64, String> {
    let advice = "write a time such as 3ms, 0.5ms, 500us, 1s, 10min or 2h";
    let text = text.trim();
    number::read(text, TIMES).map_err(|error| match error {
        NumberError::NoUnit => format!("'{text}' has no unit: write {text}ms, {text}us or {text}s"),
        NumberError::UnknownUnit(unit) => format!("'{unit}' is not a unit of time: use us, ms, s, min or h"),
        NumberError::NoNumber(number) => format!("'{number}' is not a number: {advice}"),
        NumberError::TooFine => format!("{text} is finer than a nanosecond"),
        NumberError::TooLarge => format!("{text} is too long"),
        NumberError::Nothing => format!("'{text}' is not a time: {advice}"),
    })
}

/// A time with three digits in a suitable unit: `12.3 ms`.
pub fn of_ns(ns: u64) -> String {
    of_ms(ns as f64 / 1e6)
}

/// Like [`of_ns`], for milliseconds. The unit is chosen after rounding, so 999.6 us becomes 1.00 ms.
pub fn of_ms(ms: f64) -> String {
    let ns = ms * 1e6;
    match ns.abs() {
        0.0 => "0".to_owned(),
        below if below < 999.5 => format!("{ns:.0} ns"),
        below if below < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        below if below < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// An age in at most seven columns: `5 min`.
pub fn ago_of_ms(ms: f64) -> String {
    match (ms / 1e3) as u64 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A point in time in UTC, in a format of chrono such as `%F`.
pub fn utc(unix_ns: i64, format: &str) -> String {
    DateTime::from_timestamp_nanos(unix_ns).format(format).to_string()
}

/// Like [`utc`], in the local time zone.
pub fn local(unix_ns: i64, format: &str) -> String {
    DateTime::from_timestamp_nanos(unix_ns).with_timezone(&Local).format(format).to_string()
}

fn digits(number: f64) -> String {
    match number.abs() {
        below if below < 9.995 => format!("{number:.2}"),
        below if below < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_suitable_unit() {
        let shown = [0.0, 64e-5, 0.000_999_6, 0.012_34, 0.254, 1.0, -0.25, 12.34, 345.6, 12_340.0, 123_456.0, 4e6];
        let expected = [
            "0", "640 ns", "1.00 us", "12.3 us", "254 us", "1.00 ms", "-250 us", "12.3 ms", "346 ms", "12.3 s",
            "123 s", "4000 s",
        ];
        assert_eq!(shown.map(of_ms), expected);
        assert_eq!(of_ns(12_340), "12.3 us");
    }

    #[test]
    fn longer_ages_use_larger_units() {
        let told = [0.0, 119_999.0, 120_000.0, 7.2e6, 1.8e8, 1e12].map(ago_of_ms);
        assert_eq!(told, ["0 s", "119 s", "2 min", "2 h", "2 d", "11574 d"]);
    }

    #[test]
    fn invalid_values_are_refused_with_a_correction() {
        for (text, words) in [
            ("3", "write 3ms"),
            ("3days", "use us, ms, s, min or h"),
            ("", "such as 3ms"),
            ("-3ms", "such as 3ms"),
            ("0.5ns", "finer than a nanosecond"),
            ("999999999999999h", "too long"),
        ] {
            let error = read_ns(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        let date = |unix_seconds: i64| utc(unix_seconds * 1_000_000_000, "%F");
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
        assert_eq!(date(1_767_225_600), "2026-01-01");
    }
}
