// SPDX-License-Identifier: MIT
//! A client's setup request with its cookie, and the setup reply that refuses a client.

use crate::bytes::request;
use xqos_x11::ByteOrder;

pub const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// A client's authorization data: the name of the protocol and the secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cookie {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

impl std::fmt::Debug for Cookie {
    // Keep the secret out of logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cookie({})", String::from_utf8_lossy(&self.name))
    }
}

impl Cookie {
    pub fn magic(secret: [u8; 16]) -> Cookie {
        Cookie { name: COOKIE.to_vec(), data: secret.to_vec() }
    }

    /// Parses the cookie of a setup request.
    pub fn of_setup(order: ByteOrder, bytes: &[u8]) -> Option<Cookie> {
        let (name, data) = (usize::from(order.u16(bytes, 6)?), usize::from(order.u16(bytes, 8)?));
        let data_at = 12 + name.next_multiple_of(4);
        Some(Cookie { name: bytes.get(12..12 + name)?.to_vec(), data: bytes.get(data_at..data_at + data)?.to_vec() })
    }

    /// Compares in constant time, so that timing does not leak the secret.
    pub fn is(&self, other: &Cookie) -> bool {
        let differ = self.data.iter().zip(&other.data).fold(0, |all, (one, other)| all | (one ^ other));
        self.name == other.name && self.data.len() == other.data.len() && differ == 0
    }

    /// The setup request of a client with this cookie.
    pub fn setup(&self, order: ByteOrder) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes[0] = order.letter();
        order.put_u16(&mut bytes, 2, 11);
        order.put_u16(&mut bytes, 6, self.name.len() as u16);
        order.put_u16(&mut bytes, 8, self.data.len() as u16);
        for text in [&self.name, &self.data] {
            bytes.extend(text);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }
}

/// A setup reply that refuses the client and gives a reason.
pub fn refusal(order: ByteOrder, reason: &str) -> Vec<u8> {
    let mut bytes = request(order, 0, reason.len() as u8, &[0]);
    order.put_u16(&mut bytes, 2, 11);
    bytes.extend(reason.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let words = (bytes.len() as u16 - 8) / 4;
    order.put_u16(&mut bytes, 6, words);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_parsed_from_its_setup_request() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let cookie = Cookie::magic(*b"0123456789abcdef");
            let bytes = cookie.setup(order);
            assert_eq!(bytes.len(), 12 + 20 + 16);
            assert!(Cookie::of_setup(order, &bytes).unwrap().is(&cookie));
            assert!(!Cookie::of_setup(order, &bytes).unwrap().is(&Cookie::magic([7; 16])));
            for length in 0..bytes.len() {
                assert!(Cookie::of_setup(order, &bytes[..length]).is_none_or(|found| !found.is(&cookie)));
            }
        }
    }

    #[test]
    fn a_refusal_states_its_length_correctly() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = refusal(order, "no such cookie");
            assert_eq!((bytes[0], bytes[1]), (0, 14));
            assert_eq!(order.u16(&bytes, 6), Some(((bytes.len() - 8) / 4) as u16));
        }
    }
}
