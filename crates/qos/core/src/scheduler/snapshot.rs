// SPDX-License-Identifier: MIT
//! Snapshots: the whole state of a scheduler as words. A trace begins with a snapshot, so that replay starts from the
//! server's state.
//!
//! A snapshot lacks the accounting, which affects no decision, and the set of watched clients, which `next_to_watch`
//! returns to the driver again. Invalid words are refused; no accepted snapshot leads to a panic. The functions named
//! `carry` serve both directions ([`Words`]).

use super::{ClientRecord, Scheduler};
use crate::caps::Cap;
use crate::desktop::{CALLED_TURNS, MANAGERS_NS, MAX_SHARE_PPM, Role, Turn};
use crate::pacing::{Hold, Mark, Pacing};
use crate::policy::{Facts, PolicyKind};
use crate::words::Words;
use crate::{ClientId, GroupId, Holder, Mode, Parameters, ReservationState, Supply, Time};
use alloc::vec::Vec;

impl Scheduler {
    /// The state as words; [`restore`](Self::restore) turns them into the same scheduler.
    pub fn snapshot(&mut self) -> Vec<u64> {
        let mut words = Words::Write(Vec::new());
        // Writing never fails.
        let _ = self.write(&mut words);
        words.into_vec()
    }

    fn write(&mut self, words: &mut Words<'_>) -> Option<()> {
        carry_policy(self.policy.kind(), self.parameters, words)?;
        self.carry_server(words)?;
        words.next(self.connected as u64)?;
        let clients: Vec<ClientId> = self.ids().filter(|&id| self.client(id).is_some()).collect();
        for &id in &clients {
            let holder = Holder::Client(id);
            let past = self.reservations.past.iter().find(|(other, _)| *other == holder).map(|&(_, state)| state);
            words.next(id.0.into())?;
            self.client(id)?.carry([self.reservations.get(holder).copied(), past], words)?;
        }
        self.carry_rest(&clients, words).map(|_| ())
    }

    /// Restores the scheduler of a snapshot; `None` if the words are invalid.
    pub fn restore(words: &[u64]) -> Option<Scheduler> {
        let mut words = Words::Read(words);
        let (kind, parameters) = carry_policy(PolicyKind::default(), Parameters::default(), &mut words)?;
        let mut scheduler = Scheduler::new(kind, parameters);
        scheduler.carry_server(&mut words)?;
        let (grab, running) = (scheduler.grab.take(), scheduler.running.take());
        let (mut clients, mut states) = (Vec::new(), Vec::new());
        for _ in 0..words.below(ClientId::LIMIT as u64 + 1, 0)? {
            let (id, own) = scheduler.read_client(&mut words)?;
            clients.push(id);
            states.extend(own.map(|state| (Holder::Client(id), state)));
        }
        states.extend(scheduler.carry_rest(&clients, &mut words)?);
        scheduler.grab = grab.filter(|&id| scheduler.client(id).is_some());
        scheduler.running = running.filter(|&(id, _)| scheduler.client(id).is_some());
        scheduler.put_back(&clients, states)?;
        (words.into_vec().is_empty() && scheduler.connected == clients.len()).then_some(scheduler)
    }

    fn read_client(&mut self, words: &mut Words<'_>) -> Option<(ClientId, Option<ReservationState>)> {
        let id = words.id(ClientId(0))?;
        let (client, [own, past]) = ClientRecord::default().carry([None, None], words)?;
        self.connected(id, client.facts.descriptor, Time(0));
        self.policy.join(id, &client.facts);
        self.make_room(id);
        self.clients[id.slot()] = Some(client);
        self.reservations.past.extend(past.map(|state| (Holder::Client(id), state)));
        if let Some(state) = own {
            self.reservations.put(Holder::Client(id), state, 0);
        }
        Some((id, own))
    }

    /// Puts all clients into their queues, then restores the reservations, whose states change when clients are queued.
    fn put_back(&mut self, clients: &[ClientId], states: Vec<(Holder, ReservationState)>) -> Option<()> {
        for &id in clients {
            let &ClientRecord { paced, ready, waits_since, idle_since, .. } = self.client(id)?;
            if let Some(hold) = paced {
                self.paced.set(id, hold.until);
            }
            self.requeue(id, if ready { waits_since } else { idle_since });
        }
        for (holder, state) in states {
            self.reservations.put(holder, state, 0);
        }
        self.count_reservations();
        Some(())
    }

