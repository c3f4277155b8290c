//! Fields of a message by their place, in the byte order of its connection; `None` where they were not captured.

use crate::observe::Message;

pub fn byte(message: &Message<'_>, place: usize) -> Option<u8> {
    message.bytes.get(place).copied()
}

pub fn short(message: &Message<'_>, place: usize) -> Option<u16> {
    let bytes: [u8; 2] = message.bytes.get(place..place.checked_add(2)?)?.try_into().ok()?;
    Some(if message.is_little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
}

pub fn word(message: &Message<'_>, place: usize) -> Option<u32> {
    let bytes: [u8; 4] = message.bytes.get(place..place.checked_add(4)?)?.try_into().ok()?;
    Some(if message.is_little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
}
