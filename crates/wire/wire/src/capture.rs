// SPDX-License-Identifier: MIT
//! Reads and writes packet captures.
//!
//! The reader accepts pcap and pcapng in either byte order, with any time resolution, several interfaces and sections.
//! The writer produces pcapng with nanoseconds. Each holds at most one packet and a buffer.
//!
//! | module | purpose |
//! |---|---|
//! | `read`, `write` | capture files |
//! | `times` | detects wrong timestamps in a file |
//! | [`live`] | captures packets on a network interface |
//! | [`conversation`] | makes packets for connections that have none |

pub mod conversation;
pub mod live;
mod read;
mod times;
mod write;

/// Link type of a packet, with its number in capture files.
pub use pcap_parser::Linktype as Link;
pub use read::{CaptureError, CaptureReader};
pub use write::CaptureWriter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    pub link: Link,
    /// Length on the wire, which can exceed that of `bytes`.
    pub length: u32,
    pub bytes: &'a [u8],
    /// Name of the client's program, on a connection's first packet. Stored as a packet comment.
    pub program: Option<&'a str>,
    /// How to decode the connection from this packet on ([`Checkpoint`](crate::x11::checkpoint::Checkpoint)), if the
    /// file begins in its middle. Stored as a packet comment.
    pub checkpoint: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// A packet without comments.
    pub fn new(at_ns: u64, link: Link, length: u32, bytes: &'a [u8]) -> Record<'a> {
        Record { at_ns, link, length, bytes, program: None, checkpoint: None }
    }
}

/// A packet that waits in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRecord {
    pub at_ns: u64,
    link: Link,
    length: u32,
    pub bytes: Vec<u8>,
    pub program: Option<Box<str>>,
    checkpoint: Option<Box<str>>,
}

impl KeptRecord {
    pub fn new(record: &Record<'_>) -> KeptRecord {
        let mut kept = KeptRecord::default();
        kept.set(record);
        kept
    }

    /// Replaces the packet, and reuses its memory.
    pub fn set(&mut self, record: &Record<'_>) {
        (self.at_ns, self.link, self.length) = (record.at_ns, record.link, record.length);
        self.bytes.clear();
        self.bytes.extend(record.bytes);
        (self.program, self.checkpoint) = (record.program.map(Into::into), record.checkpoint.map(Into::into));
    }

    pub fn record(&self) -> Record<'_> {
        let KeptRecord { at_ns, link, length, .. } = *self;
        let (program, checkpoint) = (self.program.as_deref(), self.checkpoint.as_deref());
        Record { at_ns, link, length, bytes: &self.bytes, program, checkpoint }
    }
}
