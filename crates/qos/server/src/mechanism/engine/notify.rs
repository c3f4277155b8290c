// SPDX-License-Identifier: MIT
//! Output: events of the extension, trace records, and lines in the log.

use super::Engine;
use super::slots::Notified;
use crate::mechanism::action::Action;
use crate::mechanism::host::{Host, ObservedRequests};
use crate::mechanism::longest::RequestRanking;
use crate::mechanism::tracer::TraceHandle;
use xqos_abi::trace::{Entry, Level};
use xqos_abi::{LongRequest, Notify, NotifyKind, flag_of, us};
use xqos_core::{ClientId, PolicyKind, Service, Time, Usage};

/// The shortest time between two depletion or miss events for one client.
const NOTIFY_INTERVAL_NS: u64 = 100_000_000;
/// Grabs up to this length are not watched, because window managers make many of them. During a longer grab, reported
/// waits are too short by at most this time.
const SHORT_GRAB_NS: u64 = 5_000_000;
/// If the server was off the processor for less than this time, the whole slice counts as work.
const WITHOUT_PROCESSOR_NS: u64 = 20_000;

impl<H: Host> Engine<H> {
    pub fn select_events(&mut self, id: ClientId, mask: u32) {
        self.listeners.retain(|&(other, _)| other != id);
        if mask != 0 {
            self.listeners.push((id, mask));
        }
    }

    /// Sends an XqosNotify event to each client that selected it.
    pub fn notify(&mut self, kind: NotifyKind, about: ClientId, count: u32) {
        if self.listeners.is_empty() {
            return;
        }
        let Some(subject) = self.slot(about) else { return };
        let state = self.scheduler.reservation(about);
        let event = Notify {
            kind,
            client: subject.base,
            pid: subject.identity.pid,
            budget_us: state.map_or(0, |state| us(state.reservation.budget_ns)),
            period_us: state.map_or(0, |state| us(state.reservation.period_ns)),
            flags: state.map_or(0, |state| flag_of(state.reservation.kind)),
            count,
            time_ms: (self.now.0 / 1_000_000) as u32,
        };
        for &(listener, _) in self.listeners.iter().filter(|&&(_, mask)| mask & kind.mask() != 0) {
            self.actions.push_back(Action::Notify { listener, event });
        }
    }

    pub(super) fn notify_depletion(&mut self, id: ClientId, now: Time) {
        if self.listeners.is_empty() {
            return;
        }
        let (Some(Usage { depletions, misses, .. }), Some(slot)) = (self.scheduler.usage(id), self.slot_mut(id)) else {
            return;
        };
        let before = slot.notified;
        let new = (depletions.wrapping_sub(before.depletions), misses.wrapping_sub(before.misses));
        if new == (0, 0) || now.since(before.at) < NOTIFY_INTERVAL_NS {
            return;
        }
        slot.notified = Notified { depletions, misses, at: now };
        if new.0 > 0 {
            self.notify(NotifyKind::Depleted, id, new.0);
        }
        if new.1 > 0 {
            self.notify(NotifyKind::Missed, id, new.1);
        }
    }

    /// Switches the observation of requests on or off: `classic` counts them, a trace of level `requests` times them.
    pub fn observe_requests(&mut self) {
        let counted = self.scheduler.policy() == PolicyKind::Classic && self.server_known;
        let timed = self.scheduler.trace.level() == Some(Level::Requests);
        self.act(Action::Observe(ObservedRequests { counted, timed, exact: self.scheduler.trace.is_on() }));
    }

    /// Starts a trace for a client, and records the identity of every client for the readers of the trace.
    pub fn start_trace(&mut self, reader: ClientId, level: Level, capacity: u32) -> std::io::Result<TraceHandle> {
        let snapshot = self.scheduler.snapshot();
        let handed = self.scheduler.trace.begin(reader, level, capacity, &snapshot, self.now)?;
        for id in self.ids() {
            self.note_identity(id);
        }
        self.observe_requests();
        Ok(handed)
    }

    pub fn stop_trace(&mut self, reader: ClientId) {
        self.scheduler.trace.end(reader, self.now);
        self.observe_requests();
    }

