// SPDX-License-Identifier: MIT
//! Synthetic messages for tests.

use crate::observe::{Kind, Message};

/// The fields of a message that a test sets.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub sequence: u64,
    pub major: u8,
    pub has_reply: bool,
    pub at_ns: u64,
    pub bytes: &'a [u8],
}

impl Default for Spec<'_> {
    fn default() -> Self {
        Spec {
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

pub fn make<'a>(spec: &Spec<'a>) -> Message<'a> {
    Message {
        kind: spec.kind,
        sequence: spec.sequence,
        name: spec.name,
        major: spec.major,
        minor: 0,
        has_reply: spec.has_reply,
        offset: 0,
        length: spec.bytes.len() as u64,
        first_ns: spec.at_ns,
        last_ns: spec.at_ns,
        is_little_endian: true,
        bytes: spec.bytes,
    }
}

/// A connection setup with one screen: colormap 0x20, visual 0x21 of this class.
pub fn greeting(class: u8, is_little_endian: bool) -> Vec<u8> {
    let short = |value: u16| if is_little_endian { value.to_le_bytes() } else { value.to_be_bytes() };
    let word = |value: u32| if is_little_endian { value.to_le_bytes() } else { value.to_be_bytes() };
    let mut bytes = vec![0; 40 + 8 + 8 + 40 + 8 + 24];
    bytes[0] = 1;
    bytes[24..26].copy_from_slice(&short(5));
    (bytes[28], bytes[29]) = (1, 1);
    let screen = 40 + 8 + 8;
    bytes[screen + 4..screen + 8].copy_from_slice(&word(0x20));
    bytes[screen + 32..screen + 36].copy_from_slice(&word(0x21));
    bytes[screen + 39] = 1;
    let depth = screen + 40;
    bytes[depth + 2..depth + 4].copy_from_slice(&short(1));
    bytes[depth + 8..depth + 12].copy_from_slice(&word(0x21));
    bytes[depth + 12] = class;
    bytes
}
