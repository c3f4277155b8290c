// SPDX-License-Identifier: MIT
//! From the records of a trace to the bursts of one client: what each of them waited for.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xqos_abi::ring::{Next, Reader};
use xqos_abi::trace::{Event, What};
use xqos_core::{ClientId, Fact, Service};

/// Makes bursts of records.
#[derive(Debug)]
pub(super) struct Recorder {
    base: u32,
    pids: Vec<u32>,
    /// Places in `slices`.
    places: BTreeMap<ClientId, usize>,
    /// Of ocbench, then of the load's clients.
    pub slices: Vec<Vec<Slice>>,
    /// ocbench's reservation whenever it changed.
    pub budgets: Vec<Budget>,
    pub bursts: Vec<Burst>,
    /// Records that are missing.
    pub lost: u64,
    /// The burst under way, and what others were served since the one before.
    burst: Option<Burst>,
    others: Vec<Slice>,
}

impl Recorder {
    /// ocbench is known by its first resource, the load's clients by their processes.
    pub fn new(base: u32, pids: Vec<u32>) -> Recorder {
        let slices = vec![Vec::new(); pids.len() + 1];
        let (places, budgets, bursts, others) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Recorder { base, pids, places, slices, budgets, bursts, burst: None, others, lost: 0 }
    }

    /// What the trace holds now.
    pub fn read(&mut self, trace: &mut Reader) {
        loop {
            match trace.read() {
                Next::Record(words) => Event::decode(words).into_iter().for_each(|event| self.take(event)),
                Next::Lost(records) => self.lost += records,
                Next::Nothing | Next::Ended => return,
            }
        }
    }

    pub fn take(&mut self, event: Event) {
        let at_ns = event.at.0;
        let is_own = |client: ClientId| self.places.get(&client) == Some(&0);
        match event.what {
            What::Identity { client, pid, base, .. } => self.identify(client, pid, base),
            What::Fact(Fact::Arrived { client }) if is_own(client) => {
                self.burst.get_or_insert(Burst { arrived_ns: at_ns, ..Burst::default() });
            }
            What::Budget { client, left_ns, deadline, depleted, .. } if is_own(client) => {
                self.budgets.push(Budget { at_ns, left_ns, deadline_ns: deadline.0, depleted });
                if let Some(burst) = &mut self.burst {
                    burst.deadline_ns.get_or_insert(deadline.0);
                    burst.depleted |= depleted;
                }
            }
            What::Fact(Fact::Served(Service { client, start, still_ready, .. })) => {
                let slice = Slice { begin_ns: start.0, end_ns: at_ns };
                let place = self.places.get(&client).copied();
                if let Some(place) = place {
                    self.slices[place].push(slice);
                }
                if place == Some(0) { self.serve(slice, still_ready) } else { self.others.push(slice) }
            }
            _ => {}
        }
    }

    fn identify(&mut self, client: ClientId, pid: u32, base: u32) {
        let load = self.pids.iter().position(|&one| one == pid).map(|index| index + 1);
        if let Some(place) = if base == self.base { Some(0) } else { load } {
            self.places.insert(client, place);
        }
    }

    fn serve(&mut self, slice: Slice, still_ready: bool) {
        let Some(mut burst) = self.burst.take() else { return };
        burst.served_ns += slice.length_since(burst.arrived_ns);
        if still_ready {
            self.burst = Some(burst);
            return;
        }
        burst.done_ns = slice.end_ns;
        burst.behind_ns = self.others.drain(..).map(|other| other.length_since(burst.arrived_ns)).sum();
        self.bursts.push(burst);
    }
}

/// Times by the server's clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Slice {
    pub begin_ns: u64,
    pub end_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Burst {
    pub arrived_ns: u64,
    pub done_ns: u64,
    /// ocbench's own slices.
    pub served_ns: u64,
    /// Others' slices since the arrival.
    pub behind_ns: u64,
    /// At the arrival; `None` without a reservation.
    pub deadline_ns: Option<u64>,
    pub depleted: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Budget {
    pub at_ns: u64,
    pub left_ns: i64,
    pub deadline_ns: u64,
    pub depleted: bool,
}

impl Burst {
    pub fn delay_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.arrived_ns)
    }

    pub fn neither_ns(&self) -> u64 {
        self.delay_ns().saturating_sub(self.served_ns + self.behind_ns)
    }
}

impl Slice {
    fn length_since(self, since_ns: u64) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns.max(since_ns))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use xqos_core::ReservationKind;
    use xqos_core::Time;

    pub const OWN: ClientId = ClientId(3);
    pub const OTHER: ClientId = ClientId(4);
    const MS: u64 = 1_000_000;

    pub fn identity(client: ClientId, pid: u32, base: u32) -> (u64, What) {
        (0, What::Identity { client, pid, base, uid: 0 })
    }

    pub fn arrived(at_ms: u64) -> (u64, What) {
        (at_ms, What::Fact(Fact::Arrived { client: OWN }))
    }

    pub fn served(client: ClientId, from_ms: u64, to_ms: u64, still_ready: bool) -> (u64, What) {
        let service = Service::of(client, Time(from_ms * MS), Time(to_ms * MS));
        (to_ms, What::Fact(Fact::Served(Service { requests: 1, last_request: 70, bytes: 24, still_ready, ..service })))
    }

    pub fn budget(at_ms: u64, left_ms: i64, deadline_ms: u64) -> (u64, What) {
        let (left_ns, deadline) = (left_ms * MS as i64, Time(deadline_ms * MS));
        (at_ms, What::Budget { client: OWN, kind: ReservationKind::Hard, depleted: left_ms <= 0, left_ns, deadline })
    }

    /// Of a trace with these events, at milliseconds.
    pub fn recorder(events: &[(u64, What)]) -> Recorder {
        let mut recorder = Recorder::new(0x40, vec![77]);
        let known = [identity(OWN, 1, 0x40), identity(OTHER, 77, 0x60), identity(ClientId(5), 1, 0x80)];
        for &(at_ms, what) in known.iter().chain(events) {
            recorder.take(Event { at: Time(at_ms * MS), what });
        }
        recorder
    }

    #[test]
    fn what_a_burst_waited_for_is_told_apart() {
        let events = [
            served(OTHER, 2, 4, true),
            // The slice in which it came was under way, and was written down before.
            served(OTHER, 5, 13, true),
            arrived(10),
            budget(10, 3, 20),
            served(OWN, 14, 15, true),
            served(OTHER, 15, 16, false),
            served(OWN, 17, 21, false),
            budget(21, -2, 30),
            served(OTHER, 21, 25, true),
        ];
        let expected = Burst {
            arrived_ns: 10 * MS,
            done_ns: 21 * MS,
            served_ns: 5 * MS,
            behind_ns: 4 * MS,
            deadline_ns: Some(20 * MS),
            depleted: false,
        };
        assert_eq!(recorder(&events).bursts, [expected]);
        assert_eq!((expected.delay_ns(), expected.neither_ns()), (11 * MS, 2 * MS));
    }
}
