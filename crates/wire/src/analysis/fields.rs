// SPDX-License-Identifier: MIT
//! Fields of a message by their place, in the byte order of its connection; `None` where they were not captured.

use crate::observe::Message;
use crate::x11::bytes::ByteOrder;

pub fn byte(message: &Message<'_>, place: usize) -> Option<u8> {
    message.bytes.get(place).copied()
}

pub fn short(message: &Message<'_>, place: usize) -> Option<u16> {
    order(message).u16(message.bytes, place)
}

pub fn word(message: &Message<'_>, place: usize) -> Option<u32> {
    order(message).u32(message.bytes, place)
}

fn order(message: &Message<'_>) -> ByteOrder {
    if message.is_little_endian { ByteOrder::Little } else { ByteOrder::Big }
}
