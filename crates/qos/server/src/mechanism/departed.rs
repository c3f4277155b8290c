// SPDX-License-Identifier: MIT
//! Usage of disconnected clients, summed by user and program. Scripts that start many short-lived processes therefore
//! stay visible, and all shares add up to the server's busy time.
//!
//! Invariant: the sum over all entries never shrinks, and the number of entries is bounded.

use std::collections::VecDeque;
use xqos_abi::ClientEntry;

#[derive(Debug, Default)]
pub struct Departed {
    /// Ordered by the time of the last disconnect, the most recent last.
    programs: VecDeque<ClientEntry>,
    /// The sum of all other programs.
    others: Option<ClientEntry>,
}

impl Departed {
    /// The maximum number of programs with their own entry.
    pub const MAX_PROGRAMS: usize = 32;

    pub fn add(&mut self, gone: &ClientEntry) {
        let mut sum = gone.departed();
        if sum.name.is_empty() {
            return self.add_to_others(sum);
        }
        if let Some(at) = self.programs.iter().position(|known| known.program() == sum.program()) {
            if let Some(mut known) = self.programs.remove(at) {
                known.absorb(&sum);
                sum = known;
            }
        } else if self.programs.len() == Self::MAX_PROGRAMS {
            if let Some(oldest) = self.programs.pop_front() {
                self.add_to_others(oldest);
            }
        }
        self.programs.push_back(sum);
    }

    fn add_to_others(&mut self, sum: ClientEntry) {
        let others = self.others.get_or_insert_with(|| ClientEntry { uid: u32::MAX, ..ClientEntry::default() });
        others.absorb(&sum);
    }

    pub fn list(&self) -> Vec<ClientEntry> {
        self.programs.iter().chain(&self.others).cloned().collect()
    }

    pub fn memory_bytes(&self) -> usize {
        self.programs.capacity() * size_of::<ClientEntry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_its_sums_miss_nothing() {
        let mut departed = Departed::default();
        let client =
            |name: String, ns| ClientEntry { name, uid: 7, server_time_ns: ns, requests: 2, ..Default::default() };
        for round in 0..200 {
            departed.add(&client("script".into(), 10));
            departed.add(&client(format!("program {round}"), 1));
        }
        departed.add(&client(String::new(), 5));
        let list = departed.list();
        assert_eq!(list.len(), Departed::MAX_PROGRAMS + 1);
        let script = list.iter().find(|entry| entry.name == "script").unwrap();
        assert_eq!((script.client, script.server_time_ns, script.requests, script.uid), (200, 2000, 400, 7));
        let sum = |field: fn(&ClientEntry) -> u64| list.iter().map(field).sum::<u64>();
        assert_eq!((sum(|entry| entry.client.into()), sum(|entry| entry.server_time_ns)), (401, 2205));
        assert!(list.last().unwrap().name.is_empty(), "the others come last");
    }
}
