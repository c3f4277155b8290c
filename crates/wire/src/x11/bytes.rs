// SPDX-License-Identifier: MIT
//! Reads integers from a message, in the client's byte order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Byte order that the first byte of a connection setup states.
    pub fn of_setup(first: u8) -> Option<ByteOrder> {
        match first {
            b'l' => Some(ByteOrder::Little),
            b'B' => Some(ByteOrder::Big),
            _ => None,
        }
    }

    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let two = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    }

    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    }
}
