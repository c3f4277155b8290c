// SPDX-License-Identifier: MIT
//! Which clients have requests, and since when.

use super::{Engine, Outcome};
use crate::mechanism::host::Host;
use xqos_core::{Fact, Time};

impl<H: Host> Engine<H> {
    /// Lists the ready clients and reports changes to the scheduler.
    pub(super) fn find_ready(&mut self, now: Time) -> Outcome<H> {
        self.round = self.round.wrapping_add(1);
        self.ready.clear();
        self.host.ready(&mut self.ready)?;
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
        Ok(())
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
}
