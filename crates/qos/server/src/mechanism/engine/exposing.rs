// SPDX-License-Identifier: MIT
//! Tracks clients that must answer an Expose, or input while another client redraws, and sets the pacing.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use xqos_abi::{NotifyKind, Paced};
use xqos_core::{Choice, ClientId, Fact, FactOutcome, Pacing, Time};

/// The time allowed for an answer to input while another client redraws. Most clients need less than a millisecond.
const INPUT_ANSWER_NS: u64 = 10_000_000;

/// A client can mark itself at most once in this time, so that no client is preferred all the time.
const MARK_INTERVAL_NS: u64 = 10_000_000;

/// Pacing if only some clients are paced: at most 40 ms per Expose, at least 20 frames a second.
const PACING_OF_SOME: Pacing = Pacing { limit_ns: 40_000_000, floor_ns: 50_000_000 };

impl<H: Host> Engine<H> {
    pub fn input_or_expose(&mut self, id: ClientId, is_input: bool) {
        if is_input {
            let at = self.now;
            self.scheduler.handle(at, Fact::Input { client: id });
            self.input_beside_an_expose(id, at);
        } else {
            self.exposed(id, self.running_client());
        }
    }

    /// The client reports that it is about to redraw. Its requests in the current slice do not count as the redraw.
    pub fn mark_exposing(&mut self, id: ClientId) {
        let now = self.now;
        let Some(slot) = self.slot_mut(id).filter(|slot| slot.unmarked_until <= now) else { return };
        slot.unmarked_until = now.after(MARK_INTERVAL_NS);
        if self.running_client() == Some(id) {
            self.marked = Some(id);
        } else {
            self.exposed(id, None);
        }
    }

    /// The client has to redraw, because of a request of `cause` if there is one.
    pub(super) fn exposed(&mut self, id: ClientId, cause: Option<ClientId>) {
        let at = self.now;
        let paced = cause.filter(|&cause| self.is_paced(cause));
        let outcome = self.scheduler.handle(at, Fact::Exposed { client: id, cause: paced });
        if outcome != FactOutcome::None {
            self.await_answer(NotifyKind::Exposing, id, cause, self.scheduler.exposing_until(id));
        }
        if matches!(outcome, FactOutcome::Held(_)) {
            self.holds = self.holds.wrapping_add(1);
            self.to_hold = paced;
            self.act(Action::EndSlice);
        }
    }

    /// Sets the pacing of all clients that have no setting of their own.
    pub(super) fn set_pacing(&mut self, pacing: Pacing) {
        self.pacing = pacing;
        // Send the fact even if it is unchanged, because it releases every client that is held back.
        let effective = self.effective_pacing();
        self.scheduler.handle(self.now, Fact::Pacing(effective));
    }

    pub(super) fn set_client_pacing(&mut self, id: ClientId, paced: Paced) {
        if let Some(slot) = self.slot_mut(id) {
            slot.paced = paced;
        }
        self.follow_pacing();
    }

    /// Turns pacing in the scheduler on or off, depending on whether any client needs it.
    pub(super) fn follow_pacing(&mut self) {
        let effective = self.effective_pacing();
        if effective != self.scheduler.pacing() {
            self.scheduler.handle(self.now, Fact::Pacing(effective));
        }
    }

    fn effective_pacing(&self) -> Pacing {
        let is_wanted = || self.ids().any(|id| self.slot(id).is_some_and(|slot| slot.paced == Paced::Always));
        if self.pacing.is_on() || !is_wanted() { self.pacing } else { PACING_OF_SOME }
    }

    fn is_paced(&self, id: ClientId) -> bool {
        self.slot(id).is_some_and(|slot| match slot.paced {
            Paced::AsAll => self.pacing.is_on(),
            Paced::Always => true,
            Paced::Never => false,
        })
    }

    /// While a client redraws, it uses the processor. A client that gets input meanwhile also needs the processor,
    /// unless that client caused the Expose.
    fn input_beside_an_expose(&mut self, id: ClientId, at: Time) {
        if self.owed_answers.excludes(id, at) {
            self.await_answer(NotifyKind::Input, id, None, at.after(INPUT_ANSWER_NS));
        }
    }

    fn await_answer(&mut self, kind: NotifyKind, id: ClientId, cause: Option<ClientId>, until: Time) {
        if self.listeners.is_empty() {
            return;
        }
        self.owed_answers.begin(id, cause, until);
        // Raise the server first, so that it does not wait for processes that a listener raises on this event.
        if self.lender.is_some() {
            self.act(Action::Raise(until));
        }
        self.notify(kind, id, 0);
    }

    /// The client that is executing a request, if any.
    pub(super) fn running_client(&self) -> Option<ClientId> {
        match self.running?.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => self.host.running_client(),
        }
    }
}
