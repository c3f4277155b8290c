// SPDX-License-Identifier: MIT
//! Captures of packets: files that others wrote, and files that others can read.
//!
//! Reading takes pcap and pcapng as they come: either byte order, any resolution of time, several interfaces and
//! sections. What is written is pcapng with nanoseconds. Neither ever holds more than a packet and a buffer.
//!
//! | module | what |
//! |---|---|
//! | `read`, `write` | files |
//! | `times` | what is wrong with a file's times |
//! | [`live`] | packets of a network interface |
//! | [`relay`] | what local clients say, by standing between them and their server |
//! | [`conversation`] | the packets for what had none |
//! | [`rewrite`] | a file, recorded again |
//! | [`record`] | from packets to a file |
//! | [`trigger`] | from when to when |
//! | [`scrub`] | without what nobody else is to see |

pub mod conversation;
pub mod live;
mod read;
pub mod record;
pub mod relay;
pub mod rewrite;
pub mod scrub;
mod times;
pub mod trigger;
mod write;

pub use read::{CaptureError, Reader};
pub use write::Writer;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// BSD's loopback: the address family in the byte order of the machine that captured.
    Null,
    Ethernet,
    /// IP at once.
    Raw,
    /// OpenBSD's loopback: the address family in network order.
    Loop,
    /// Linux cooked, as written for the interface `any` by older programs.
    Cooked,
    /// Linux cooked, version 2.
    Cooked2,
    /// None that X goes over.
    Unknown(u16),
}

impl Link {
    /// By its number in capture files.
    pub fn from_number(number: u16) -> Link {
        match number {
            0 => Link::Null,
            1 => Link::Ethernet,
            // 12 and 14 are what some systems write for 101; 228 and 229 are only IPv4 and only IPv6.
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            108 => Link::Loop,
            113 => Link::Cooked,
            276 => Link::Cooked2,
            other => Link::Unknown(other),
        }
    }

    /// Its number in capture files.
    pub fn number(self) -> u16 {
        match self {
            Link::Null => 0,
            Link::Ethernet => 1,
            Link::Raw => 101,
            Link::Loop => 108,
            Link::Cooked => 113,
            Link::Cooked2 => 276,
            Link::Unknown(number) => number,
        }
    }
}

/// One packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Since 1970.
    pub at_ns: u64,
    pub link: Link,
    /// As it was on the wire; more than there are bytes where the capture cut it off.
    pub length: u32,
    pub bytes: &'a [u8],
    /// With a connection's first packet, whose it is, where the capture's maker knew: a comment that Wireshark shows too.
    pub program: Option<&'a str>,
}
