//! Quantities of a link: rates, delays, sizes of queues, losses, each with its unit.

use std::num::NonZeroU64;
use std::str::FromStr;
use xqos_text::number::{RATES, SIZES, read};
use xqos_text::time;
use xqos_wire::link::shape::Queue;

/// Bits per second; `None` is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub Option<NonZeroU64>);

/// A full packet takes a second and more below; above, this program is the limit.
const BITS_PER_SECOND: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Rate(None));
        }
        let wanted = || format!("'{text}' is no rate: write a number and a unit, such as 100kbit, 1.5mbit or 1gbit");
        let bits = read(text, RATES).map_err(|_| wanted())?;
        match NonZeroU64::new(bits).filter(|bits| BITS_PER_SECOND.contains(&bits.get())) {
            Some(bits) => Ok(Rate(Some(bits))),
            None => Err(format!("{text} is out of range: choose from 1kbit to 100gbit, or unlimited")),
        }
    }
}

/// A time in nanoseconds that may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay(pub u64);

/// More than any line has; packets on their way need memory.
const MAX_DELAY_NS: u64 = 10_000_000_000;

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match time::read_ns(text)? {
            ns @ 0..=MAX_DELAY_NS => Ok(Delay(ns)),
            _ => Err(format!("{text} is too long: a packet is under way for 10s at most")),
        }
    }
}

/// The bound of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound(pub Queue);

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(packets) = text.strip_suffix('p').and_then(|packets| packets.parse().ok()) {
            return Ok(Bound(Queue::Packets(packets)));
        }
        let wanted =
            || format!("'{text}' is no size of a queue: write bytes such as 64k or 1m, or packets such as 50p");
        read(text, SIZES).map(|bytes| Bound(Queue::Bytes(bytes))).map_err(|_| wanted())
    }
}

/// Of a million packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss(pub u32);

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ppm = read(text, &[("%", 10_000)]).ok().filter(|&ppm| ppm <= 1_000_000);
        let ppm = ppm.and_then(|ppm| u32::try_from(ppm).ok());
        ppm.map(Loss).ok_or_else(|| format!("'{text}' is no loss: write a percentage such as 1% or 0.0005%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_per_second() {
        let rate = |text: &str| text.parse::<Rate>().map(|rate| rate.0.map(NonZeroU64::get));
        assert_eq!(rate("10kbit"), Ok(Some(10_000)));
        assert_eq!(rate("1.5mbit"), Ok(Some(1_500_000)));
        assert_eq!(rate("1 gbit"), Ok(Some(1_000_000_000)));
        assert_eq!(rate("9999991bit"), Ok(Some(9_999_991)));
        assert_eq!(rate("unlimited"), Ok(None));
        for (text, words) in [
            ("10", "such as 100kbit"),
            ("10mb", "such as 100kbit"),
            ("10Mbit", "such as 100kbit"),
            ("mbit", "such as 100kbit"),
            ("-1mbit", "such as 100kbit"),
            ("0.5bit", "such as 100kbit"),
            ("0mbit", "out of range"),
            ("1bit", "out of range"),
            ("1000gbit", "out of range"),
        ] {
            assert!(rate(text).is_err_and(|error| error.contains(words)), "{text}");
        }
    }

    #[test]
    fn delays_may_be_nothing_but_have_a_unit() {
        assert_eq!("0ms".parse(), Ok(Delay(0)));
        assert_eq!("0.1ms".parse(), Ok(Delay(100_000)));
        assert_eq!("10s".parse(), Ok(Delay(10_000_000_000)));
        for (text, words) in [
            ("11s", "10s at most"),
            ("1min", "10s at most"),
            ("10", "write 10ms"),
            ("", "such as 3ms"),
            ("ms", "such as 3ms"),
            ("-1ms", "such as 3ms"),
        ] {
            assert!(text.parse::<Delay>().unwrap_err().contains(words), "{text}");
        }
    }

    #[test]
    fn queues_are_bytes_or_packets() {
        assert_eq!("64k".parse(), Ok(Bound(Queue::Bytes(65_536))));
        assert_eq!("1500".parse(), Ok(Bound(Queue::Bytes(1500))));
        assert_eq!("1m".parse(), Ok(Bound(Queue::Bytes(1 << 20))));
        assert_eq!("50p".parse(), Ok(Bound(Queue::Packets(50))));
        for text in ["", "p", "k", "1.5p", "64kbit", "-1"] {
            assert!(text.parse::<Bound>().unwrap_err().contains("such as 64k"), "{text}");
        }
    }

    #[test]
    fn losses_are_percentages() {
        assert_eq!("0.1%".parse(), Ok(Loss(1000)));
        assert_eq!("100%".parse(), Ok(Loss(1_000_000)));
        for text in ["0.1", "101%", "%", "-1%", "0.00001%"] {
            assert!(text.parse::<Loss>().unwrap_err().contains("such as 1%"), "{text}");
        }
    }
}
