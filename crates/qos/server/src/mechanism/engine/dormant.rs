// SPDX-License-Identifier: MIT
//! Dormancy: while no decision is needed, the engine only records which client was served, and for how long.
//!
//! Most servers are idle most of the time, and most decisions have one candidate. Then the order of service, the queues
//! and early ends of slices do not matter ([`Scheduler::can_be_dormant`](xqos_core::Scheduler::can_be_dormant)). Every
//! entry of the engine that could change this calls [`Engine::awaken`] first.
//!
//! Invariant: while the engine is dormant, the linked clients are those in `arrived`.

use super::Engine;
use super::running::SERVER_INTERVAL_NS;
use crate::mechanism::action::Action;
use crate::mechanism::host::{Host, Work};
use xqos_core::{Choice, ClientId, Fact, Service, Slice, Time};

#[derive(Debug, Default)]
pub struct Dormancy {
    is_on: bool,
    /// The clients whose arrivals the scheduler does not know, with the beginning of their waits.
    arrived: Vec<(ClientId, Time)>,
}

impl Dormancy {
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn memory_bytes(&self) -> usize {
        self.arrived.capacity() * size_of::<(ClientId, Time)>()
    }

    /// Makes room for one client more.
    pub fn connected(&mut self, clients: usize) {
        self.arrived.reserve(clients.saturating_sub(self.arrived.len()));
    }
}

impl<H: Host> Engine<H> {
    /// Ends dormancy: tells the scheduler what it missed.
    pub fn awaken(&mut self) {
        if !std::mem::take(&mut self.dormancy.is_on) {
            return;
        }
        self.scheduler.awaken(self.now);
        while let Some((client, since)) = self.dormancy.arrived.pop() {
            self.scheduler.handle(since, Fact::Arrived { client });
        }
    }

    /// Begins a slice of the server's choice among the listed ready clients, if the engine is or can be dormant.
    /// Returns false, and is not dormant, if a decision is needed.
    pub(super) fn doze(&mut self, now: Time) -> bool {
        if !self.can_doze(now) || !self.note_arrivals(now) {
            self.awaken();
            return false;
        }
        if self.ready.is_empty() {
            return true;
        }
        let was_on = std::mem::replace(&mut self.dormancy.is_on, true);
        if !was_on || !self.host.ends_slices_itself() {
            self.act(Action::Serve { slice: Slice::of_server(now), at: now });
        }
        if let [id] = self.ready[..] {
            self.scheduler.dormant_slice_begins(id, now);
        }
        self.totals.decisions += 1;
        self.processor.slice_begins(now, self.totals.busy_ns, false, || self.host.cpu_ns());
        self.running = Some(self.new_slice(Choice::Server, now));
        true
    }

    fn can_doze(&self, now: Time) -> bool {
        if !self.dormancy.is_on {
            let nobody_listens = self.listeners.is_empty() && self.owed_answers.is_empty() && self.lender.is_none();
            let is_watched = self.grab_watched.is_some() || self.scheduler.trace.is_on();
            if !nobody_listens || is_watched || self.linked > 0 || self.wake_at != Time::NEVER {
                return false;
            }
        }
        let ends_alike =
            || self.host.ends_slices_itself() && self.scheduler.parameters().slice_ns == SERVER_INTERVAL_NS;
        self.scheduler.can_be_dormant(&self.ready, now) && (self.scheduler.is_servers_choice() || ends_alike())
    }

    /// Notes the arrivals of the listed clients. Returns false if the scheduler has to know of one.
    fn note_arrivals(&mut self, now: Time) -> bool {
        if self.ready.iter().any(|&id| self.scheduler.is_watched(id)) {
            return false;
        }
        for at in 0..self.ready.len() {
            let id = self.ready[at];
            if self.slot(id).is_some_and(|slot| !slot.linked) {
                self.set_linked(id, true);
                self.dormancy.arrived.push((id, now));
            }
        }
        let mut at = 0;
        while let Some(&(id, _)) = self.dormancy.arrived.get(at).filter(|_| self.linked != self.ready.len()) {
            if self.ready.contains(&id) {
                at += 1;
            } else {
                self.dormancy.arrived.swap_remove(at);
                self.set_linked(id, false);
            }
        }
        true
    }

    /// Records a slice that began in dormancy. Returns false, and is not dormant, if the scheduler has to know of it.
    pub(super) fn dozed(&mut self, work: &Work, start: Time, end: Time) -> bool {
        let Work { client, requests, bytes, last_request, still_ready, is_cut, in_parts_ns } = *work;
        let place = self.dormancy.arrived.iter().position(|&(id, _)| id == client);
        let Some(place) = place.filter(|_| !still_ready && !is_cut && in_parts_ns.is_none()) else {
            self.awaken();
            return false;
        };
        let (_, since) = self.dormancy.arrived.swap_remove(place);
        self.set_linked(client, false);
        let service = Service { requests, bytes, last_request, still_ready, ..Service::new(client, start, end) };
        self.scheduler.served_dormant(&service, since);
        if requests == 1 {
            self.note_longest(client, &service, None);
        }
        true
    }
}
