// SPDX-License-Identifier: MIT
//! Counts messages and their bytes by name.

use super::figure::{Value, figures};
use super::names::{NameId, NameTable};
use crate::observe::{Kind, Message};
use std::collections::BTreeMap;

figures! {
    #[derive(Copy, Eq)]
    MessageSum;
    count: u64 { title: "COUNT" };
    bytes: u64 { title: "BYTES" };
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

    pub fn named(&self, names: &NameTable) -> BTreeMap<String, T> {
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
        self.0[index].at(name).merge(&MessageSum { count: 1, bytes: message.length });
    }

    pub fn end(&mut self) {
        self.0.iter_mut().for_each(ByName::end);
    }
}
