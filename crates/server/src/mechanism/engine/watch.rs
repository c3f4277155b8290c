// SPDX-License-Identifier: MIT
//! What may end a slice or wake the server: watched clients, the server's own descriptors, caps, and timers.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use xqos_core::{Choice, ClientId, Rank, Slice, Time};

impl<H: Host> Engine<H> {
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
