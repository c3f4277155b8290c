// SPDX-License-Identifier: MIT
//! Snapshots: the whole state of a scheduler as words. A trace begins with a snapshot, so that replay starts from the
//! server's state.
//!
//! A snapshot lacks the accounting, which affects no decision, and the set of watched clients, which `next_to_watch`
//! returns to the driver again. Invalid words are refused; no accepted snapshot leads to a panic.

use super::{Client, Scheduler};
use crate::caps::Cap;
use crate::desktop::{CALLED_TURNS, MANAGERS_NS, MAX_SHARE_PPM, Role, Turn};
use crate::pacing::{Hold, Mark, Pacing};
use crate::policy::{Facts, PolicyKind};
use crate::word_reader::WordReader;
use crate::{
    ClientId, GroupId, Holder, Mode, Parameters, Reservation, ReservationKind, ReservationState, Supply, Time,
};
use alloc::vec::Vec;

/// The holder of the grab, and the running client with its account.
type Served = (Option<ClientId>, Option<(ClientId, Mode)>);

impl Scheduler {
    /// The state as words; [`restore`](Self::restore) turns them into the same scheduler.
    pub fn snapshot(&self) -> Vec<u64> {
        let parameters = &self.parameters;
        let mut out = Vec::from([
            u64::from(self.policy.kind().code()),
            parameters.slice_ns,
            parameters.timer_interval_ns,
            parameters.maximum_slice_ns,
            u64::from(parameters.max_utilization_ppm),
            parameters.blocking_ns,
            self.last_long_slice.map_or(0, |at| at.0),
            self.overran_ns,
            client_word(self.grab),
            client_word(self.running.map(|(client, _)| client)),
            u64::from(matches!(self.running, Some((_, Mode::Reserved)))),
            self.pacing.limit_ns,
            self.pacing.floor_ns,
            self.supply.budget_ns,
            self.supply.period_ns,
        ]);
        self.blocking.save(&mut out);
        out.push(self.connected as u64);
        for (slot, record) in self.clients.iter().enumerate() {
            if let Some(record) = record {
                out.push(slot as u64);
                let holder = Holder::Client(ClientId(slot as u16));
                let past = self.reservations.past().iter().find(|(id, _)| *id == holder).map(|(_, state)| state);
                record.save([self.reservations.get(holder), past], &mut out);
            }
        }
        let clients: Vec<ClientId> = self.ids().filter(|&id| self.client(id).is_some()).collect();
        self.policy.save(&clients, &mut out);
        let (turn, has_turn) = (self.desktop.turn.unwrap_or_default(), self.desktop.turn.is_some());
        out.extend([u64::from(self.desktop.share_ppm), u64::from(has_turn)]);
        out.extend([turn.began.0, turn.served.0, turn.used_ns, (turn.managers_ns << 8) | u64::from(turn.calls)]);
        out.push(self.desktop.members.len() as u64);
        for &id in &self.desktop.members {
            out.extend([u64::from(id.0), u64::from(self.role(id).bits())]);
        }
        out.extend(self.clients.iter().flatten().map(|record| record.rested_ns));
        out.extend(self.clients.iter().flatten().map(|record| u64::from(record.facts.group.0)));
        out.push(self.group_weights.len() as u64);
        out.extend(self.group_weights.iter().flat_map(|&(group, weight)| [u64::from(group.0), u64::from(weight)]));
        self.policy.save_groups(&clients, &mut out);
        out.push(self.caps.iter().len() as u64);
        for Cap { group, ppm, state } in self.caps.iter() {
            out.extend([u64::from(group.0), u64::from(*ppm), state.budget_left_ns as u64, state.deadline.0]);
        }
        self.save_group_reservations(&clients, &mut out);
        out.push(u64::from(self.contended));
        out.extend(self.clients.iter().flatten().map(|record| client_word(record.works_for)));
        out
    }

    /// Restores the scheduler of a snapshot; `None` if the words are invalid.
    pub fn restore(words: &[u64]) -> Option<Scheduler> {
        let mut words = WordReader::new(words);
        let (mut scheduler, (grab, running)) = Scheduler::load_server(&mut words)?;
        let (mut clients, mut states) = (Vec::new(), Vec::new());
        for _ in 0..words.below(ClientId::LIMIT as u64 + 1)? {
            let (id, own) = scheduler.load_client(&mut words)?;
            clients.push(id);
            states.extend(own.map(|state| (Holder::Client(id), state)));
        }
        scheduler.policy.load(&clients, &mut words)?;
        scheduler.load_desktop(&mut words)?;
        scheduler.load_groups(&clients, &mut words)?;
        states.extend(scheduler.load_group_reservations(&clients, &mut words)?);
        scheduler.contended = words.flag()?;
        for record in scheduler.clients.iter_mut().flatten() {
            record.works_for = words.client()?;
        }
        scheduler.grab = grab.filter(|&id| scheduler.client(id).is_some());
        scheduler.running = running.filter(|&(id, _)| scheduler.client(id).is_some());
        scheduler.put_back(&clients, states)?;
        (words.is_empty() && scheduler.connected == clients.len()).then_some(scheduler)
    }

