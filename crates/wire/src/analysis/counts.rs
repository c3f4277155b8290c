// SPDX-License-Identifier: MIT
//! Counts messages and their bytes by name.

use super::names::{NameId, Names};
use crate::observe::{Kind, Message};
use serde::Serialize;
use std::collections::BTreeMap;

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

    pub fn merge(&mut self, other: &MessageSum) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Sums by name, indexed by name id, so that a message needs no lookup.
#[derive(Clone, Debug, Default)]
pub struct ByName<T> {
    sums: Vec<T>,
    /// Replaces `sums` once the connection has ended.
    compact: Vec<(NameId, T)>,
}

impl<T: Copy + Default + PartialEq> ByName<T> {
    pub fn at(&mut self, name: NameId) -> &mut T {
        let index = name.0 as usize;
        self.sums.resize(self.sums.len().max(index + 1), T::default());
        &mut self.sums[index]
    }

    /// Called when the connection has ended: keeps only names with messages.
    pub fn end(&mut self) {
        self.compact = self.iter().collect();
        self.sums = Vec::new();
    }

    fn iter(&self) -> impl Iterator<Item = (NameId, T)> + '_ {
        let sums = (0..).map(NameId).zip(self.sums.iter().copied());
        self.compact.iter().copied().chain(sums.filter(|(_, sum)| *sum != T::default()))
    }

    pub fn named(&self, names: &Names) -> BTreeMap<String, T> {
        self.iter().map(|(name, sum)| (names.name(name).to_owned(), sum)).collect()
    }
}

/// The requests, replies, events and errors of a connection.
#[derive(Clone, Debug, Default)]
pub struct Counts(pub [ByName<MessageSum>; 4]);

impl Counts {
    pub fn message(&mut self, message: &Message<'_>, name: NameId) {
        let index = match message.kind {
            Kind::Setup | Kind::SetupReply => return,
            Kind::Request => 0,
            Kind::Reply => 1,
            Kind::Event => 2,
            Kind::Error => 3,
        };
        self.0[index].at(name).add(message.length);
    }

    pub fn end(&mut self) {
        self.0.iter_mut().for_each(ByName::end);
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
