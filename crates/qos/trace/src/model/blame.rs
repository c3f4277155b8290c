// SPDX-License-Identifier: MIT
//! Attributes waiting time: each slice is a cause for every client that waited during the slice.

use super::{Burst, Cause, Model, add};
use std::collections::VecDeque;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service, Time};

/// Maximum number of recent absences of the server that are kept, because they may overlap a wait.
const ABSENCES_KEPT: usize = 1024;
/// Maximum number of recent slices that are kept, because an arrival during a slice is recorded only after the slice.
const SLICES_KEPT: usize = 64;
/// Maximum number of recent server grabs that are kept, because they may overlap a wait.
const GRABS_KEPT: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct BlamedSlice {
    pub runs: usize,
    pub request: u32,
    pub long: bool,
    /// End of the previous slice.
    pub before: Time,
    pub start: Time,
    pub end: Time,
}

/// A server grab. Its end is [`Time::NEVER`] while the grab is held.
#[derive(Clone, Copy, Debug)]
pub struct Grab {
    pub holder: usize,
    pub start: Time,
    pub end: Time,
}

impl Model {
    /// Attributes every waiting client's time from the end of the previous slice to the end of this slice.
    pub(super) fn blame(&mut self, runs: usize, (request, long): (u32, bool), (start, end): (Time, Time)) {
        if self.without_causes {
            return;
        }
        let slice = BlamedSlice { runs, request, long, before: self.served_until.min(start), start, end };
        for at in 0..self.ready.len() {
            self.blame_on(self.ready[at], &slice);
        }
        keep(&mut self.slices, SLICES_KEPT, slice);
    }

    pub(super) fn blame_on(&mut self, key: usize, slice: &BlamedSlice) {
        let &BlamedSlice { runs, request, long, before, start, end } = slice;
        let since = self.clients[key].waits_since;
        let (idle_ns, absent_ns) = self.blame_grabs(key, before.max(since), start);
        let (behind_ns, withheld_ns) = if key == runs { (0, 0) } else { self.blame_grabs(key, start.max(since), end) };
        let absent_ns = absent_ns.saturating_add(withheld_ns);
        let client = &mut self.clients[key];
        if client.budget.is_some_and(|budget| budget.kind.is_hard() && budget.depleted) {
            return client.waited(Cause::HeldBack, idle_ns.saturating_add(absent_ns).saturating_add(behind_ns));
        }
        client.waited(Cause::Kernel, absent_ns);
        client.waited(Cause::Server, idle_ns);
        client.waited(Cause::Client { key: runs, request, long }, behind_ns);
    }

    /// Attributes the part of this interval during which other clients held the grab. Returns the remaining time, split
    /// into the time during which the server could run and the time during which it could not.
    pub(super) fn blame_grabs(&mut self, key: usize, from: Time, to: Time) -> (u64, u64) {
        let mut left_ns = to.since(from);
        for grab in self.grabs.iter().rev().take_while(|grab| grab.end > from).filter(|grab| grab.holder != key) {
            let held_ns = grab.end.min(to).since(grab.start.max(from)).min(left_ns);
            left_ns -= held_ns;
            self.clients[key].waited(Cause::Grab { key: grab.holder }, held_ns);
        }
        let absent_ns = self.absent_ns(from, to).min(left_ns);
        (left_ns - absent_ns, absent_ns)
    }

    /// Time during which the server was runnable but did not run.
    fn absent_ns(&self, from: Time, to: Time) -> u64 {
        let recent = self.absences.iter().rev().take_while(|absence| absence.1 > from);
        recent.map(|absence| absence.1.min(to).since(absence.0.max(from))).fold(0, u64::saturating_add)
    }

    pub(super) fn grab(&mut self, id: Option<ClientId>, at: Time) {
        for key in self.present.values().copied().collect::<Vec<_>>() {
            self.end_grab(key, at);
        }
        if let Some(key) = id.map(|id| self.create_unless(id, at)) {
            self.clients[key].grabbed_at = Some(at);
            self.clients[key].figures(|figures| figures.grabs += 1);
            keep(&mut self.grabs, GRABS_KEPT, Grab { holder: key, start: at, end: Time::NEVER });
        }
    }

