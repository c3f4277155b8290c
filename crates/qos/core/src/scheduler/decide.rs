// SPDX-License-Identifier: MIT
//! Decisions: the client to serve, and the arrivals that end its slice early.

use super::{LONG_SLICE_MEMORY_NS, Scheduler};
use crate::policy::{Allowance, Defence};
use crate::{Choice, ClientId, Contest, GroupId, Mode, Rank, Slice, Time};

impl Scheduler {
    /// Decides which client to serve now; `None` if no client is ready.
    pub fn decide(&mut self, now: Time) -> Option<Slice> {
        self.running = None;
        let overran_ns = core::mem::take(&mut self.overran_ns);
        let mut slice = if self.grab.is_some() || (self.reservations.first().is_none() && self.is_servers_choice()) {
            self.leave_to_server(now)?
        } else if let Some((deadline, client)) = self.reservations.first() {
            self.pick_reserved(client, deadline, now)
        } else {
            match self.next_desktop(now) {
                Some(client) => self.pick_desktop(client, now),
                None => self.pick_best_effort(self.waiting.peek()?.1, now),
            }
        };
        if matches!(slice.choice, Choice::Client(_, Mode::Reserved)) && overran_ns > 0 {
            self.blocking.note(overran_ns, now);
        }
        // A client that is held back resumes at this time: decide again then.
        if let Some(at) = self.next_replenish() {
            slice.until = slice.until.min(at.max(now));
        }
        self.until = slice.until;
        self.contest = slice.contest;
        Some(slice)
    }

    /// The next idle client that would end the current slice early by becoming ready, with its rank on arrival. The
    /// driver watches its socket until it becomes ready; the client is returned again if its rank could have changed.
    /// Unless a client has had a long slice recently, only clients with a reservation, compositors and window managers
    /// are returned. While a synchronous client runs, only clients that would win before its expected end are returned.
    pub fn next_to_watch(&mut self, now: Time) -> Option<(ClientId, Rank)> {
        let (rank, client) = self.first_to_watch(now)?;
        let running = self.running.and_then(|(client, _)| self.client(client));
        let expected_ns = running.map_or(u64::MAX, |record| record.expected_ns);
        let slice_end = self.until.min(self.contest.start.after(expected_ns.min(self.parameters.slice_ns)));
        // A compositor may have to wait for its next turn. The search goes on, because later clients may win earlier.
        let comes_first = rank.is_desktop() && rank.tier < self.contest.rank.tier;
        let ends_at = if comes_first { self.contest.start } else { self.contest.ends_for(rank) };
        if ends_at >= slice_end {
            return None;
        }
        self.idle.remove(client);
        self.reservations.mark_known(client);
        let was_watched = core::mem::replace(&mut self.client_mut(client)?.watched, true);
        self.watched += usize::from(!was_watched);
        Some((client, self.rank_on_arrival(client, now)))
    }

    /// The idle client with the best rank on arrival; without recent long slices, only among clients always watched.
    fn first_to_watch(&self, now: Time) -> Option<(Rank, ClientId)> {
        let reserved = self.reservations.first_to_watch().map(|(deadline, id)| (Rank::reserved(deadline), id));
        reserved.into_iter().chain(self.first_by_itself(now)).min()
    }

    fn first_by_itself(&self, now: Time) -> Option<(Rank, ClientId)> {
        let first = self.idle.peek()?;
        if first.0.is_always_watched() || self.had_long_slice(now) {
            return Some(first);
        }
        // In the queue, other clients with a higher SYNC priority may precede desktop clients.
        let idle = self.desktop.members.iter().filter(|&&id| self.idle.contains(id));
        let ranked = idle.map(|&id| (self.rank_by_itself(id), id));
        ranked.filter(|(rank, _)| rank.is_always_watched()).min()
    }

    /// True if a client has had a long slice recently, so that others may have to wait.
    pub fn had_long_slice(&self, now: Time) -> bool {
        self.last_long_slice.is_some_and(|end| now.since(end) < LONG_SLICE_MEMORY_NS)
    }

    /// The rank with which this client would contest a slice if it became ready now.
    pub fn rank_on_arrival(&self, client: ClientId, now: Time) -> Rank {
        let Some(record) = self.client(client) else { return Rank::LAST };
        let reserved = self.reservations.state_of(client).filter(|_| record.paced.is_none());
        match reserved.filter(|state| !state.depleted || now >= state.deadline) {
            Some(_) => Rank::reserved(self.reservations.deadline_at_arrival(client, now).unwrap_or(Time::NEVER)),
            None => self.rank_by_itself(client),
        }
    }