    /// Loads the server's settings, the holder of the grab and the running client.
    fn load_server(words: &mut WordReader) -> Option<(Scheduler, Served)> {
        let kind = PolicyKind::from_code(u8::try_from(words.next()?).ok()?)?;
        let parameters = Parameters {
            slice_ns: words.ns()?,
            timer_interval_ns: words.ns()?,
            maximum_slice_ns: words.ns()?,
            max_utilization_ppm: words.u32()?,
            blocking_ns: words.ns()?,
        };
        let mut scheduler = Scheduler::new(kind, parameters);
        scheduler.last_long_slice = Some(words.time()?).filter(|at| at.0 != 0);
        scheduler.overran_ns = words.ns()?;
        let (grab, running, is_reserved) = (words.client()?, words.client()?, words.flag()?);
        let mode = if is_reserved { Mode::Reserved } else { Mode::BestEffort };
        scheduler.pacing = Pacing { limit_ns: words.ns()?, floor_ns: words.ns()? };
        scheduler.supply = Supply { budget_ns: words.ns()?, period_ns: words.ns()? };
        scheduler.blocking.load(words)?;
        Some((scheduler, (grab, running.map(|id| (id, mode)))))
    }

    /// Loads a client and its own reservation.
    fn load_client(&mut self, words: &mut WordReader) -> Option<(ClientId, Option<ReservationState>)> {
        let id = words.id()?;
        let (client, [own, past]) = Client::load(words)?;
        self.connected(id, client.facts.descriptor, Time(0));
        self.policy.join(id, &client.facts);
        self.make_room(id);
        self.clients[id.slot()] = Some(client);
        if let Some(state) = past {
            self.reservations.add_past(Holder::Client(id), state);
        }
        if let Some(state) = own {
            self.reservations.put(Holder::Client(id), state, 0);
        }
        Some((id, own))
    }

