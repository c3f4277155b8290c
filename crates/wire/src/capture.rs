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

/// What a packet begins with, by its number in capture files.
pub use pcap_parser::Linktype as Link;
pub use read::{CaptureError, Reader};
pub use write::Writer;

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