    pub(super) fn end_grab(&mut self, key: usize, at: Time) {
        if let Some(since) = self.clients[key].grabbed_at.take() {
            let held_ns = at.since(since);
            if let Some(grab) = self.grabs.back_mut().filter(|grab| grab.holder == key) {
                grab.end = at;
            }
            self.clients[key].figures(|figures| {
                add(&mut figures.grabbed_ns, held_ns);
                figures.longest_grab_ns = figures.longest_grab_ns.max(held_ns);
            });
        }
    }

    /// The client that holds the server grab, and since when.
    pub fn grab_holder(&self) -> Option<(usize, Time)> {
        let grab = self.grabs.back().filter(|grab| grab.end == Time::NEVER)?;
        Some((grab.holder, grab.start))
    }

    /// The unfinished slice, up to the last record. If the server chose the client, the client is known only if it is
    /// the only ready one.
    pub fn unfinished(&self) -> Option<Event> {
        let (chosen, _, start) = self.running?;
        let only = if let [only] = self.ready[..] { Some(only) } else { None };
        let client = self.clients.get(chosen.or(only)?).filter(|client| client.ready_since.is_some())?;
        let service = Service { still_ready: true, ..Service::new(client.id, start, self.now) };
        (start < self.now).then_some(Event { at: self.now, what: Entry::Fact(Fact::Served(service)) })
    }

    /// Ends the unfinished slice and all bursts ([`Model::end_bursts`]).
    pub fn conclude(&mut self) {
        if let Some(event) = self.unfinished() {
            self.take(&event);
        }
        self.end_bursts();
    }

    /// Ends all bursts at the last record, with the causes of their waits until then.
    pub fn end_bursts(&mut self) -> Vec<Burst> {
        let now = self.now;
        let ready = self.ready.clone();
        for &key in &ready {
            let before = self.served_until.min(now);
            self.blame_on(key, &BlamedSlice { runs: key, request: 0, long: false, before, start: now, end: now });
            let waited_ns = now.since(self.clients[key].waits_since);
            self.clients[key].figures(|figures| {
                add(&mut figures.waited_ns, waited_ns);
                figures.longest_wait_ns = figures.longest_wait_ns.max(waited_ns);
            });
        }
        ready.into_iter().filter_map(|key| self.finish(key, now)).collect()
    }

    /// Records that the server has decided.
    pub(super) fn decided(&mut self, at: Time) {
        self.decisions += 1;
        self.requests_of_slice.clear();
        self.worked_ns = None;
        self.runnable_since = still_absent(self.runnable_since, at);
    }

    pub(super) fn switch(&mut self, from: u32, to: u32, still_runnable: bool, at: Time) {
        self.kernel = true;
        if from == self.server_pid {
            self.runnable_since = still_runnable.then_some(at);
        } else if still_runnable && self.local.contains(&from) {
            self.runnable.insert(from, at);
        }
        if let Some(since) = self.runnable.remove(&to) {
            let absent_ns = at.since(since);
            for client in self.clients.iter_mut().filter(|client| client.identity.pid == to && client.gone.is_none()) {
                client.figures(|figures| add(&mut figures.without_processor_ns, absent_ns));
            }
        }
        if to == self.server_pid {
            if let Some(since) = self.runnable_since.take() {
                keep(&mut self.absences, ABSENCES_KEPT, (since, at));
            }
        }
    }
}

/// Adds an element, and drops the oldest one if there are too many.
fn keep<T>(recent: &mut VecDeque<T>, most: usize, last: T) {
    recent.push_back(last);
    if recent.len() > most {
        recent.pop_front();
    }
}

/// The time since which the server waits for a processor. `None` if a later decision proves that the server ran, and
/// that kernel events were lost. Kernel events have a precision of a microsecond.
pub(crate) fn still_absent(since: Option<Time>, decided: Time) -> Option<Time> {
    const PRECISION_NS: u64 = 2_000;
    since.filter(|&since| decided.since(since) < PRECISION_NS)
}
