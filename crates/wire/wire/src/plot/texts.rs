// SPDX-License-Identifier: MIT
//! Fields of messages as text. Each text is stored once, up to a total size that suits a page.

use crate::observe::Message;
use crate::x11::fields;
use std::collections::HashMap;

const MAX_BYTES: usize = 8 << 20;
/// Maximum number of messages whose fields are decoded, which takes a microsecond each.
const MAX_READ: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct Texts {
    numbers: HashMap<Box<str>, u64>,
    bytes: usize,
    read: u64,
    /// Messages without text because of the limits.
    pub left_out: u64,
}

impl Texts {
    /// Number of a message's text, counted from 1; 0 if there is no room for it.
    pub fn number(&mut self, message: &Message<'_>) -> u64 {
        if self.bytes >= MAX_BYTES || self.read >= MAX_READ {
            self.left_out += 1;
            return 0;
        }
        self.read += 1;
        let text = fields::text(message);
        let next = self.numbers.len() as u64 + 1;
        if let Some(&number) = self.numbers.get(text.as_str()) {
            return number;
        }
        self.bytes += text.len();
        self.numbers.insert(text.into_boxed_str(), next);
        next
    }

    /// All texts, in the order of their numbers.
    pub fn list(&self) -> Vec<&str> {
        let mut all: Vec<(&str, u64)> = self.numbers.iter().map(|(text, &number)| (&**text, number)).collect();
        all.sort_unstable_by_key(|&(_, number)| number);
        all.into_iter().map(|(text, _)| text).collect()
    }
}
