// SPDX-License-Identifier: MIT
//! Reads and writes X11 integers in a connection's byte order; every access is checked.

use xqos_x11::ByteOrder;

/// The X error for an invalid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// BadLength.
    Length,
    /// BadRequest: unknown minor opcode.
    Opcode,
    /// BadValue, with the value.
    Value(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    /// The bytes that have not been read.
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder, at: usize) -> Self {
        ByteReader { bytes: bytes.get(at..).unwrap_or_default(), order }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (read, rest) = self.bytes.split_at_checked(count).ok_or(Malformed::Length)?;
        self.bytes = rest;
        Ok(read)
    }

    /// A reader for the next `count` bytes.
    pub(crate) fn part(&mut self, count: usize) -> Result<ByteReader<'a>, Malformed> {
        Ok(ByteReader { bytes: self.bytes(count)?, order: self.order })
    }

    /// A number, as bytes in this machine's order.
    pub(crate) fn number<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (&number, rest) = self.bytes.split_first_chunk().ok_or(Malformed::Length)?;
        self.bytes = rest;
        Ok(self.order.native(number))
    }
}

#[derive(Debug)]
pub(crate) struct ByteWriter {
    bytes: Vec<u8>,
    order: ByteOrder,
}

impl ByteWriter {
    pub(crate) fn new(order: ByteOrder) -> Self {
        ByteWriter { bytes: Vec::with_capacity(64), order }
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a number, given as bytes in this machine's order.
    pub(crate) fn number<const N: usize>(&mut self, number: [u8; N]) -> &mut Self {
        let number = self.order.native(number);
        self.raw(&number)
    }

    /// Appends zeros up to the offset `end`.
    pub(crate) fn pad_to(&mut self, end: usize) -> &mut Self {
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
