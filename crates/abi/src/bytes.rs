// SPDX-License-Identifier: MIT
//! Reading and writing X11 integers in a connection's byte order, with every access checked.

/// The byte order of one connection, relative to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Native,
    Swapped,
}

/// The bytes end before the structure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

/// Reads fields by their offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: Order) -> Self {
        Reader { bytes, order }
    }

    pub(crate) fn slice(&self, at: usize, length: usize) -> Result<&'a [u8], Short> {
        let end = at.checked_add(length).ok_or(Short)?;
        self.bytes.get(at..end).ok_or(Short)
    }

    pub(crate) fn u8(&self, at: usize) -> Result<u8, Short> {
        self.bytes.get(at).copied().ok_or(Short)
    }

    pub(crate) fn u16(&self, at: usize) -> Result<u16, Short> {
        Ok(u16::from_ne_bytes(self.ordered(at)?))
    }

    pub(crate) fn u32(&self, at: usize) -> Result<u32, Short> {
        Ok(u32::from_ne_bytes(self.ordered(at)?))
    }

    pub(crate) fn i32(&self, at: usize) -> Result<i32, Short> {
        Ok(i32::from_ne_bytes(self.ordered(at)?))
    }

    pub(crate) fn u64(&self, at: usize) -> Result<u64, Short> {
        Ok(u64::from_ne_bytes(self.ordered(at)?))
    }

    pub(crate) fn i64(&self, at: usize) -> Result<i64, Short> {
        Ok(i64::from_ne_bytes(self.ordered(at)?))
    }

    fn ordered<const N: usize>(&self, at: usize) -> Result<[u8; N], Short> {
        let mut field: [u8; N] = self.slice(at, N)?.try_into().map_err(|_| Short)?;
        if self.order == Order::Swapped {
            field.reverse();
        }
        Ok(field)
    }
}

/// Appends fields in order.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    order: Order,
}

impl Writer {
    pub(crate) fn new(order: Order) -> Self {
        Writer { bytes: Vec::with_capacity(64), order }
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.ordered(value.to_ne_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.ordered(value.to_ne_bytes())
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.ordered(value.to_ne_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.ordered(value.to_ne_bytes())
    }

    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.ordered(value.to_ne_bytes())
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Zeros up to the offset `end`.
    pub(crate) fn pad_to(&mut self, end: usize) -> &mut Self {
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self
    }

    /// Zeros up to a multiple of four.
    pub(crate) fn align(&mut self) -> &mut Self {
        self.pad_to(self.bytes.len().next_multiple_of(4))
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn ordered<const N: usize>(&mut self, mut field: [u8; N]) -> &mut Self {
        if self.order == Order::Swapped {
            field.reverse();
        }
        self.raw(&field)
    }
}
