// SPDX-License-Identifier: MIT
//! The log of a link: the fate of each packet, and when the link was busy. It is the reference for states that are
//! inferred from a capture.
//!
//! The log is text: one entry per line, with fields separated by a space. Times are nanoseconds since 1970, or `-`:
//!
//! ```text
//! # xqos link 1
//! packet requests 1 60 1700000000000000000 1700000000000000000 1700000000000048000 1700000000010048000 delivered
//! packet replies 1 1500 1700000000020000000 - - - dropped
//! busy requests 1700000000000000000 1700000000000048000
//! ```
//!
//! - `packet`: direction, number in its direction, bytes, arrival, start and end of transmission, delivery, and fate,
//!   which is `delivered`, `lost` on the link, `dropped` at a full queue, or `unfinished` when the link ended. A packet
//!   is written when its fate is known, so lines are not strictly in order of arrival.
//! - `busy`: the link was sending without a pause from the first time to the second. At other times it was idle.
//!
//! Other lines that start with `#` are comments. An incomplete last line is ignored.

mod reader;
mod writer;

pub use reader::{BadLog, Reader};
pub use writer::LinkTotals;
pub(super) use writer::Writer;

use crate::observe::Direction;
use std::fmt;

/// The first line, with the version of the format.
const TITLE: &str = "# xqos link 1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Packet(LoggedPacket),
    Busy(Busy),
}

/// One packet, from arrival to delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPacket {
    pub direction: Direction,
    /// Number of the packet in its direction, counted from 1.
    pub number: u64,
    /// Length of the IP packet, with its header.
    pub bytes: u32,
    pub arrived_ns: u64,
    /// Start and end of its transmission; `None` if dropped.
    pub sent_ns: Option<(u64, u64)>,
    /// Actual delivery, which can be slightly later than scheduled.
    pub delivered_ns: Option<u64>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Delivered,
    /// Lost at random on the link.
    Lost,
    /// Dropped at a full queue.
    Dropped,
    /// The link ended before delivery.
    Unfinished,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Delivered, Outcome::Lost, Outcome::Dropped, Outcome::Unfinished];

    fn name(self) -> &'static str {
        match self {
            Outcome::Delivered => "delivered",
            Outcome::Lost => "lost",
            Outcome::Dropped => "dropped",
            Outcome::Unfinished => "unfinished",
        }
    }
}

/// A span in which the link was sending in this direction without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    pub direction: Direction,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Packet(record) => {
                let LoggedPacket { direction, number, bytes, arrived_ns, .. } = record;
                write!(out, "packet {} {number} {bytes} {arrived_ns}", name(*direction))?;
                let (start_ns, end_ns) = record.sent_ns.unzip();
                for time_ns in [start_ns, end_ns, record.delivered_ns] {
                    match time_ns {
                        Some(ns) => write!(out, " {ns}")?,
                        None => out.write_str(" -")?,
                    }
                }
                write!(out, " {}", record.outcome.name())
            }
            Entry::Busy(Busy { direction, from_ns, to_ns }) => {
                write!(out, "busy {} {from_ns} {to_ns}", name(*direction))
            }
        }
    }
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Requests => "requests",
        Direction::Replies => "replies",
    }
}
