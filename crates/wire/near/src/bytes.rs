// SPDX-License-Identifier: MIT
//! Reads and writes fields of X11 messages in the client's byte order.

use xqos_x11::ByteOrder;

/// Byte order of the proxy's own connection.
pub const NATIVE: ByteOrder = ByteOrder::NATIVE;

/// Builds a request whose fields are all 32-bit words.
pub fn request(order: ByteOrder, major: u8, data: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; 4 + 4 * words.len()];
    (bytes[0], bytes[1]) = (major, data);
    order.put_u16(&mut bytes, 2, 1 + words.len() as u16);
    for (index, &word) in words.iter().enumerate() {
        order.put_u32(&mut bytes, 4 + 4 * index, word);
    }
    bytes
}

/// Builds a request that ends in a string, with the string's length at offset 4.
pub fn named_request(order: ByteOrder, major: u8, data: u8, name: &[u8]) -> Vec<u8> {
    with_text(order, vec![major, data, 0, 0, 0, 0, 0, 0], 4, name)
}

/// Appends a string to the fixed part of a request and writes the string's length at `length_at`.
pub fn with_text(order: ByteOrder, mut bytes: Vec<u8>, length_at: usize, text: &[u8]) -> Vec<u8> {
    order.put_u16(&mut bytes, length_at, text.len() as u16);
    bytes.extend(text);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let words = (bytes.len() / 4) as u16;
    order.put_u16(&mut bytes, 2, words);
    bytes
}

/// The string at offset `at` of a request; its length is at `length_at`. `None` if anything follows the string.
pub fn text_at(order: ByteOrder, request: &[u8], length_at: usize, at: usize) -> Option<&[u8]> {
    let length = usize::from(order.u16(request, length_at)?);
    let text = request.get(at..at + length)?;
    (request.len() == (at + length).next_multiple_of(4)).then_some(text)
}
