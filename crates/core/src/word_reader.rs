// SPDX-License-Identifier: MIT
//! Reads the words of a snapshot, one after the other.
//!
//! Invalid words give `None`, never a panic.

use crate::{ClientId, GroupId, Time};

/// An instant or length above this (over a century) indicates damage.
const LATEST_NS: u64 = 1 << 62;

/// The words that have not been read yet.
#[derive(Debug)]
pub(crate) struct WordReader<'a> {
    left: &'a [u64],
}

impl<'a> WordReader<'a> {
    pub(crate) fn new(words: &'a [u64]) -> WordReader<'a> {
        WordReader { left: words }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<u64> {
        let (&first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        self.next().map(|word| word as i64).filter(|&value| value.unsigned_abs() < LATEST_NS)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.next().filter(|&word| word <= 1).map(|word| word == 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> Option<u64> {
        self.next().filter(|&word| word < limit)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.next()?).ok()
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        i32::try_from(self.next()? as i64).ok()
    }

    pub(crate) fn ns(&mut self) -> Option<u64> {
        self.below(LATEST_NS)
    }

    pub(crate) fn time(&mut self) -> Option<Time> {
        self.ns().map(Time)
    }

    /// A value that follows only if its flag is set.
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    pub(crate) fn id(&mut self) -> Option<ClientId> {
        self.below(ClientId::LIMIT as u64).map(|slot| ClientId(slot as u16))
    }

    pub(crate) fn group(&mut self) -> Option<GroupId> {
        self.below(1 << 16).map(|group| GroupId(group as u16))
    }

    /// A client, stored as its slot plus one; 0 stands for no client.
    pub(crate) fn client(&mut self) -> Option<Option<ClientId>> {
        let word = self.below(ClientId::LIMIT as u64 + 1)?;
        Some(word.checked_sub(1).map(|slot| ClientId(slot as u16)))
    }
}
