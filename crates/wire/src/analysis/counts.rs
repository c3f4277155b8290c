// SPDX-License-Identifier: MIT
//! Counts messages and their bytes by name.

use super::names::NameId;
use crate::observe::{Kind, Message};
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageSum {
    pub count: u64,
    pub bytes: u64,
}

impl MessageSum {
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[derive(Clone, Debug, Default)]
pub struct ByName {
    /// Indexed by name id, so a message needs no lookup.
    counted: Vec<MessageSum>,
    /// Replaces `counted` once the connection has ended.
    compact: Vec<(NameId, MessageSum)>,
}

impl ByName {
    pub fn add(&mut self, name: NameId, bytes: u64) {
        let index = name.0 as usize;
        if self.counted.len() <= index {
            self.counted.resize(index + 1, MessageSum::default());
        }
        self.counted[index].add(bytes);
    }

    /// Called when the connection has ended: keeps only names with messages.
    pub fn end(&mut self) {
        self.compact = self.iter().collect();
        self.counted = Vec::new();
    }

    pub fn iter(&self) -> impl Iterator<Item = (NameId, MessageSum)> + '_ {
        let counted = self.counted.iter().enumerate().map(|(index, tally)| (NameId(index as u32), *tally));
        self.compact.iter().copied().chain(counted.filter(|(_, tally)| tally.count > 0))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub requests: ByName,
    pub replies: ByName,
    pub events: ByName,
    pub errors: ByName,
}

impl Counts {
    pub fn message(&mut self, message: &Message<'_>, name: NameId) {
        match message.kind {
            Kind::Setup | Kind::SetupReply => {}
            Kind::Request => self.requests.add(name, message.length),
            Kind::Reply => self.replies.add(name, message.length),
            Kind::Event => self.events.add(name, message.length),
            Kind::Error => self.errors.add(name, message.length),
        }
    }

    pub fn end(&mut self) {
        for kind in [&mut self.requests, &mut self.replies, &mut self.events, &mut self.errors] {
            kind.end();
        }
    }
}

/// Adds each element of `others` to the element of the same name.
pub fn merge_equal<T: Clone>(sums: &mut Vec<T>, others: &[T], name: fn(&T) -> &String, add: impl Fn(&mut T, &T)) {
    for other in others {
        match sums.iter_mut().find(|sum| name(sum) == name(other)) {
            Some(sum) => add(sum, other),
            None => sums.push(other.clone()),
        }
    }
}
