// SPDX-License-Identifier: MIT
//! Counts of a program's questions, of the answers given here, and of the round trips that these answers saved.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests with replies.
    pub asked: u64,
    pub answered: u64,
    /// Remaining round trips, in which the program waited for the server's reply and sent nothing.
    pub left: u64,
    /// Saved round trips, in which the program would have waited for an answer that was given here.
    pub saved: u64,
}

/// The counts of one connection, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NearReport {
    pub connections: u64,
    pub by_request: BTreeMap<(u8, u8), Count>,
    /// The shortest time between a request and its reply.
    pub round_trip_ns: Option<u64>,
    /// Answers that the server contradicted.
    pub differences: u64,
    pub confirmed: u64,
}

impl NearReport {
    pub fn of(&mut self, major: u8, minor: u8) -> &mut Count {
        let minor = if major < 128 { 0 } else { minor };
        self.by_request.entry((major, minor)).or_default()
    }

    pub fn total(&self) -> Count {
        self.by_request.values().fold(Count::default(), |all, count| all.plus(count))
    }

    pub fn took(&mut self, ns: u64) {
        self.round_trip_ns = Some(self.round_trip_ns.map_or(ns, |least| least.min(ns)));
    }

    pub fn saved_ns(&self) -> u64 {
        self.total().saved.saturating_mul(self.round_trip_ns.unwrap_or(0))
    }

    pub fn add(&mut self, other: &NearReport) {
        self.connections += other.connections;
        self.differences += other.differences;
        self.confirmed += other.confirmed;
        other.round_trip_ns.into_iter().for_each(|ns| self.took(ns));
        for (&opcodes, count) in &other.by_request {
            let own = self.by_request.entry(opcodes).or_default();
            *own = own.plus(count);
        }
    }
}

impl Count {
    fn plus(&self, other: &Count) -> Count {
        Count {
            asked: self.asked + other.asked,
            answered: self.answered + other.answered,
            left: self.left + other.left,
            saved: self.saved + other.saved,
        }
    }
}
