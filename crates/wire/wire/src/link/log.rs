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

mod writer;

pub use writer::LinkTotals;
pub(super) use writer::LogWriter;

use crate::observe::Direction;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The first line, with the version of the format.
const TITLE: &str = "# xqos link 1";
/// A valid line is far shorter: eight numbers of twenty digits and some words.
const MAX_LINE_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntry {
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
    pub outcome: PacketFate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    Delivered,
    /// Lost at random on the link.
    Lost,
    /// Dropped at a full queue.
    Dropped,
    /// The link ended before delivery.
    Unfinished,
}

impl PacketFate {
    const ALL: [PacketFate; 4] = [PacketFate::Delivered, PacketFate::Lost, PacketFate::Dropped, PacketFate::Unfinished];

    fn name(self) -> &'static str {
        ["delivered", "lost", "dropped", "unfinished"][self as usize]
    }
}

/// A span in which the link was sending in this direction without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    pub direction: Direction,
    pub from_ns: u64,
    pub to_ns: u64,
}

impl fmt::Display for LogEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogEntry::Packet(record) => {
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
            LogEntry::Busy(Busy { direction, from_ns, to_ns }) => {
                write!(out, "busy {} {from_ns} {to_ns}", name(*direction))
            }
        }
    }
}

fn name(direction: Direction) -> &'static str {
    ["requests", "replies"][direction as usize]
}

#[derive(Debug)]
pub struct LogReader<R> {
    input: R,
    line: u64,
    is_over: bool,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLog {
    #[error("cannot read the log of the link")]
    Io(#[from] io::Error),
    #[error("this is not the log of a link: such a file begins with '{}'", TITLE)]
    NotALog,
    #[error("line {0} of the link's log is invalid")]
    Line(u64),
}

impl LogReader<BufReader<File>> {
    pub fn open(path: &Path) -> Result<Self, BadLog> {
        LogReader::new(BufReader::new(File::open(path)?))
    }
}

impl<R: BufRead> LogReader<R> {
    pub fn new(input: R) -> Result<Self, BadLog> {
        let mut reader = LogReader { input, line: 0, is_over: false };
        match reader.next_line()? {
            Some(title) if title == TITLE => Ok(reader),
            _ => Err(BadLog::NotALog),
        }
    }

    /// The next line, or `None` at the end or at an incomplete line.
    fn next_line(&mut self) -> Result<Option<String>, BadLog> {
        let mut bytes = Vec::new();
        self.line += 1;
        let got = self.input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
        if bytes.pop() != Some(b'\n') {
            return if (got as u64) < MAX_LINE_BYTES { Ok(None) } else { Err(BadLog::Line(self.line)) };
        }
        String::from_utf8(bytes).map(Some).map_err(|_| BadLog::Line(self.line))
    }

    fn next_entry(&mut self) -> Result<Option<LogEntry>, BadLog> {
        while let Some(line) = self.next_line()? {
            if !line.starts_with('#') {
                return parse(&line).map(Some).ok_or(BadLog::Line(self.line));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for LogReader<R> {
    type Item = Result<LogEntry, BadLog>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_entry().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse(line: &str) -> Option<LogEntry> {
    let mut fields = line.split(' ');
    let kind = fields.next()?;
    let direction = direction(fields.next()?)?;
    let mut field = || fields.next();
    let entry = match kind {
        "packet" => LogEntry::Packet(LoggedPacket {
            direction,
            number: field()?.parse().ok()?,
            bytes: field()?.parse().ok()?,
            arrived_ns: field()?.parse().ok()?,
            sent_ns: time(field()?)?.zip(time(field()?)?),
            delivered_ns: time(field()?)?,
            outcome: outcome(field()?)?,
        }),
        "busy" => LogEntry::Busy(Busy { direction, from_ns: field()?.parse().ok()?, to_ns: field()?.parse().ok()? }),
        _ => return None,
    };
    fields.next().is_none().then_some(entry)
}

fn direction(text: &str) -> Option<Direction> {
    Direction::BOTH.into_iter().find(|&direction| name(direction) == text)
}

fn outcome(text: &str) -> Option<PacketFate> {
    PacketFate::ALL.into_iter().find(|outcome| outcome.name() == text)
}

fn time(text: &str) -> Option<Option<u64>> {
    if text == "-" { Some(None) } else { text.parse().ok().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Result<Vec<LogEntry>, BadLog> {
        LogReader::new(text.as_bytes())?.collect()
    }

    #[test]
    fn written_entries_are_read_back() {
        let packet = LoggedPacket {
            direction: Direction::Replies,
            number: 7,
            bytes: 1500,
            arrived_ns: 10,
            sent_ns: Some((20, 30)),
            delivered_ns: Some(40),
            outcome: PacketFate::Delivered,
        };
        let dropped = LoggedPacket { sent_ns: None, delivered_ns: None, outcome: PacketFate::Dropped, ..packet };
        let lost =
            LoggedPacket { delivered_ns: None, outcome: PacketFate::Lost, direction: Direction::Requests, ..packet };
        let unfinished = LoggedPacket { outcome: PacketFate::Unfinished, ..lost };
        let busy = LogEntry::Busy(Busy { direction: Direction::Requests, from_ns: 20, to_ns: u64::MAX });
        let mut all = vec![busy];
        all.extend([packet, dropped, lost, unfinished].map(LogEntry::Packet));
        let text = all.iter().map(LogEntry::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(entries(&format!("{TITLE}\n# rate 1mbit\n{text}\n")).unwrap(), all);
    }

    #[test]
    fn an_incomplete_last_line_is_ignored() {
        assert_eq!(entries(&format!("{TITLE}\nbusy requests 1 2\nbusy requests 3 4")).unwrap().len(), 1);
    }

    #[test]
    fn an_invalid_line_is_reported_by_number() {
        for text in [
            "busy requests 1",
            "busy requests 1 2 3",
            "busy nobody 1 2",
            "idle requests 1 2",
            "packet requests 1 60 1 - - - vanished",
            "packet requests 1 60 -1 - - - lost",
            "packet requests 99999999999999999999999 60 1 - - - lost",
            "",
        ] {
            let read = entries(&format!("{TITLE}\n{text}\n"));
            assert!(matches!(read, Err(BadLog::Line(2))), "'{text}': {read:?}");
        }
        let endless = entries(&format!("{TITLE}\n{}", "x".repeat(100_000)));
        assert!(matches!(endless, Err(BadLog::Line(2))), "{endless:?}");
        assert!(matches!(entries("busy requests 1 2\n"), Err(BadLog::NotALog)));
        assert!(matches!(entries(""), Err(BadLog::NotALog)));
    }
}