    /// The server's state, the holder of the grab and the running client.
    fn carry_server(&mut self, words: &mut Words<'_>) -> Option<()> {
        self.last_long_slice = words.time_or_none(self.last_long_slice)?;
        self.overran_ns = words.ns(self.overran_ns)?;
        self.grab = words.client(self.grab)?;
        let running = words.client(self.running.map(|(client, _)| client))?;
        let is_reserved = words.flag(matches!(self.running, Some((_, Mode::Reserved))))?;
        let mode = if is_reserved { Mode::Reserved } else { Mode::BestEffort };
        self.running = running.map(|client| (client, mode));
        let (pacing, supply) = (self.pacing, self.supply);
        self.pacing = Pacing { limit_ns: words.ns(pacing.limit_ns)?, floor_ns: words.ns(pacing.floor_ns)? };
        self.supply = Supply { budget_ns: words.ns(supply.budget_ns)?, period_ns: words.ns(supply.period_ns)? };
        self.blocking = self.blocking.carry(words)?;
        Some(())
    }

    /// The part of the snapshot after the clients. Returns the states that the reservations of groups must have once
    /// all clients are in their queues.
    fn carry_rest(
        &mut self,
        clients: &[ClientId],
        words: &mut Words<'_>,
    ) -> Option<impl Iterator<Item = (Holder, ReservationState)> + use<>> {
        self.policy.carry(clients, words)?;
        self.carry_desktop(words)?;
        self.carry_groups(clients, words)?;
        let of_groups = self.carry_group_reservations(clients, words)?;
        self.contended = words.flag(self.contended)?;
        for record in self.clients.iter_mut().flatten() {
            record.works_for = words.client(record.works_for)?;
        }
        Some(of_groups.into_iter().map(|(group, _, state)| (Holder::Group(group), state)))
    }

    fn carry_desktop(&mut self, words: &mut Words<'_>) -> Option<()> {
        let desktop = &mut self.desktop;
        desktop.share_ppm = words.below(u64::from(MAX_SHARE_PPM) + 1, desktop.share_ppm.into())? as u32;
        let (turn, has_turn) = (desktop.turn.unwrap_or_default(), words.flag(desktop.turn.is_some())?);
        let (began, served, used_ns) = (words.time(turn.began)?, words.time(turn.served)?, words.ns(turn.used_ns)?);
        let both = words.next((turn.managers_ns << 8) | u64::from(turn.calls))?;
        let (managers_ns, calls) = (both >> 8, both as u8);
        if calls > CALLED_TURNS || managers_ns > MANAGERS_NS {
            return None;
        }
        desktop.turn = Some(Turn { began, served, used_ns, managers_ns, calls }).filter(|_| has_turn);
        let members: Vec<(ClientId, Role)> = self.desktop.members.iter().map(|&id| (id, self.role(id))).collect();
        let members = words.list(&members, ClientId::LIMIT + 1, |(id, role), words| {
            Some((words.id(id)?, Role::from_bits(words.below(4, role.bits().into())? as u8)))
        })?;
        for (id, role) in members.into_iter().filter(|_| words.is_reading()) {
            let record = self.client_mut(id).filter(|record| !record.role.is_any() && role.is_any())?;
            record.role = role;
            self.desktop.members.push(id);
        }
        for record in self.clients.iter_mut().flatten() {
            record.rested_ns = words.next(record.rested_ns)?;
        }
        Some(())
    }

    fn carry_groups(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        let mut groups = Vec::new();
        for &client in clients {
            groups.push((client, words.group(self.client(client)?.facts.group)?));
        }
        let weights = words.list(&self.group_weights, 1 << 16, |(group, weight), words| {
            Some((words.group(group)?, words.u32(weight)?))
        })?;
        if words.is_reading() {
            weights.into_iter().for_each(|(group, weight)| self.set_group_weight(group, weight, Time(0)));
            for (client, group) in groups {
                let weight = self.group_weight(group);
                self.change_facts(client, Time(0), |facts| (facts.group, facts.group_weight) = (group, weight));
            }
        }
        self.policy.carry_groups(clients, words)?;
        self.caps.0 = words.list(&self.caps.0, 1 << 16, Cap::carry)?;
        clients.iter().for_each(|&client| self.update_cap(client, Time(0)));
        Some(())
    }

