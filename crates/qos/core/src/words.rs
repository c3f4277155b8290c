// SPDX-License-Identifier: MIT
//! The words of a snapshot, written or read one after the other.
//!
//! One function describes a part of the state in both directions: it passes each value to a method of [`Words`], which
//! writes the value and returns it unchanged, or returns the value that it has read instead. Invalid words give `None`,
//! never a panic. Writing never fails.

use crate::{ClientId, GroupId, Time};
use alloc::vec::Vec;

/// An instant or length above this (over a century) indicates damage.
const LATEST_NS: u64 = 1 << 62;

#[derive(Debug)]
pub(crate) enum Words<'a> {
    Write(Vec<u64>),
    /// The words that have not been read yet.
    Read(&'a [u64]),
}

impl Words<'_> {
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self, Words::Read(_))
    }

    /// The words that have been written, or are left to read.
    pub(crate) fn into_vec(self) -> Vec<u64> {
        match self {
            Words::Write(written) => written,
            Words::Read(left) => left.to_vec(),
        }
    }

    fn valid(&mut self, word: u64, is_valid: impl Fn(u64) -> bool) -> Option<u64> {
        match self {
            Words::Write(written) => {
                written.push(word);
                Some(word)
            }
            Words::Read(left) => {
                let (&first, rest) = left.split_first()?;
                *left = rest;
                Some(first).filter(|&word| is_valid(word))
            }
        }
    }

    pub(crate) fn next(&mut self, word: u64) -> Option<u64> {
        self.valid(word, |_| true)
    }

    pub(crate) fn signed(&mut self, number: i64) -> Option<i64> {
        self.valid(number as u64, |word| (word as i64).unsigned_abs() < LATEST_NS).map(|word| word as i64)
    }

    pub(crate) fn flag(&mut self, is: bool) -> Option<bool> {
        self.below(2, is.into()).map(|word| word == 1)
    }

    pub(crate) fn below(&mut self, limit: u64, word: u64) -> Option<u64> {
        self.valid(word, |word| word < limit)
    }

    pub(crate) fn u32(&mut self, number: u32) -> Option<u32> {
        u32::try_from(self.next(number.into())?).ok()
    }

    pub(crate) fn i32(&mut self, number: i32) -> Option<i32> {
        i32::try_from(self.next(i64::from(number) as u64)? as i64).ok()
    }

    pub(crate) fn ns(&mut self, ns: u64) -> Option<u64> {
        self.below(LATEST_NS, ns)
    }

    pub(crate) fn time(&mut self, time: Time) -> Option<Time> {
        self.ns(time.0).map(Time)
    }

    /// An instant for which 0 stands for none.
    pub(crate) fn time_or_none(&mut self, time: Option<Time>) -> Option<Option<Time>> {
        Some(Some(self.time(time.unwrap_or_default())?).filter(|time| time.0 != 0))
    }

    pub(crate) fn id(&mut self, id: ClientId) -> Option<ClientId> {
        self.below(ClientId::LIMIT as u64, id.0.into()).map(|slot| ClientId(slot as u16))
    }

    pub(crate) fn group(&mut self, group: GroupId) -> Option<GroupId> {
        self.below(1 << 16, group.0.into()).map(|group| GroupId(group as u16))
    }

    /// A client, stored as its slot plus one; 0 stands for no client.
    pub(crate) fn client(&mut self, client: Option<ClientId>) -> Option<Option<ClientId>> {
        let word = self.below(ClientId::LIMIT as u64 + 1, client.map_or(0, |id| u64::from(id.0) + 1))?;
        Some(word.checked_sub(1).map(|slot| ClientId(slot as u16)))
    }

    /// A value that follows only if its flag is set.
    pub(crate) fn optional<T: Default>(
        &mut self,
        value: Option<T>,
        carry: impl FnOnce(T, &mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.flag(value.is_some())? { carry(value.unwrap_or_default(), self).map(Some) } else { Some(None) }
    }

    /// Fewer than `limit` values, preceded by their number.
    pub(crate) fn list<T: Copy + Default>(
        &mut self,
        list: &[T],
        limit: usize,
        carry: impl Fn(T, &mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let length = self.below(limit as u64, list.len() as u64)? as usize;
        (0..length).map(|at| carry(list.get(at).copied().unwrap_or_default(), self)).collect()
    }
}
