// SPDX-License-Identifier: MIT
//! The byte order of a connection, which the client chooses in its setup.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ByteOrder {
    #[cfg_attr(target_endian = "little", default)]
    Little,
    #[cfg_attr(target_endian = "big", default)]
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };
    pub const SWAPPED: ByteOrder = if cfg!(target_endian = "little") { ByteOrder::Big } else { ByteOrder::Little };

    /// The byte order of a client, from the server's flag for swapped clients.
    pub fn swapped_if(is_swapped: bool) -> ByteOrder {
        if is_swapped { ByteOrder::SWAPPED } else { ByteOrder::NATIVE }
    }

    /// The byte order that the first byte of a connection setup states.
    pub fn of_setup(first: u8) -> Option<ByteOrder> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.letter() == first)
    }

    /// The first byte of a connection setup.
    pub fn letter(self) -> u8 {
        match self {
            ByteOrder::Little => b'l',
            ByteOrder::Big => b'B',
        }
    }

    /// Converts the bytes of a number from this order to that of the machine, or back.
    #[inline]
    pub fn native<const N: usize>(self, mut number: [u8; N]) -> [u8; N] {
        if self != ByteOrder::NATIVE {
            number.reverse();
        }
        number
    }

    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        self.number(bytes, at).map(u16::from_ne_bytes)
    }

    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.number(bytes, at).map(u32::from_ne_bytes)
    }

    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.number(bytes, at).map(u64::from_ne_bytes)
    }

    #[inline]
    fn number<const N: usize>(self, bytes: &[u8], at: usize) -> Option<[u8; N]> {
        Some(self.native(*bytes.get(at..)?.first_chunk()?))
    }

    /// Writes a number; does nothing if the bytes end before it.
    pub fn put_u16(self, bytes: &mut [u8], at: usize, value: u16) {
        self.put(bytes, at, value.to_ne_bytes());
    }

    /// Like [`put_u16`](Self::put_u16).
    pub fn put_u32(self, bytes: &mut [u8], at: usize, value: u32) {
        self.put(bytes, at, value.to_ne_bytes());
    }

    fn put<const N: usize>(self, bytes: &mut [u8], at: usize, number: [u8; N]) {
        if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = self.native(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut bytes = [0; 9];
        for (order, expected) in [(ByteOrder::Little, [2, 1, 6, 5, 4, 3]), (ByteOrder::Big, [1, 2, 3, 4, 5, 6])] {
            order.put_u16(&mut bytes, 1, 0x0102);
            order.put_u32(&mut bytes, 3, 0x0304_0506);
            assert_eq!(bytes[1..7], expected);
            assert_eq!((order.u16(&bytes, 1), order.u32(&bytes, 3)), (Some(0x0102), Some(0x0304_0506)));
            assert_eq!(order.u64(&[bytes[1]; 8], 0), Some(u64::from_ne_bytes([bytes[1]; 8])));
            assert_eq!(ByteOrder::of_setup(order.letter()), Some(order));
        }
        assert_eq!(ByteOrder::Big.u64(&[0, 0, 0, 0, 0, 0, 1, 2], 0), Some(0x0102));
        assert_eq!(ByteOrder::of_setup(b'L'), None);
    }

    #[test]
    fn nothing_is_read_or_written_past_the_end() {
        let mut bytes = [0; 4];
        for at in [1, 4, 5, usize::MAX] {
            ByteOrder::NATIVE.put_u32(&mut bytes, at, u32::MAX);
            assert_eq!((ByteOrder::SWAPPED.u32(&bytes, at), bytes), (None, [0; 4]));
        }
    }
}
