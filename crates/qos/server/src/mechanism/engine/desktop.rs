// SPDX-License-Identifier: MIT
//! Recognises compositors and window managers by selections and by the root windows, and sets their roles.

use super::Engine;
use crate::mechanism::action::Action;
use crate::mechanism::host::Host;
use crate::mechanism::roles::ManagerKind;
use xqos_core::{ClientId, Fact, FactOutcome, Time};

/// The minimum time between two checks of the root windows, which are checked only when a decision is made.
const ROOT_POLL_NS: u64 = 250_000_000;

impl<H: Host> Engine<H> {
    pub fn selection(&mut self, name: &str, owner: Option<ClientId>) {
        let Some((kind, screen)) = ManagerKind::from_selection(name) else { return };
        // Before the server knows its screens, no client can own a selection.
        if screen < self.host.screens() {
            self.set_manager(kind, screen, owner);
        }
    }

    /// Finds window managers that own no selection.
    pub(super) fn poll_root_windows(&mut self, now: Time) {
        if now < self.poll_roots_at {
            return;
        }
        self.poll_roots_at = now.after(ROOT_POLL_NS);
        for screen in 0..self.host.screens() {
            let client = self.host.redirector(screen).and_then(|resource| self.owner_of(resource));
            self.set_manager(ManagerKind::Redirector, screen, client);
        }
    }

    /// Returns true if the client is a compositor or window manager.
    pub fn is_desktop_client(&self, id: ClientId) -> bool {
        !self.roles.is_empty() && self.scheduler.is_desktop_client(id)
    }

    /// An event was delivered to a client. A compositor or window manager now has work for the client that is executing
    /// a request: a DamageNotify for that client's drawing, or a MapRequest for its window.
    pub fn delivered(&mut self, to: ClientId) {
        let running = self.running_client().filter(|&client| client != to && self.is_desktop_client(to));
        let Some(client) = running else { return };
        if !self.scheduler.role(to).compositor {
            self.scheduler.handle(self.now, Fact::WorksFor { client: to, payer: client });
        }
        if self.scheduler.handle(self.now, Fact::CausedWork { client }) == FactOutcome::Changed {
            self.act(Action::EndSlice);
        }
    }

    /// During the turn of a compositor or window manager, the server briefly waits for that client's next request, and
    /// serves no other client meanwhile. Data from a reserved client end the wait.
    pub(super) fn wait_for_next_request(&mut self, served: ClientId) {
        let Some(until) = self.scheduler.next_request_of(served, self.now) else { return };
        if !self.host.is_open(served) || self.now >= until {
            return;
        }
        self.act(Action::Await(served));
        for id in self.ids() {
            if self.scheduler.reservation_in_use(id).is_some() && !self.scheduler.is_ready(id) {
                self.act(Action::Await(id));
            }
        }
        self.act(Action::WaitUntil(until));
        self.waits_until = Some(until);
    }

    fn set_manager(&mut self, kind: ManagerKind, screen: usize, client: Option<ClientId>) {
        let before = self.roles.take(kind, screen, client);
        if before != client {
            self.awaken();
        }
        for id in before.into_iter().chain(client) {
            self.scheduler.handle(self.now, Fact::Role { client: id, role: self.roles.role_of(id) });
            self.sync_hold(id);
        }
    }
}