    /// Puts all clients into their queues, then restores the reservations, whose states change when clients are queued.
    fn put_back(&mut self, clients: &[ClientId], states: Vec<(Holder, ReservationState)>) -> Option<()> {
        for &id in clients {
            let &Client { paced, ready, waits_since, idle_since, .. } = self.client(id)?;
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

    fn load_desktop(&mut self, words: &mut WordReader) -> Option<()> {
        self.desktop.share_ppm = words.below(u64::from(MAX_SHARE_PPM) + 1)? as u32;
        let has_turn = words.flag()?;
        let (began, served, used_ns) = (words.time()?, words.time()?, words.ns()?);
        let both = words.next()?;
        let (managers_ns, calls) = (both >> 8, both as u8);
        if calls > CALLED_TURNS || managers_ns > MANAGERS_NS {
            return None;
        }
        self.desktop.turn = Some(Turn { began, served, used_ns, managers_ns, calls }).filter(|_| has_turn);
        for _ in 0..words.below(ClientId::LIMIT as u64 + 1)? {
            let (id, role) = (words.id()?, Role::from_bits(words.below(4)? as u8));
            let record = self.client_mut(id).filter(|record| !record.role.is_any() && role.is_any())?;
            record.role = role;
            self.desktop.members.push(id);
        }
        for record in self.clients.iter_mut().flatten() {
            record.rested_ns = words.next()?;
        }
        Some(())
    }

    fn load_groups(&mut self, clients: &[ClientId], words: &mut WordReader) -> Option<()> {
        let groups: Option<Vec<GroupId>> = clients.iter().map(|_| words.group()).collect();
        for _ in 0..words.below(1 << 16)? {
            let (group, weight) = (words.group()?, words.u32()?);
            self.set_group_weight(group, weight, Time(0));
        }
        for (&client, group) in clients.iter().zip(groups?) {
            let weight = self.group_weight(group);
            self.change_facts(client, Time(0), |facts| (facts.group, facts.group_weight) = (group, weight));
        }
        self.policy.load_groups(clients, words)?;
        for _ in 0..words.below(1 << 16)? {
            let (group, ppm) = (words.group()?, words.below(1_000_001)? as u32);
            let fresh = Cap::new(group, ppm, Time(0));
            let (left_ns, deadline) = (words.signed()?.min(fresh.state.budget_left_ns), words.time()?);
            let state = ReservationState::restored(fresh.state.reservation, left_ns, deadline, Time(0));
            self.caps.push(Cap { state, ..fresh });
        }
        clients.iter().for_each(|&client| self.update_cap(client, Time(0)));
        Some(())
    }

    fn save_group_reservations(&self, clients: &[ClientId], out: &mut Vec<u64>) {
        let group_of = |holder| match holder {
            Holder::Group(group) => Some(u64::from(group.0)),
            Holder::Client(_) => None,
        };
        let of_groups =
            self.reservations.iter().filter_map(|(holder, state, clock)| Some((group_of(holder)?, state, clock)));
        out.push(of_groups.clone().count() as u64);
        for (group, state, clock) in of_groups {
            out.extend([group, clock as u64]);
            state.save(out);
        }
        out.extend(clients.iter().map(|&client| self.reservations.paid(client) as u64));
        let past = self.reservations.past().iter().filter_map(|(holder, state)| Some((group_of(*holder)?, state)));
        out.push(past.clone().count() as u64);
        for (group, state) in past {
            out.push(group);
            state.save(out);
        }
    }

    /// Loads the reservations of groups. Returns the states that they must have once all clients are in their queues.
    fn load_group_reservations(
        &mut self,
        clients: &[ClientId],
        words: &mut WordReader,
    ) -> Option<Vec<(Holder, ReservationState)>> {
        let mut states = Vec::new();
        for _ in 0..words.below(ClientId::LIMIT as u64 + 1)? {
            let group = words.group().filter(|&group| group != GroupId::NONE)?;
            let (clock, state) = (words.signed()?, ReservationState::load(words)?);
            self.reservations.put(Holder::Group(group), state, clock);
            states.push((Holder::Group(group), state));
        }
        for &id in clients {
            self.update_membership(id, Time(0));
            self.reservations.set_paid(id, words.signed()?);
        }
        for _ in 0..words.below(1 << 16)? {
            let group = words.group()?;
            self.reservations.add_past(Holder::Group(group), ReservationState::load(words)?);
        }
        Some(states)
    }
}

impl Client {
    /// Saves a client with its own reservation and its ended reservation.
    fn save(&self, reservations: [Option<&ReservationState>; 2], out: &mut Vec<u64>) {
        let Facts { descriptor, weight, fixed_priority, sync_priority, .. } = self.facts;
        out.extend([u64::from(descriptor), (u64::from(self.slice_us) << 32) | u64::from(weight)]);
        out.extend([i64::from(fixed_priority) as u64, i64::from(sync_priority) as u64]);
        out.extend([u64::from(self.ready), self.waits_since.0, self.idle_since.0]);
        out.push(self.grabbed_at.map_or(0, |at| at.0));
        for reservation in reservations {
            out.push(u64::from(reservation.is_some()));
            if let Some(state) = reservation {
                state.save(out);
            }
        }
        out.push(u64::from(self.exposing.is_some()));
        if let Some(Mark { until, holds, mid_redraw, redraw_ended }) = self.exposing {
            let (holder, since) = holds.map_or((None, Time(0)), |(client, since)| (Some(client), since));
            out.extend([until.0, client_word(holder), since.0, u64::from(mid_redraw), u64::from(redraw_ended)]);
        }
        out.push(u64::from(self.paced.is_some()));
        if let Some(Hold { since, until, awaited }) = self.paced {
            out.extend([since.0, until.0, u64::from(awaited)]);
        }
        out.push(self.resumed.0);
    }

    fn load(words: &mut WordReader) -> Option<(Client, [Option<ReservationState>; 2])> {
        let descriptor = words.u32()?;
        let both = words.next()?;
        let (slice_us, weight) = ((both >> 32) as u32, both as u32);
        let facts = Facts {
            weight: weight.max(1),
            fixed_priority: words.i32()?,
            sync_priority: words.i32()?,
            ..Facts::new(descriptor)
        };
        let (ready, waits_since, idle_since) = (words.flag()?, words.time()?, words.time()?);
        let grabbed_at = Some(words.time()?).filter(|at| at.0 != 0);
        let own = words.optional(ReservationState::load)?;
        let past = words.optional(ReservationState::load)?;
        let exposing = words.optional(|words| {
            let (until, holder, since) = (words.time()?, words.client()?, words.time()?);
            let (mid_redraw, redraw_ended) = (words.flag()?, words.flag()?);
            Some(Mark { until, holds: holder.map(|client| (client, since)), mid_redraw, redraw_ended })
        })?;
        let paced =
            words.optional(|words| Some(Hold { since: words.time()?, until: words.time()?, awaited: words.u32()? }))?;
        let resumed = words.time()?;
        let fresh = Client { facts, expected_ns: u64::MAX, slice_us, ..Client::default() };
        let client = Client { ready, waits_since, idle_since, grabbed_at, exposing, paced, resumed, ..fresh };
        Some((client, [own, past]))
    }
}

impl ReservationState {
    fn save(&self, out: &mut Vec<u64>) {
        let Reservation { budget_ns, period_ns, kind } = self.reservation;
        out.extend([budget_ns, period_ns, u64::from(kind.code()), self.budget_left_ns as u64, self.deadline.0]);
        out.push(self.last_missed().0);
    }

    fn load(words: &mut WordReader) -> Option<ReservationState> {
        let (budget_ns, period_ns) = (words.ns()?.max(1), words.ns()?.max(1));
        let kind = ReservationKind::from_code(u8::try_from(words.next()?).ok()?)?;
        let reservation = Reservation { budget_ns, period_ns, kind };
        let (budget_left_ns, deadline, missed) = (words.signed()?, words.time()?, words.time()?);
        if reservation.budget_ns > reservation.period_ns || budget_left_ns > reservation.budget_ns as i64 {
            return None;
        }
        Some(ReservationState::restored(reservation, budget_left_ns, deadline, missed))
    }
}

/// The slot plus one; 0 stands for no client.
fn client_word(client: Option<ClientId>) -> u64 {
    client.map_or(0, |id| u64::from(id.0) + 1)
}
