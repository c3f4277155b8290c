// SPDX-License-Identifier: MIT
//! The loan: a client lends the server's thread a real-time priority, which the thread has only when needed.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use xqos_core::{Choice, ClientId, Mode, Slice, Time};

impl<H: Host> Engine<H> {
    /// Begins or ends a loan of a real-time priority to the server's thread.
    pub fn lend(&mut self, lender: ClientId, on: bool, limit_before: u32) -> std::io::Result<()> {
        if on {
            self.host.begin_loan()?;
            // A second lender has read the limit that the first one has raised.
            let limit_before = self.lender.map_or(limit_before, |(_, before)| before.min(limit_before));
            self.lender = Some((lender, limit_before));
            self.log("the server gets a real-time priority whenever it serves a reserved client".to_owned());
        } else {
            self.end_loan();
        }
        Ok(())
    }

    pub(super) fn end_loan(&mut self) {
        if let Some((_, limit_before)) = self.lender.take() {
            self.act(Action::EndLoan { limit_before });
            self.log("the server no longer gets a real-time priority".to_owned());
        }
    }

    /// Whether there is a loan, and the number of times that the server's thread was raised.
    pub fn loan(&self) -> (bool, u32) {
        (self.lender.is_some(), self.host.raises())
    }

    pub(super) fn raise_or_lower(&mut self, slice: Option<&Slice>, now: Time) {
        match slice.map(|slice| slice.choice) {
            Some(Choice::Client(id, Mode::Reserved)) => {
                let budget_ns = self.scheduler.reservation_in_use(id).map_or(0, |state| state.budget_left_ns.max(0));
                self.act(Action::Raise(now.after(budget_ns as u64)));
            }
            _ => {
                let until = self.owed_answers.latest(now);
                self.act(until.map_or(Action::Lower, Action::Raise));
            }
        }
    }
}
