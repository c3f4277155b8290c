// SPDX-License-Identifier: MIT
//! Parses the quantities of a link: rate, delay, queue size and loss, each with its unit.

use std::num::NonZeroU64;
use xqos_text::number::{RATES, SIZES, read};
use xqos_text::time;
use xqos_wire::link::shape::Queue;

/// Bits per second; `None` means unlimited.
pub type Rate = Option<NonZeroU64>;

/// Valid rates. At lower rates a full packet takes many seconds; at higher rates this program is the bottleneck.
const BITS_PER_SECOND: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

pub fn rate(text: &str) -> Result<Rate, String> {
    if text == "unlimited" {
        return Ok(None);
    }
    let wanted = || format!("'{text}' is not a rate: write a number and a unit, such as 100kbit, 1.5mbit or 1gbit");
    let bits = NonZeroU64::new(read(text, RATES).map_err(|_| wanted())?);
    match bits.filter(|bits| BITS_PER_SECOND.contains(&bits.get())) {
        Some(bits) => Ok(Some(bits)),
        None => Err(format!("{text} is out of range: choose from 1kbit to 100gbit, or unlimited")),
    }
}

/// Maximum delay. Packets in flight occupy memory, and no real line has a longer delay.
const MAX_DELAY_NS: u64 = 10_000_000_000;

/// Parses a time, which may be 0, and returns nanoseconds.
pub fn delay(text: &str) -> Result<u64, String> {
    match time::read_ns(text)? {
        ns @ 0..=MAX_DELAY_NS => Ok(ns),
        _ => Err(format!("{text} is too long: the delay is 10s at most")),
    }
}

pub fn queue(text: &str) -> Result<Queue, String> {
    if let Some(packets) = text.strip_suffix('p').and_then(|packets| packets.parse().ok()) {
        return Ok(Queue::Packets(packets));
    }
    let wanted = || format!("'{text}' is not a queue size: write bytes such as 64k or 1m, or packets such as 50p");
    read(text, SIZES).map(Queue::Bytes).map_err(|_| wanted())
}

/// Parses a loss percentage, and returns parts per million.
pub fn loss(text: &str) -> Result<u32, String> {
    let ppm = read(text, &[("%", 10_000)]).ok().filter(|&ppm| ppm <= 1_000_000);
    let ppm = ppm.and_then(|ppm| u32::try_from(ppm).ok());
    ppm.ok_or_else(|| format!("'{text}' is not a loss: write a percentage such as 1% or 0.0005%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_per_second() {
        let rate = |text: &str| rate(text).map(|rate| rate.map(NonZeroU64::get));
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
    fn delays_may_be_zero_but_need_a_unit() {
        assert_eq!(delay("0ms"), Ok(0));
        assert_eq!(delay("0.1ms"), Ok(100_000));
        assert_eq!(delay("10s"), Ok(10_000_000_000));
        for (text, words) in [
            ("11s", "10s at most"),
            ("1min", "10s at most"),
            ("10", "write 10ms"),
            ("", "such as 3ms"),
            ("ms", "such as 3ms"),
            ("-1ms", "such as 3ms"),
        ] {
            assert!(delay(text).unwrap_err().contains(words), "{text}");
        }
    }

    #[test]
    fn queues_are_bytes_or_packets() {
        assert_eq!(queue("64k"), Ok(Queue::Bytes(65_536)));
        assert_eq!(queue("1500"), Ok(Queue::Bytes(1500)));
        assert_eq!(queue("1m"), Ok(Queue::Bytes(1 << 20)));
        assert_eq!(queue("50p"), Ok(Queue::Packets(50)));
        for text in ["", "p", "k", "1.5p", "64kbit", "-1"] {
            assert!(queue(text).unwrap_err().contains("such as 64k"), "{text}");
        }
    }

    #[test]
    fn losses_are_percentages() {
        assert_eq!(loss("0.1%"), Ok(1000));
        assert_eq!(loss("100%"), Ok(1_000_000));
        for text in ["0.1", "101%", "%", "-1%", "0.00001%"] {
            assert!(loss(text).unwrap_err().contains("such as 1%"), "{text}");
        }
    }
}
