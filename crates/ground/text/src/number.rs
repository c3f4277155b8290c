// SPDX-License-Identifier: MIT
//! Parses whole numbers with a unit: `0.5ms`, `1.5mbit`, `64k`.
//!
//! Nothing is rounded: a value that is not a multiple of the smallest unit is refused.

/// Names of units with their factors.
pub type Units = [(&'static str, u64)];

/// Nanoseconds.
pub const TIMES: &Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Bits per second.
pub const RATES: &Units = &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];

/// Bytes.
pub const SIZES: &Units = &[("", 1), ("b", 1), ("k", 1 << 10), ("m", 1 << 20)];

/// Reason why a text is not a number with one of the units.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    Nothing,
    NoNumber(String),
    NoUnit,
    UnknownUnit(String),
    TooFine,
    TooLarge,
}

/// Parses a decimal number with one of the units. The result is in the smallest unit.
pub fn read(text: &str, units: &Units) -> Result<u64, NumberError> {
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| letter.is_alphabetic() || letter == '%').trim_end();
    let unit = text[number.len()..].trim_start();
    if number.is_empty() {
        return Err(NumberError::Nothing);
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(if unit.is_empty() { NumberError::NoUnit } else { NumberError::UnknownUnit(unit.to_owned()) });
    };
    let (mantissa, divisor) = scaled(number).ok_or_else(|| NumberError::NoNumber(number.to_owned()))?;
    let value = mantissa.checked_mul(u128::from(*factor)).ok_or(NumberError::TooLarge)?;
    if value % divisor != 0 {
        return Err(NumberError::TooFine);
    }
    u64::try_from(value / divisor).map_err(|_| NumberError::TooLarge)
}

/// A decimal number as an integer and the power of ten to divide it by: "0.5" is (5, 10).
fn scaled(number: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // No quantity needs more digits than this, and so few digits cannot overflow a `u128`.
    let fraction = fraction.trim_end_matches('0');
    if whole.len() > 15 || fraction.len() > 12 {
        return None;
    }
    let mantissa: u128 = format!("0{whole}{fraction}").parse().ok()?;
    Some((mantissa, 10u128.pow(fraction.len() as u32)))
}

/// `value` / 10^`places`, without trailing zeros.
pub fn decimal(value: u64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    match fraction.trim_end_matches('0') {
        "" => (value / unit).to_string(),
        fraction => format!("{}.{fraction}", value / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_read_without_rounding() {
        for (text, ns) in [("7ns", 7), ("0.5us", 500), ("3 ms", 3_000_000), ("1.5min", 90_000_000_000), ("0h", 0)] {
            assert_eq!(read(text, TIMES), Ok(ns), "{text}");
        }
        assert_eq!(
            (read("1.5mbit", RATES), read("64k", SIZES), read("1500", SIZES)),
            (Ok(1_500_000), Ok(65_536), Ok(1500))
        );
        assert_eq!(read("0.1%", &[("%", 10_000)]), Ok(1000));
    }

    #[test]
    fn errors_say_why_a_text_is_no_number() {
        for (text, why) in [
            ("", NumberError::Nothing),
            ("ms", NumberError::Nothing),
            ("3", NumberError::NoUnit),
            ("3days", NumberError::UnknownUnit("days".to_owned())),
            ("-3ms", NumberError::NoNumber("-3".to_owned())),
            ("1e3ms", NumberError::NoNumber("1e3".to_owned())),
            ("0.5ns", NumberError::TooFine),
            ("999999999999999h", NumberError::TooLarge),
        ] {
            assert_eq!(read(text, TIMES), Err(why), "{text}");
        }
    }

    #[test]
    fn decimals_have_no_trailing_zeros() {
        assert_eq!((decimal(1500, 3), decimal(2000, 3), decimal(5, 2)), ("1.5".into(), "2".into(), "0.05".into()));
    }
}