    /// The rank on arrival of a client without reservation budget.
    pub(super) fn rank_by_itself(&self, client: ClientId) -> Rank {
        let Some(record) = self.client(client) else { return Rank::LAST };
        let tier = self.tier(client);
        if record.paced.is_some() || record.capped || self.has_hard(client) {
            return Rank::LAST;
        }
        if self.is_desktop_client(client) {
            return Rank { tier, key: 0 };
        }
        self.policy.challenge(client).map_or(Rank::LAST, |key| Rank { tier, key })
    }

    fn pick_reserved(&mut self, client: ClientId, deadline: Time, now: Time) -> Slice {
        self.running = Some((client, Mode::Reserved));
        let (end, misses) = self.reservations.picked(client, now).unwrap_or((Time::NEVER, false));
        let slice_end = now.after(self.parameters.slice_ns);
        let until = if self.reservations.is_shared(client) { end.min(slice_end) } else { end };
        self.change(client, |record| record.usage.misses += u32::from(misses));
        let contest = Contest::new(Rank::reserved(deadline), now);
        Slice::new(Choice::Client(client, Mode::Reserved), until, contest)
    }

    fn pick_best_effort(&mut self, client: ClientId, now: Time) -> Slice {
        let ready = self.waiting.len() + self.desktop.ready.len();
        let Defence { key, growth, margin } = self.policy.defence(client);
        let allowance = self.policy.picked(client, ready, now);
        // The pick used up the head start from input, so the client's position in the queue has changed.
        self.requeue(client, now);
        self.running = Some((client, Mode::BestEffort));
        let tier = self.tier(client);
        let desktop_turn = self.desktop.turn_from(now);
        let (group, slice_us) = self.client(client).map_or((GroupId::NONE, 0), |it| (it.facts.group, it.slice_us));
        let longest_ns = if slice_us == 0 { u64::MAX } else { u64::from(slice_us) * 1000 };
        let mut until = now.after(allowance.slice_ns.min(longest_ns)).min(self.caps.until(group, now));
        if self.desktop.ready.peek().is_some_and(|((waiting, _), _)| waiting <= tier) {
            until = until.min(desktop_turn);
        }
        let contest = Contest { rank: Rank { tier, key }, start: now, growth, margin, desktop_turn };
        let Allowance { requests, bytes, .. } = allowance;
        Slice { requests, bytes, ..Slice::new(Choice::Client(client, Mode::BestEffort), until, contest) }
    }

    /// The compositor or window manager to serve now, if a turn continues or can begin.
    fn next_desktop(&self, now: Time) -> Option<ClientId> {
        let ((tier, _), client) = self.desktop.ready.peek()?;
        let Some((others, _)) = self.waiting.peek() else { return Some(client) };
        (self.desktop.turn_from(now) <= now && tier <= others).then_some(client)
    }

    /// Serves a desktop client. While others wait, its slice ends with the turn at the latest; a window manager's slice
    /// always does. Arrivals of clients that wait for it do not end the slice.
    fn pick_desktop(&mut self, client: ClientId, now: Time) -> Slice {
        self.running = Some((client, Mode::BestEffort));
        let slice_end = now.after(self.parameters.slice_ns);
        let role = self.role(client);
        let is_bounded = self.others_wait() || !role.compositor;
        let until = if is_bounded { slice_end.min(now.after(self.desktop.left_ns(now, role))) } else { slice_end };
        let rank = Rank { tier: self.tier(client), key: i64::MIN };
        Slice::new(Choice::Client(client, Mode::BestEffort), until, Contest::new(rank, now))
    }

    /// True if the server's own order decides among best-effort clients: always under `stock`, and under `fair` while
    /// there is no contention.
    pub fn is_servers_choice(&self) -> bool {
        let is_free = !self.contended && self.policy.needs_contention() && self.caps.is_empty();
        is_free || !self.policy.decides()
    }

    /// True if a client without a role is ready and could be served.
    pub(super) fn others_wait(&self) -> bool {
        let members = self.desktop.members.iter().filter(|&&id| self.waiting.contains(id)).count();
        self.waiting.len() > members || self.reservations.ready().any(|id| !self.role(id).is_any())
    }

    fn leave_to_server(&self, now: Time) -> Option<Slice> {
        if self.ready_count() == 0 && self.grab.is_none() {
            return None;
        }
        let mut slice = Slice::of_server(now);
        if self.grab.is_some() {
            // No other client can be served, so no arrival ends the slice.
            slice.contest.rank.tier = Rank::RESERVED;
        }
        Some(slice)
    }
}
