// SPDX-License-Identifier: MIT
//! The log of a link's queue: the truth about when the line was busy and who waited, for those who conclude it from a
//! capture.
//!
//! Text, one entry a line, fields apart by a space; times are nanoseconds since 1970, `-` where there is none:
//!
//! ```text
//! # xqos link 1
//! packet requests 1 60 1700000000000000000 1700000000000000000 1700000000000048000 1700000000010048000 delivered
//! packet replies 1 1500 1700000000020000000 - - - dropped
//! busy requests 1700000000000000000 1700000000000048000
//! ```
//!
//! - `packet`: direction, number in its direction, bytes, arrival, start and end of transmission, delivery, fate:
//!   `delivered`, `lost` on the line, `dropped` since the queue was full, `unfinished` when the link ended. A packet is
//!   written when its fate is known, so the lines are not quite in the order of arrival.
//! - `busy`: the line was sending from one time to the other without a pause; between these it was idle.
//!
//! Other lines that begin with `#` are for people. A file that ends in the middle of a line was not finished; that line
//! is left out.

mod reader;
mod writer;

pub use reader::{BadLog, Reader};
pub use writer::Totals;
pub(super) use writer::Writer;

use crate::observe::Direction;
use std::fmt;

/// The first line: what it is, and the version of its format.
const TITLE: &str = "# xqos link 1";

/// What happened on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Packet(Record),
    Busy(Busy),
}

/// A packet from its arrival to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub direction: Direction,
    /// Counts the packets of its direction, from 1.
    pub number: u64,
    /// As IP has them, with its header.
    pub bytes: u32,
    pub arrived_ns: u64,
    /// Start and end of its transmission; `None` of those dropped.
    pub sent_ns: Option<(u64, u64)>,
    /// When it really was handed on, which can be a little later than it was due.
    pub delivered_ns: Option<u64>,
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// On the line, by chance.
    Lost,
    /// The queue was full.
    Dropped,
    /// The link ended before it arrived.
    Unfinished,
}

impl Fate {
    const ALL: [Fate; 4] = [Fate::Delivered, Fate::Lost, Fate::Dropped, Fate::Unfinished];

    fn name(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::Lost => "lost",
            Fate::Dropped => "dropped",
            Fate::Unfinished => "unfinished",
        }
    }
}

/// The line of a direction was sending without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    pub direction: Direction,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// As a line of the file.
impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Packet(record) => {
                let Record { direction, number, bytes, arrived_ns, .. } = record;
                write!(out, "packet {} {number} {bytes} {arrived_ns}", name(*direction))?;
                let (start_ns, end_ns) = record.sent_ns.unzip();
                for time_ns in [start_ns, end_ns, record.delivered_ns] {
                    match time_ns {
                        Some(ns) => write!(out, " {ns}")?,
                        None => out.write_str(" -")?,
                    }
                }
                write!(out, " {}", record.fate.name())
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
