// SPDX-License-Identifier: MIT
//! Computes the time and calls of each descriptor from the events of the server's thread.

use super::events::{Call, Event};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub ns: u64,
    pub calls: u64,
    /// Longest stretch of work without a wait or a read from another descriptor.
    pub longest_ns: u64,
}

impl Usage {
    pub fn add(&mut self, other: &Usage) {
        self.ns += other.ns;
        self.calls += other.calls;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Stands for an unknown client: the server executed requests that it had read earlier, and no read followed.
pub const UNKNOWN: i32 = -1;

/// Closed connections have numbers below [`UNKNOWN`], because the next client reuses the descriptor.
pub fn is_closed(number: i32) -> bool {
    number < UNKNOWN
}

#[derive(Debug, Default)]
pub struct DescriptorAccount {
    uses: BTreeMap<i32, Usage>,
    running: Option<ServedDescriptor>,
    closed: i32,
}

#[derive(Clone, Copy, Debug)]
struct ServedDescriptor {
    /// [`UNKNOWN`] after a wait: the server first executes requests that it read before the wait. They are assumed to
    /// belong to the client that it reads from next.
    descriptor: i32,
    since_ns: u64,
    /// Length of the uninterrupted work for this descriptor before `since_ns`.
    stretch_ns: u64,
}

impl DescriptorAccount {
    /// Takes the next event. If its time is earlier than that of the previous event, no work is counted between them.
    pub fn take(&mut self, event: Event) {
        // Opening or closing a descriptor does not end the server's current work; see `close`.
        if let Call::Close(_) | Call::Opened(_) = event.call {
            return;
        }
        let before = self.running.take().map(|mut running| {
            if let (UNKNOWN, Call::Read(descriptor)) = (running.descriptor, event.call) {
                running.descriptor = descriptor;
            }
            let ns = event.at_ns.saturating_sub(running.since_ns);
            let one = self.uses.entry(running.descriptor).or_default();
            one.ns += ns;
            one.longest_ns = one.longest_ns.max(running.stretch_ns + ns);
            (running.descriptor, running.stretch_ns + ns)
        });
        let descriptor = match event.call {
            Call::Read(descriptor) => {
                self.uses.entry(descriptor).or_default().calls += 1;
                descriptor
            }
            Call::Woken => UNKNOWN,
            Call::Wait | Call::Close(_) | Call::Opened(_) => return,
        };
        let stretch_ns = before.filter(|&(last, _)| last == descriptor).map_or(0, |(_, ns)| ns);
        self.running = Some(ServedDescriptor { descriptor, since_ns: event.at_ns, stretch_ns });
    }

    /// Records that the server closes this descriptor. Returns the number that replaces it; `None` if it has no work.
    pub fn close(&mut self, descriptor: i32) -> Option<i32> {
        let number = UNKNOWN - 1 - self.closed;
        let running = self.running.as_mut().filter(|running| running.descriptor == descriptor);
        // Until its next read or wait, the server frees the client's resources, which is work for the same client.
        let is_running = running.map(|running| running.descriptor = number).is_some();
        let used = self.uses.remove(&descriptor);
        if used.is_none() && !is_running {
            return None;
        }
        self.uses.insert(number, used.unwrap_or_default());
        self.closed = (self.closed + 1) % (i32::MAX / 2);
        Some(number)
    }

    /// Returns the work since the last call. Work in progress is counted when it ends.
    ///
    /// Work of unknown clients is added to the client with the most work per read, because the server needs
    /// several turns to execute what one read returns from such a client.
    pub fn finish(&mut self) -> Vec<(i32, Usage)> {
        let mut uses = std::mem::take(&mut self.uses);
        let work_by_read = |one: &Usage| one.ns.checked_div(one.calls).unwrap_or(0);
        let unknown = uses.remove(&UNKNOWN);
        let longest = uses.values_mut().max_by_key(|one| work_by_read(one));
        match (unknown, longest) {
            (Some(unknown), Some(one)) => one.ns += unknown.ns,
            (Some(unknown), None) => _ = uses.insert(UNKNOWN, unknown),
            _ => {}
        }
        uses.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(events: &[(u64, Option<i32>)]) -> BTreeMap<i32, Usage> {
        let mut account = DescriptorAccount::default();
        for &(at_ns, descriptor) in events {
            account.take(Event { pid: 1, at_ns, call: descriptor.map_or(Call::Wait, Call::Read) });
        }
        account.finish().into_iter().collect()
    }

    #[test]
    fn time_from_a_read_to_the_next_call_belongs_to_that_client() {
        let uses = account(&[(0, None), (100, Some(8)), (400, Some(9)), (500, None), (900, Some(8)), (950, None)]);
        assert_eq!(uses[&8], Usage { ns: 350, calls: 2, longest_ns: 300 });
        assert_eq!(uses[&9], Usage { ns: 100, calls: 1, longest_ns: 100 });
    }

    #[test]
    fn a_stretch_ends_with_another_client_or_a_wait() {
        let uses = account(&[
            (0, Some(8)),
            (10, Some(8)),
            (30, Some(9)),
            (31, Some(8)),
            (45, None),
            (50, Some(8)),
            (60, None),
        ]);
        assert_eq!(uses[&8], Usage { ns: 54, calls: 4, longest_ns: 30 });
    }

    #[test]
    fn work_after_a_wait_belongs_to_the_client_that_is_read_next() {
        let mut account = DescriptorAccount::default();
        let calls = [(0, Call::Woken), (30, Call::Read(8)), (40, Call::Wait), (90, Call::Woken), (95, Call::Wait)];
        calls.into_iter().for_each(|(at_ns, call)| account.take(Event { pid: 1, at_ns, call }));
        let uses: BTreeMap<i32, Usage> = account.finish().into_iter().collect();
        assert_eq!((uses[&8].ns, uses[&8].longest_ns), (45, 40));
    }

    #[test]
    fn unknown_work_belongs_to_the_client_with_most_work_per_read() {
        let mut account = DescriptorAccount::default();
        let calls = [
            (0, Call::Read(8)),
            (100, Call::Read(9)),
            (110, Call::Read(9)),
            (120, Call::Wait),
            (121, Call::Woken),
            (160, Call::Wait),
        ];
        calls.into_iter().for_each(|(at_ns, call)| account.take(Event { pid: 1, at_ns, call }));
        let uses: BTreeMap<i32, Usage> = account.finish().into_iter().collect();
        assert_eq!((uses[&8].ns, uses[&9].ns, uses.len()), (139, 20, 2));
        account.take(Event { pid: 1, at_ns: 170, call: Call::Woken });
        account.take(Event { pid: 1, at_ns: 180, call: Call::Wait });
        assert_eq!(account.finish()[0].0, UNKNOWN, "no descriptor is read");
    }

    #[test]
    fn a_closed_connection_keeps_its_figures_when_the_next_client_gets_its_descriptor() {
        let mut account = DescriptorAccount::default();
        let mut take = |at_ns, call| account.take(Event { pid: 1, at_ns, call });
        take(0, Call::Read(8));
        take(10, Call::Read(8));
        let first = account.close(8);
        let mut take = |at_ns, call| account.take(Event { pid: 1, at_ns, call });
        take(15, Call::Wait);
        take(20, Call::Read(8));
        take(50, Call::Wait);
        assert_eq!(account.close(9), None, "it has no work");
        let uses: BTreeMap<i32, Usage> = account.finish().into_iter().collect();
        let first = first.filter(|&number| is_closed(number)).unwrap();
        assert_eq!((uses[&first].ns, uses[&first].calls, uses[&8].ns, uses.len()), (15, 2, 30, 2));
    }

    #[test]
    fn work_in_progress_counts_when_it_ends() {
        let mut account = DescriptorAccount::default();
        account.take(Event { pid: 1, at_ns: 10, call: Call::Read(8) });
        assert_eq!(account.finish(), [(8, Usage { ns: 0, calls: 1, longest_ns: 0 })]);
        account.take(Event { pid: 1, at_ns: 70, call: Call::Wait });
        assert_eq!(account.finish(), [(8, Usage { ns: 60, calls: 0, longest_ns: 60 })]);
    }

    #[test]
    fn a_clock_that_goes_backwards_subtracts_no_time() {
        assert_eq!(account(&[(100, Some(8)), (40, None)])[&8], Usage { ns: 0, calls: 1, longest_ns: 0 });
    }
}
