// SPDX-License-Identifier: MIT
//! Reconstructs decisions from a trace: for each slice, its client, its length by the server's clock, and the clients
//! that were ready and had budget.
//!
//! The facts of the trace are fed to a scheduler here, which then has the same state as the server's at each decision.
//! The results do not depend on the speed or load of the machine.

use crate::fixture::Fixture;
use std::collections::BTreeMap;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::snapshot::Collector;
use xqos_abi::trace::{Entry, Event, Level};
use xqos_client::Control;
use xqos_core::{ClientId, Fact, Mode, ReservationState, Scheduler, Service, Time};

/// A slice, and the state when it was decided.
#[derive(Clone, Debug)]
pub struct Slice {
    pub client: u32,
    /// False if the server chose, as it does without contention.
    pub is_chosen: bool,
    /// True if the client was chosen for its reservation.
    pub is_reserved: bool,
    pub decided: Time,
    pub ns: u64,
    /// It was ended for another client.
    pub ended_early: bool,
    arrived: Vec<u32>,
    ready: Vec<u32>,
    reservations: Vec<(u32, ReservationState)>,
}

impl Slice {
    /// Returns true if this client arrived during the slice and the server noticed that before the end of the slice.
    pub fn was_seen_to_arrive(&self, base: u32) -> bool {
        self.arrived.contains(&base)
    }

    pub fn was_ready(&self, base: u32) -> bool {
        self.ready.contains(&base)
    }

    pub fn reservation(&self, base: u32) -> Option<&ReservationState> {
        self.reservations.iter().find(|(one, _)| *one == base).map(|(_, state)| state)
    }
}

/// A trace that runs until [`end`](Self::end).
#[derive(Debug)]
pub struct Decisions {
    control: Control,
    reader: RingReader,
}

impl Decisions {
    pub fn of(fixture: &Fixture) -> Decisions {
        let control = fixture.control().unwrap();
        let reader = control.start_trace(Level::Slices, 0).unwrap();
        Decisions { control, reader }
    }

    /// All slices since the start of the trace.
    pub fn end(mut self) -> Vec<Slice> {
        self.control.stop_trace().unwrap();
        let mut replay = Replay::default();
        loop {
            match self.reader.read() {
                Next::Record(words) => replay.take(Event::decode(words).unwrap_or_else(|| panic!("{words:x?}"))),
                Next::Lost(records) => panic!("{records} records of the trace were overwritten"),
                Next::Nothing | Next::Ended => return replay.slices,
            }
        }
    }
}

#[derive(Default)]
struct Replay {
    scheduler: Option<Scheduler>,
    snapshot: Collector,
    bases: BTreeMap<ClientId, u32>,
    chosen: Option<(Option<ClientId>, Slice)>,
    slices: Vec<Slice>,
}

impl Replay {
    fn take(&mut self, event: Event) {
        if let Some(words) = self.snapshot.take(&event.what) {
            self.scheduler = Scheduler::restore(&words);
        }
        match event.what {
            Entry::Identity { client, base, .. } => _ = self.bases.insert(client, base),
            Entry::Dispatch { client, mode, .. } => {
                self.chosen = Some((client, self.decided(event.at, mode, client.is_some())))
            }
            Entry::Fact(Fact::Served(service)) => self.served(&service),
            Entry::Fact(Fact::Arrived { client }) => self.arrived(client, event.at),
            _ => {}
        }
        let Some(scheduler) = &mut self.scheduler else { return };
        if matches!(event.what, Entry::Dispatch { .. }) {
            scheduler.decide(event.at);
        }
        if let Some(fact) = event.what.fact() {
            scheduler.handle(event.at, fact);
        }
    }

    fn decided(&self, decided: Time, mode: Mode, is_chosen: bool) -> Slice {
        let scheduler = self.scheduler.as_ref().expect("a trace begins with a snapshot");
        let ready = self.bases.iter().filter(|(id, _)| scheduler.is_ready(**id)).map(|(_, &base)| base).collect();
        let reservations =
            self.bases.iter().filter_map(|(&id, &base)| Some((base, scheduler.reservation_in_use(id)?))).collect();
        let is_reserved = mode == Mode::Reserved;
        let (ended_early, arrived) = (false, Vec::new());
        Slice { client: 0, is_chosen, is_reserved, decided, ns: 0, ended_early, arrived, ready, reservations }
    }

