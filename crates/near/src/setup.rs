// SPDX-License-Identifier: MIT
//! The first words of both sides: a client's with its cookie, the server's with its screens.

use crate::bytes::{put_u16, request};
use std::collections::HashMap;
use xqos_wire::x11::bytes::ByteOrder;

pub const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";
/// VisualClass: StaticGray, StaticColor and TrueColor have pixels that nobody changes.
const FIXED_CLASSES: [u8; 3] = [0, 2, 4];
/// A server has some dozens of visuals.
const MAX_VISUALS: usize = 4096;

/// What lets a client in: the name of a way, and its secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cookie {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
}

impl std::fmt::Debug for Cookie {
    // The secret is not to be found in logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Cookie({})", String::from_utf8_lossy(&self.name))
    }
}

impl Cookie {
    pub fn magic(secret: [u8; 16]) -> Cookie {
        Cookie { name: COOKIE.to_vec(), data: secret.to_vec() }
    }

    /// The cookie of a client's first words.
    pub fn of_setup(order: ByteOrder, bytes: &[u8]) -> Option<Cookie> {
        let (name, data) = (usize::from(order.u16(bytes, 6)?), usize::from(order.u16(bytes, 8)?));
        let data_at = 12 + name.next_multiple_of(4);
        Some(Cookie { name: bytes.get(12..12 + name)?.to_vec(), data: bytes.get(data_at..data_at + data)?.to_vec() })
    }

    /// Whether it is this one; the time that takes tells nothing of the secret.
    pub fn is(&self, other: &Cookie) -> bool {
        let differ = self.data.iter().zip(&other.data).fold(0, |all, (one, other)| all | (one ^ other));
        self.name == other.name && self.data.len() == other.data.len() && differ == 0
    }

    /// The first words of a client that has it.
    pub fn setup(&self, order: ByteOrder) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes[0] = if order == ByteOrder::Little { b'l' } else { b'B' };
        put_u16(order, &mut bytes, 2, 11);
        put_u16(order, &mut bytes, 6, self.name.len() as u16);
        put_u16(order, &mut bytes, 8, self.data.len() as u16);
        for text in [&self.name, &self.data] {
            bytes.extend(text);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }
}

/// An answer that lets nobody in, with the reason.
pub fn refusal(order: ByteOrder, reason: &str) -> Vec<u8> {
    let mut bytes = request(order, 0, reason.len() as u8, &[0]);
    put_u16(order, &mut bytes, 2, 11);
    bytes.extend(reason.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let words = (bytes.len() as u16 - 8) / 4;
    put_u16(order, &mut bytes, 6, words);
    bytes
}

/// What is known of a server from its first words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    pub id_base: u32,
    pub id_mask: u32,
    /// Root window, default colormap, its visual, and depth of each screen.
    pub screens: Vec<Screen>,
    /// Visuals whose colours are fixed.
    pub(crate) fixed: HashMap<u32, ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    pub root: u32,
    pub colormap: u32,
    pub visual: u32,
    pub depth: u8,
}

impl Greeting {
    /// `None`: it lets nobody in, or says less than it announces.
    pub fn of(order: ByteOrder, bytes: &[u8]) -> Option<Greeting> {
        if bytes.first() != Some(&1) {
            return None;
        }
        let mut greeting =
            Greeting { id_base: order.u32(bytes, 12)?, id_mask: order.u32(bytes, 16)?, ..Greeting::default() };
        let vendor = usize::from(order.u16(bytes, 24)?).next_multiple_of(4);
        let (screens, formats) = (*bytes.get(28)?, *bytes.get(29)?);
        let mut place = 40 + vendor + 8 * usize::from(formats);
        for _ in 0..screens {
            place = greeting.screen(order, bytes, place)?;
        }
        Some(greeting)
    }

    pub fn has_fixed_colors(&self, visual: u32) -> bool {
        self.fixed.contains_key(&visual)
    }

    pub fn is_default_colormap(&self, id: u32) -> bool {
        self.screens.iter().any(|screen| screen.colormap == id)
    }

    fn screen(&mut self, order: ByteOrder, bytes: &[u8], mut place: usize) -> Option<usize> {
        let word = |at| order.u32(bytes, at);
        self.screens.push(Screen {
            root: word(place)?,
            colormap: word(place + 4)?,
            visual: word(place + 32)?,
            depth: *bytes.get(place + 38)?,
        });
        let depths = *bytes.get(place + 39)?;
        place += 40;
        for _ in 0..depths {
            let visuals = order.u16(bytes, place + 2)?;
            place += 8;
            for _ in 0..visuals {
                let (visual, class) = (word(place)?, *bytes.get(place + 4)?);
                if FIXED_CLASSES.contains(&class) && self.fixed.len() < MAX_VISUALS {
                    self.fixed.insert(visual, ());
                }
                place += 24;
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_in_what_it_makes() {
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
    fn a_refusal_has_the_length_that_it_says() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = refusal(order, "no such cookie");
            assert_eq!((bytes[0], bytes[1]), (0, 14));
            assert_eq!(order.u16(&bytes, 6), Some(((bytes.len() - 8) / 4) as u16));
        }
    }
}
