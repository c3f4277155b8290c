// SPDX-License-Identifier: MIT
//! Events: clients connect, are served, redraw and disconnect; holds begin and end.

use super::{ClientRecord, LONG_SLICE_NS, Scheduler};
use crate::desktop::{RESTED_NS, Role};
use crate::pacing::{Hold, Mark};
use crate::policy::{Facts, Served};
use crate::{ClientId, FactOutcome, Holder, Mode, Service, Time, Usage};

impl Scheduler {
    pub(super) fn connected(&mut self, client: ClientId, descriptor: u32, now: Time) {
        self.gone(client, now);
        let slot = client.slot();
        if self.clients.len() <= slot {
            self.clients.resize_with(slot + 1, || None);
        }
        self.desktop.ready.reserve(slot);
        self.idle.reserve(slot);
        self.paced.reserve(slot);
        self.unsettled.reserve(slot + 1 - self.unsettled.len().min(slot));
        self.reservations.connected(client);
        let facts = Facts::new(descriptor);
        let fresh = ClientRecord { facts, expected_ns: u64::MAX, ..ClientRecord::default() };
        let usage = Usage { connected: now, ..Usage::default() };
        self.clients[slot] = Some(ClientRecord { waits_since: now, idle_since: now, usage, ..fresh });
        self.connected += 1;
        self.policy.join(client, &facts);
        self.make_room(client);
        self.requeue(client, now);
    }

    pub(super) fn gone(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client_mut(client) else { return };
        // Mark the client as idle first; otherwise it would count as arriving when it joins its group's reservation.
        record.ready = false;
        self.end_reservation(Holder::Client(client), now);
        self.set_role(client, Role::NONE, now);
        self.answered(client, now, 0);
        self.paced.remove(client);
        let group = self.policy.group(client);
        self.waiting.remove(client);
        self.policy.left(client);
        self.settle(group);
        self.desktop.ready.remove(client);
        self.idle.remove(client);
        self.reservations.gone(client, now);
        if self.grab == Some(client) {
            self.grab = None;
        }
        if self.running.is_some_and(|(running, _)| running == client) {
            self.running = None;
        }
        self.unwatch(client);
        self.clients[client.slot()] = None;
        for record in self.clients.iter_mut().flatten() {
            record.works_for = record.works_for.filter(|&payer| payer != client);
        }
        self.connected -= 1;
    }

    pub(super) fn arrived(&mut self, client: ClientId, at: Time) {
        let Some(record) = self.client_mut(client) else { return };
        if record.ready {
            return;
        }
        record.ready = true;
        record.waits_since = at;
        let idle_ns = at.since(record.idle_since);
        record.rested_ns = record.rested_ns.max(idle_ns);
        self.reservations.arrived(client);
        self.policy.ready(client, idle_ns);
        self.unwatch(client);
        self.requeue(client, at);
    }

    pub(super) fn withdrawn(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client_mut(client) else { return };
        if record.ready {
            record.ready = false;
            record.idle_since = now;
            self.requeue(client, now);
        }
    }

    pub(super) fn input(&mut self, client: ClientId, now: Time) {
        if let Some(record) = self.client_mut(client) {
            record.rested_ns = u64::MAX;
            self.policy.noticed(client, true);
            self.requeue(client, now);
        }
    }

    pub(super) fn exposed(&mut self, client: ClientId, cause: Option<ClientId>, now: Time) -> FactOutcome {
        let Some(record) = self.client(client) else { return FactOutcome::None };
        let is_marked = record.exposing.is_some_and(|mark| now < mark.until);
        self.policy.noticed(client, false);
        self.requeue(client, now);
        if is_marked {
            return FactOutcome::None;
        }
        let limit_ns = self.pacing.mark_ns();
        let before = self.client(client).and_then(|record| record.exposing);
        let mid_redraw = before.is_some_and(|mark| mark.is_mid_redraw(limit_ns, now));
        self.answered(client, now, 0);
        let cause = cause.filter(|&cause| cause != client && self.pacing.is_on());
        let unheld = cause.filter(|&cause| self.paced_until(cause).is_none());
        let holds = cause.and_then(|cause| Some((cause, self.hold(cause, now)?)));
        let until = now.after(limit_ns);
        self.change(client, |record| record.exposing = Some(Mark { until, holds, mid_redraw, redraw_ended: false }));
        unheld.and_then(|cause| self.paced_until(cause)).map_or(FactOutcome::Changed, FactOutcome::Held)
    }