    /// The reservations of groups, each with the amount that the member picked last had paid.
    fn carry_group_reservations(
        &mut self,
        clients: &[ClientId],
        words: &mut Words<'_>,
    ) -> Option<Vec<(GroupId, i64, ReservationState)>> {
        let group_of = |holder| match holder {
            Holder::Group(group) => Some(group),
            Holder::Client(_) => None,
        };
        let all = self.reservations.iter();
        let all: Vec<_> = all.filter_map(|(holder, state, clock)| Some((group_of(holder)?, clock, *state))).collect();
        let all = words.list(&all, ClientId::LIMIT + 1, |(group, clock, state), words| {
            let group = words.group(group).filter(|&group| group != GroupId::NONE)?;
            Some((group, words.signed(clock)?, state.carry(words)?))
        })?;
        for &(group, clock, state) in all.iter().filter(|_| words.is_reading()) {
            self.reservations.put(Holder::Group(group), state, clock);
        }
        for &id in clients {
            if words.is_reading() {
                self.update_membership(id, Time(0));
            }
            self.reservations.set_paid(id, words.signed(self.reservations.paid(id))?);
        }
        let past = self.reservations.past.iter();
        let past: Vec<_> = past.filter_map(|&(holder, state)| Some((group_of(holder)?, state))).collect();
        let past = words.list(&past, 1 << 16, |(group, state): (GroupId, ReservationState), words| {
            Some((words.group(group)?, state.carry(words)?))
        })?;
        if words.is_reading() {
            self.reservations.past.extend(past.into_iter().map(|(group, state)| (Holder::Group(group), state)));
        }
        Some(all)
    }
}

fn carry_policy(kind: PolicyKind, of: Parameters, words: &mut Words<'_>) -> Option<(PolicyKind, Parameters)> {
    let kind = PolicyKind::from_code(words.below(1 << 8, kind.code().into())? as u8)?;
    let parameters = Parameters {
        slice_ns: words.ns(of.slice_ns)?,
        timer_interval_ns: words.ns(of.timer_interval_ns)?,
        maximum_slice_ns: words.ns(of.maximum_slice_ns)?,
        max_utilization_ppm: words.u32(of.max_utilization_ppm)?,
        blocking_ns: words.ns(of.blocking_ns)?,
    };
    Some((kind, parameters))
}

impl ClientRecord {
    /// A client with its own reservation and its ended reservation.
    fn carry(
        &self,
        [own, past]: [Option<ReservationState>; 2],
        words: &mut Words<'_>,
    ) -> Option<(ClientRecord, [Option<ReservationState>; 2])> {
        let Facts { descriptor, weight, fixed_priority, sync_priority, .. } = self.facts;
        let descriptor = words.u32(descriptor)?;
        let both = words.next((u64::from(self.slice_us) << 32) | u64::from(weight))?;
        let (slice_us, weight) = ((both >> 32) as u32, (both as u32).max(1));
        let (fixed_priority, sync_priority) = (words.i32(fixed_priority)?, words.i32(sync_priority)?);
        let facts = Facts { weight, fixed_priority, sync_priority, ..Facts::new(descriptor) };
        let ready = words.flag(self.ready)?;
        let (waits_since, idle_since) = (words.time(self.waits_since)?, words.time(self.idle_since)?);
        let grabbed_at = words.time_or_none(self.grabbed_at)?;
        let own = words.optional(own, ReservationState::carry)?;
        let past = words.optional(past, ReservationState::carry)?;
        let exposing = words.optional(self.exposing, Mark::carry)?;
        let paced = words.optional(self.paced, Hold::carry)?;
        let resumed = words.time(self.resumed)?;
        let fresh = ClientRecord { facts, expected_ns: u64::MAX, slice_us, ..ClientRecord::default() };
        let client = ClientRecord { ready, waits_since, idle_since, grabbed_at, exposing, paced, resumed, ..fresh };
        Some((client, [own, past]))
    }
}