    pub(super) fn note_identity(&mut self, id: ClientId) {
        let trace = &mut self.scheduler.trace;
        let Some(slot) = self.slots.get(usize::from(id.0)).and_then(Option::as_ref).filter(|_| trace.is_on()) else {
            return;
        };
        let (at, pid) = (self.now, u32::try_from(slot.identity.pid).unwrap_or(0));
        trace.note(at, Entry::Identity { client: id, pid, base: slot.base, uid: slot.identity.uid });
        for (part, chunk) in slot.program.as_bytes().chunks(16).take(4).enumerate() {
            let mut bytes = [0; 16];
            bytes[..chunk.len()].copy_from_slice(chunk);
            trace.note(at, Entry::Name { client: id, part: part as u8, bytes });
        }
    }

    /// Records the request of a slice with exactly one if it is the client's longest or among the server's longest.
    /// `in_parts_ns`: the processor time of a request that was executed in parts, and of its longest part.
    pub(super) fn note_longest(&mut self, id: ClientId, service: &Service, in_parts_ns: Option<(u64, u64)>) {
        let (slice_ns, request, floor_ns) =
            (service.end.since(service.start), service.last_request, self.longest.floor_ns());
        let Some(slot) = self.slots.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        let (length, part_ns) = in_parts_ns.unwrap_or((slice_ns, slice_ns));
        if length <= slot.longest_request_ns.min(floor_ns) && part_ns <= slot.longest_part_ns {
            return;
        }
        let measured =
            if length < RequestRanking::MIN_NS { length } else { self.processor.used(length, self.host.cpu_ns()) };
        let (ns, part_ns) = in_parts_ns.unwrap_or((measured, measured));
        slot.longest_part_ns = slot.longest_part_ns.max(part_ns);
        if ns > slot.longest_request_ns {
            (slot.longest_request_ns, slot.longest_request) = (ns, request);
        }
        if ns > floor_ns {
            let (at_ns, client, pid) = (service.end.0, slot.base, slot.identity.pid);
            let make = || LongRequest { ns, at_ns, client, pid, request, name: slot.program.to_string() };
            self.longest.add(ns, client, request, make);
        }
    }

    /// When to check the grab next: to watch idle clients, or to name the holder in the log.
    pub(super) fn grab_check_at(&self) -> Time {
        let Some(began) = self.scheduler.grab_began() else { return Time::NEVER };
        let watch_at = if self.grab_watched.is_some() { Time::NEVER } else { began.after(SHORT_GRAB_NS) };
        let is_to_report = self.grab_limit_ns > 0 && !self.grab_reported;
        let report_at = if is_to_report { began.after(self.grab_limit_ns) } else { Time::NEVER };
        watch_at.min(report_at)
    }

    /// Watches the clients that wait for a long grab to end, and logs the holder once if the grab exceeds the limit.
    pub(super) fn watch_grab(&mut self, now: Time) {
        let Some((holder, began)) = self.scheduler.grab().zip(self.scheduler.grab_began()) else { return };
        if self.grab_watched.is_none() && now >= began.after(SHORT_GRAB_NS) {
            self.grab_watched = Some(holder);
            for id in self.ids() {
                if id != holder && self.slot(id).is_some_and(|slot| !slot.linked) {
                    self.watch_client(id, self.scheduler.rank_on_arrival(id, now));
                }
            }
        }
        if self.grab_limit_ns == 0 || self.grab_reported || now < began.after(self.grab_limit_ns) {
            return;
        }
        self.grab_reported = true;
        if let Some(slot) = self.slot(holder) {
            let (program, pid, ms) = (&slot.program, slot.identity.pid, self.grab_limit_ns / 1_000_000);
            let base = slot.base;
            let line = format!(
                "{program} (pid {pid}, client {base:#x}) has held the server grab for more than {ms} ms; no other client is served meanwhile"
            );
            self.log(line);
        }
    }

    /// Records in the trace how long the server ran during a slice, if the kernel ran something else meanwhile.
    pub(super) fn note_processor(&mut self, service: &Service, since: Option<u64>) {
        let length_ns = service.end.since(service.start);
        let Some(since) = since.filter(|_| length_ns > WITHOUT_PROCESSOR_NS) else { return };
        let (client, ns) = (service.client, self.host.cpu_ns().saturating_sub(since));
        if length_ns > ns.saturating_add(WITHOUT_PROCESSOR_NS) {
            self.scheduler.trace.note(service.end, Entry::Processor { client, ns });
        }
    }
}