    pub(super) fn caused_work(&mut self, client: ClientId) -> bool {
        if self.is_servers_choice() {
            return false;
        }
        let is_rested = |record: &&mut ClientRecord| record.rested_ns >= RESTED_NS && !record.role.is_any();
        let Some(record) = self.client_mut(client).filter(is_rested) else { return false };
        record.rested_ns = 0;
        self.desktop.called();
        true
    }

    pub(super) fn grabbed(&mut self, by: Option<ClientId>, now: Time) {
        if let Some(record) = self.grab.and_then(|client| self.client_mut(client)) {
            if let Some(since) = record.grabbed_at.take() {
                record.usage.held_grab(now.since(since));
            }
        }
        let by = by.filter(|&client| self.client(client).is_some());
        self.grab = by;
        if let Some(record) = by.and_then(|client| self.client_mut(client)) {
            record.grabbed_at = Some(now);
            record.usage.grabs += 1;
        }
    }

    pub(super) fn served(&mut self, service: &Service) {
        let picked = self.running.take();
        let Some(record) = self.client_mut(service.client) else { return };
        let length_ns = service.end.since(service.start);
        let mode = match picked {
            Some((client, mode)) if client == service.client => mode,
            _ => Mode::BestEffort,
        };
        record.account(service, record.waits_since, mode);
        record.waits_since = service.end;
        let has_answered = !service.still_ready && service.requests > 0 && record.exposing.is_some();
        let is_servers_choice = self.is_servers_choice();
        if mode == Mode::Reserved {
            self.charge_reservation(service.client, length_ns, service.end);
        } else if !self.is_desktop_client(service.client) {
            let served = Served { length_ns, requests: service.requests, bytes: service.bytes };
            if picked.is_none() && is_servers_choice {
                // Advance virtual time. Otherwise the time that a client used without contention would count against it
                // once contention begins.
                self.policy.picked(service.client, 1, service.start);
            }
            self.policy.served(service.client, &served);
        } else {
            self.charge_cause(service.client, length_ns, service.end);
            if !is_servers_choice {
                let (role, others_wait) = (self.role(service.client), self.others_wait());
                self.desktop.served(role, (service.start, service.end), others_wait);
            }
        }
        self.charge_cap(service, mode);
        if length_ns > LONG_SLICE_NS {
            self.last_long_slice = Some(service.end);
        }
        self.requeue(service.client, service.end);
        if has_answered {
            self.redrawn(service.client, service.end);
        }
    }

    /// A window manager's service is charged to the client that it works for, a compositor's service to no client.
    pub(super) fn charge_cause(&mut self, manager: ClientId, length_ns: u64, end: Time) {
        let Some(record) = self.client(manager).filter(|record| !record.role.compositor) else { return };
        if let Some(payer) = record.works_for.filter(|&payer| !self.is_desktop_client(payer)) {
            self.policy.served(payer, &Served { length_ns, requests: 0, bytes: 0 });
            self.requeue(payer, end);
            self.change(payer, |it| it.usage.charged_ns = it.usage.charged_ns.saturating_add(length_ns));
            self.change(manager, |it| it.usage.charged_ns = it.usage.charged_ns.saturating_sub(length_ns));
        }
    }

    fn charge_reservation(&mut self, client: ClientId, ns: u64, end: Time) {
        let Some(record) = self.client(client) else { return };
        // A cap is an upper limit, which the paper's soft rule would exceed.
        let (weight, is_capped) = (record.facts.weight, self.caps.ppm(record.facts.group) > 0);
        let paid = self.reservations.served(client, (ns, end), weight, is_capped);
        if let (Some((depleted, missed)), Some(record)) = (paid, self.client_mut(client)) {
            record.usage.depletions += u32::from(depleted);
            record.usage.misses += u32::from(missed);
        }
    }

