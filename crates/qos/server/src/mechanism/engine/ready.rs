// SPDX-License-Identifier: MIT
//! Finds the clients that have requests, watches idle clients, and determines when the server must wake up.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use xqos_core::{Choice, ClientId, Fact, Rank, Slice, Time};

impl<H: Host> Engine<H> {
    /// Reports to the scheduler which clients have become ready.
    pub(super) fn note_ready(&mut self, now: Time) {
        self.round = self.round.wrapping_add(1);
        let mut arrivals = 0;
        for id in &self.ready {
            if let Some(slot) = self.slots.get_mut(usize::from(id.0)).and_then(Option::as_mut) {
                slot.seen_in = self.round;
                arrivals += usize::from(!slot.linked);
            }
        }
        // During a grab, the server does not treat the other clients as ready, but they still wait.
        let is_grabbed = self.scheduler.grab().is_some();
        if !is_grabbed && self.linked + arrivals != self.ready.len() {
            self.withdraw_unseen(now);
        }
        if arrivals > 0 {
            for at in 0..self.ready.len() {
                let id = self.ready[at];
                if self.slot(id).is_some_and(|slot| !slot.linked) {
                    self.set_linked(id, true);
                    let awaits_grab = self.grab_watched.is_some_and(|holder| holder != id);
                    let is_watched = awaits_grab || self.scheduler.is_watched(id);
                    let seen_at = if is_watched { self.host.arrival(id) } else { None };
                    self.scheduler.handle(seen_at.unwrap_or(now), Fact::Arrived { client: id });
                }
            }
        }
        self.grab_watched = self.grab_watched.filter(|_| is_grabbed);
    }

    /// Withdraws clients that are no longer ready although they have not run, because the host holds them back.
    fn withdraw_unseen(&mut self, now: Time) {
        for id in self.ids() {
            if self.slot(id).is_some_and(|slot| slot.linked && slot.seen_in != self.round) {
                self.set_linked(id, false);
                self.scheduler.handle(now, Fact::Withdrawn { client: id });
            }
        }
    }

    /// When the running slice must end because of data of this client (`None`: of any client) that arrived before it
    /// began, if the client was not among the ready ones.
    pub fn missed_end(&self, client: Option<ClientId>) -> Option<Time> {
        let end = |id| {
            let is_missed = self.scheduler.is_watched(id) && self.host.arrival(id).is_some();
            is_missed.then(|| self.scheduler.contest().ends_for(self.scheduler.rank_on_arrival(id, self.now)))
        };
        client.map_or_else(|| self.ids().filter_map(end).min(), end).filter(|&at| at != Time::NEVER)
    }

    /// Returns true if the slice may end because of a cap.
    pub(super) fn is_capped(&self, slice: &Slice) -> bool {
        let Choice::Client(id, _) = slice.choice else { return false };
        self.slot(id).is_some_and(|slot| self.scheduler.cap_ppm(slot.group) > 0)
    }

    /// False if the server chooses (a stock server ends no slice for input) or under `classic` (its slices are short).
    pub(super) fn server_fds_may_preempt(&self, slice: &Slice, now: Time) -> bool {
        matches!(slice.choice, Choice::Client(..)) && slice.requests == 0 && self.scheduler.had_long_slice(now)
    }

    pub(super) fn watch_client(&mut self, id: ClientId, rank: Rank) {
        if self.slot(id).is_some() && self.host.is_open(id) {
            let loan_ns = self.scheduler.reservation_in_use(id).map_or(0, |state| state.reservation.budget_ns);
            self.act(Action::WatchClient { client: id, rank, loan_ns });
        }
    }

    /// Makes the server wake up when a held client gets new budget.
    pub(super) fn program_wakeup(&mut self) {
        let at = self.scheduler.next_replenish().filter(|_| self.slots.iter().flatten().any(|slot| slot.held));
        let at = at.unwrap_or(Time::NEVER).min(self.grab_check_at());
        if at != self.wake_at {
            self.wake_at = at;
            self.act(Action::WakeAt(at));
        }
    }
}
