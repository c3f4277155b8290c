// SPDX-License-Identifier: MIT
//! Parses the simulated links of `--predict`: `rate=1mbit,delay=50ms`, or the whole grid.

use crate::link::quantity;
use std::str::FromStr;
use xqos_wire::link::shape::Shape;
use xqos_wire::predict::grid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links(pub Vec<Shape>);

impl FromStr for Links {
    type Err = String;

    fn from_str(text: &str) -> Result<Links, String> {
        if text == "grid" {
            return Ok(Links(grid::links().collect()));
        }
        let mut shape = Shape::default();
        let mut seen = Vec::new();
        for part in text.split(',') {
            let wanted = || format!("'{part}' does not describe a link: write rate=1mbit,delay=50ms, or grid");
            let (name, value) = part.split_once('=').ok_or_else(wanted)?;
            if seen.contains(&name) {
                return Err(format!("{name} is given twice: describe one link"));
            }
            seen.push(name);
            match name {
                "rate" => shape.rate = quantity::rate(value)?,
                "delay" => shape.delay_ns = quantity::delay(value)?,
                "queue" => shape.queue = Some(quantity::queue(value)?),
                _ => return Err(wanted()),
            }
        }
        Ok(Links(vec![shape]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;
    use xqos_wire::link::shape::Queue;

    fn one(text: &str) -> Shape {
        text.parse::<Links>().unwrap().0[0]
    }

    #[test]
    fn a_link_has_a_rate_a_delay_and_a_queue() {
        let link = one("rate=1mbit,delay=50ms");
        assert_eq!((link.rate, link.delay_ns), (NonZeroU64::new(1_000_000), 50_000_000));
        assert_eq!(link.queue(), Queue::Bytes(65_536));
        assert_eq!(one("delay=1ms").rate, None);
        assert_eq!(one("queue=5p,rate=10kbit").queue(), Queue::Packets(5));
        assert_eq!("grid".parse::<Links>().unwrap().0.len(), 20);
    }

    #[test]
    fn invalid_links_are_refused_in_one_line() {
        for (text, words) in [
            ("", "rate=1mbit,delay=50ms"),
            ("1mbit", "or grid"),
            ("rate=1mbit,", "or grid"),
            ("rate=1", "such as 100kbit"),
            ("rate=1bit", "out of range"),
            ("rate=999999gbit", "out of range"),
            ("delay=50", "50ms"),
            ("delay=11s", "10s at most"),
            ("rate=1mbit,rate=2mbit", "twice"),
            ("loss=1%", "or grid"),
            ("queue=-1", "such as 64k"),
            ("Grid", "or grid"),
        ] {
            let error = text.parse::<Links>().unwrap_err();
            assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