    /// Resumes one client or group whose hold has ended.
    pub(super) fn replenish(&mut self, now: Time) -> FactOutcome {
        if let Some((_, client)) = self.paced.peek().filter(|&(at, _)| at <= now) {
            self.end_hold(client, now);
            return FactOutcome::Resumed(client);
        }
        if let Some(client) = self.uncap_one(now) {
            return FactOutcome::Resumed(client);
        }
        match self.reservations.replenish(now) {
            Some(Holder::Group(group)) => FactOutcome::GroupResumed(group),
            Some(Holder::Client(client)) => FactOutcome::Resumed(client),
            None => FactOutcome::None,
        }
    }

    /// Charges a service to the group's cap. If that exhausts it, all clients of the group wait.
    fn charge_cap(&mut self, service: &Service, mode: Mode) {
        let Some(record) = self.client(service.client) else { return };
        let (group, stops) = (record.facts.group, mode == Mode::BestEffort && !record.role.is_any());
        if !self.caps.charge(group, service.start, service.end.since(service.start), stops) {
            return;
        }
        self.ids().for_each(|client| self.update_cap(client, service.end));
    }

    pub(super) fn update_cap(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let capped = self.caps.is_used_up(record.facts.group) && !record.role.is_any();
        if record.capped != capped {
            self.change(client, |record| record.capped = capped);
            self.requeue(client, now);
        }
    }

    /// Resumes one client of a group whose cap has a new period.
    fn uncap_one(&mut self, now: Time) -> Option<ClientId> {
        if self.caps.is_empty() {
            return None;
        }
        self.caps.replenish(now);
        let client = self.uncapped()?;
        self.update_cap(client, now);
        Some(client)
    }

    /// True if a client is still held back by a cap that is no longer used up, because
    /// [`Fact::Replenish`](crate::Fact::Replenish) resumes one client per call.
    pub fn is_uncapped_to_resume(&self) -> bool {
        !self.caps.is_empty() && self.uncapped().is_some()
    }

    fn uncapped(&self) -> Option<ClientId> {
        let has_gone_on = |record: &ClientRecord| record.capped && !self.caps.is_used_up(record.facts.group);
        self.ids().find(|&client| self.client(client).is_some_and(has_gone_on))
    }

    /// Holds a client that uncovers another client. Returns the beginning of the hold; `None` if the client is not to
    /// be held.
    pub(super) fn hold(&mut self, client: ClientId, now: Time) -> Option<Time> {
        let pacing = self.pacing;
        if self.reservations.state_of(client).is_some() {
            return None;
        }
        let record = self.client_mut(client)?;
        if let Some(hold) = record.paced.as_mut() {
            hold.awaited += 1;
            return Some(hold.since);
        }
        let Some(until) = pacing.held_until(record.resumed, now) else {
            record.resumed = now;
            return None;
        };
        record.paced = Some(Hold { since: now, until, awaited: 1 });
        self.paced.set(client, until);
        self.requeue(client, now);
        Some(now)
    }

    /// A client has redrawn or is not expected to redraw. The client that waits for it continues after `settling_ns`.
    pub(super) fn answered(&mut self, client: ClientId, now: Time, settling_ns: u64) {
        let Some(mark) = self.client_mut(client).and_then(|record| record.exposing.take()) else { return };
        let Some((cause, since)) = mark.holds else { return };
        let hold = self.client_mut(cause).and_then(|record| record.paced.as_mut());
        let Some(hold) = hold.filter(|hold| hold.since == since && hold.awaited > 0) else { return };
        hold.awaited -= 1;
        if hold.awaited == 0 {
            self.release(cause, now.after(settling_ns));
        }
    }

    /// Ends the hold of a paced client at `at`, if it does not end earlier.
    pub(super) fn release(&mut self, client: ClientId, at: Time) {
        if let Some(hold) = self.client_mut(client).and_then(|record| record.paced.as_mut()) {
            hold.until = hold.until.min(at);
            let until = hold.until;
            self.paced.set(client, until);
        }
    }

    pub(super) fn end_hold(&mut self, client: ClientId, now: Time) {
        self.paced.remove(client);
        self.change(client, |record| (record.paced, record.resumed) = (None, now));
        self.requeue(client, now);
    }
}
