// SPDX-License-Identifier: MIT
//! Messages that nobody sent, for the tests of this folder.

use crate::observe::{Kind, Message};

/// What matters of a message; the rest is made up.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub sequence: u64,
    pub major: u8,
    pub has_reply: bool,
    pub at_ns: u64,
    pub bytes: &'a [u8],
}

impl Default for Said<'_> {
    fn default() -> Self {
        Said {
            kind: Kind::Request,
            name: "NoOperation",
            sequence: 1,
            major: 127,
            has_reply: false,
            at_ns: 0,
            bytes: &[],
        }
    }
}

pub fn said<'a>(said: &Said<'a>) -> Message<'a> {
    Message {
        kind: said.kind,
        sequence: said.sequence,
        name: said.name,
        major: said.major,
        minor: 0,
        has_reply: said.has_reply,
        offset: 0,
        length: said.bytes.len() as u64,
        first_ns: said.at_ns,
        last_ns: said.at_ns,
        is_little_endian: true,
        bytes: said.bytes,
    }
}