    /// Records an arrival. Its time is earlier than the end of the last slice if it was noticed during that slice.
    fn arrived(&mut self, client: ClientId, at: Time) {
        let (Some(slice), Some(&base)) = (self.slices.last_mut(), self.bases.get(&client)) else { return };
        if at > slice.decided && at < slice.decided.after(slice.ns) {
            slice.arrived.push(base);
        }
    }

    /// Records the end of a slice. Its client must be the chosen client, unless the server chose.
    fn served(&mut self, service: &Service) {
        let Service { client, start, end, ended_early, .. } = *service;
        // The slice in which the trace started has no recorded decision.
        let Some((chosen, slice)) = self.chosen.take() else { return };
        assert!(chosen.is_none_or(|chosen| chosen == client), "{chosen:?} was chosen, {client:?} served");
        let client = self.bases.get(&client).copied().unwrap_or_default();
        let ns = end.since(start);
        self.slices.push(Slice { client, ns, ended_early, ..slice });
    }
}

/// Checks that the only busy client with a reservation is preferred while it has budget, and only then.
pub fn check_reservation(slices: &[Slice], base: u32) {
    check_reservation_of(slices, &[base]);
}

/// Like [`check_reservation`], for a reservation that several clients share.
pub fn check_reservation_of(slices: &[Slice], bases: &[u32]) {
    let mut used_ns = 0;
    let began = slices.first().expect("slices").decided;
    for slice in slices {
        let state = slice.reservation(bases[0]).expect("it is reserved");
        let is_theirs = bases.contains(&slice.client);
        let reservation = state.reservation;
        if state.depleted {
            assert!(slice.decided < state.deadline, "not replenished in time: {slice:?}");
            assert!(!is_theirs || !slice.is_reserved && !reservation.kind.is_hard(), "nothing was left: {slice:?}");
        } else if bases.iter().any(|&base| slice.was_ready(base)) {
            assert!(is_theirs && slice.is_reserved, "it had budget: {slice:?}");
        }
        if is_theirs && slice.is_reserved {
            // The clients have at most one budget left from before and one for each period that has begun. An overrun
            // is subtracted from later budgets.
            let periods = 2 + slice.decided.since(began) / reservation.period_ns;
            assert!(used_ns < periods * reservation.budget_ns, "{used_ns} ns used in {periods} periods: {slice:?}");
            used_ns += slice.ns;
        }
    }
}

/// Checks that the weighted times of any two clients, while all are busy, differ by at most one slice of each client
/// (the bound of start-time fair queueing) plus the credit of an idle client.
pub fn check_fairness<const N: usize>(slices: &[Slice], bases: &[u32; N], weights: [u32; N]) {
    const CREDIT_NS: u64 = 3_000_000;
    let all_ready = |slice: &Slice| bases.iter().all(|&base| slice.was_ready(base));
    // After a grab, the server may notice waiting clients one by one. Check the longest span with all of them ready.
    let together = slices.chunk_by(|one, next| all_ready(one) == all_ready(next)).filter(|span| all_ready(&span[0]));
    let together = together.max_by_key(|span| span.len()).expect("all are busy");
    // The client of the last slice before this span is ahead by that slice.
    let before = slices.iter().rev().filter(|slice| slice.decided < together[0].decided);
    let last = before.map(|slice| (slice.client, slice.ns)).find(|(client, _)| bases.contains(client));
    let mut longest_ns = last.map_or(0, |(_, ns)| ns);
    let (mut paid, mut count) = ([0; N], 0);
    for slice in together {
        // The client that held the grab may still send a request to see whether the server is free.
        let Some(at) = bases.iter().position(|&base| base == slice.client) else { continue };
        paid[at] += slice.ns * 100 / u64::from(weights[at]);
        longest_ns = longest_ns.max(slice.ns);
        let apart_ns = paid.iter().max().unwrap() - paid.iter().min().unwrap();
        assert!(apart_ns <= 2 * longest_ns + CREDIT_NS, "{paid:?} ns paid, slices of {longest_ns} ns");
        count += 1;
    }
    assert!(count > 9, "only {count} slices");
}
