//! Clients that work for others: told by the server, looked for at the root windows, and given their roles.

use super::Engine;
use crate::host::dix::client::{Client, redirector, roots};
use crate::host::dix::watcher::now;
use crate::mechanism::roles::Seat;
use std::ffi::c_void;
use xqos_core::{ClientId, Fact, Outcome, Time};

/// Root windows are looked at so often at most, and only when a decision is made.
const LOOK_AT_ROOTS_NS: u64 = 250_000_000;
/// One that works for others, and the reserved ones that may come meanwhile; of more, the first.
const WAITED_FOR: usize = 16;
/// Releases from this one on have the window record that the shim was compiled with.
const KNOWN_WINDOWS: u32 = 12_101_000;

impl Engine {
    /// The owner of a selection changed; an atom.
    pub fn selection(&mut self, atom: u32, owner: Option<Client>) {
        let Some((seat, screen)) = self.host.atom_name(atom).and_then(|name| Seat::of_selection(&name)) else { return };
        // Before the server knows its screens nobody can own a selection.
        if screen < self.roots.len() {
            self.seat(seat, screen, owner.and_then(|owner| self.id_of(owner)));
        }
    }

    /// The server's screens, once it has made its connection setup.
    pub(super) fn find_roots(&mut self, setup: *const c_void, release: u32) {
        // SAFETY: the server's connection setup, not null.
        self.roots = unsafe { roots(setup) };
        self.windows_known = release >= KNOWN_WINDOWS;
    }

    /// Window managers that own no selection.
    pub(super) fn look_at_roots(&mut self, now: Time) {
        if !self.windows_known || now < self.look_at_roots_at {
            return;
        }
        self.look_at_roots_at = now.after(LOOK_AT_ROOTS_NS);
        for screen in 0..self.roots.len() {
            let id = self.roots[screen];
            // SAFETY: a window of that id of a server whose window record we know.
            let resource = self.host.window(id).and_then(|root| unsafe { redirector(root, id) });
            let client = resource.and_then(|resource| self.owner_of(resource));
            self.seat(Seat::Redirector, screen, client);
        }
    }

    /// It can work for nobody any more.
    pub(super) fn leave_seats(&mut self, id: ClientId) {
        self.roles.leave(id);
    }

    /// An event was delivered to a client. One that works for others has something to do for the client whose request is
    /// executed: a DamageNotify for its drawing, a MapRequest for its window.
    pub fn told(&mut self, client: Client) {
        if !self.roles.is_empty() {
            let by = self.id_of(client).filter(|&id| self.scheduler.works_for_others(id)).and_then(|_| self.who_runs());
            let made_work = |client| self.scheduler.handle(now(), Fact::MadeWork { client }) == Outcome::Changed;
            if by.is_some_and(made_work) {
                self.host.end_slice();
            }
        }
    }

    /// In the turn of a client that works for others, nobody is served before its next request, which is waited for a moment.
    /// A reserved client ends the wait, and a signal does.
    pub(super) fn wait_for_next_request(&self, served: ClientId) {
        let Some(until) = self.scheduler.next_request_of(served, now()) else { return };
        let reserved = self.scheduler.reservations().map(|(id, _)| id).filter(|&id| !self.scheduler.is_ready(id));
        let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; WAITED_FOR];
        for (place, id) in polled.iter_mut().zip([served].into_iter().chain(reserved)) {
            place.fd = self.descriptor(id);
        }
        let left_ns = until.since(now());
        if polled[0].fd >= 0 && left_ns > 0 {
            let time = libc::timespec { tv_sec: 0, tv_nsec: left_ns as i64 };
            // SAFETY: that many places, and a time that lives through the call; descriptors below 0 are passed over.
            unsafe { libc::ppoll(polled.as_mut_ptr(), WAITED_FOR as libc::nfds_t, &time, std::ptr::null()) };
        }
    }

    /// A client's socket; -1 where its connection is closed.
    fn descriptor(&self, id: ClientId) -> i32 {
        let client = self.slot(id).map(|slot| slot.client).filter(|client| !client.is_gone());
        // SAFETY: a client whose connection is open.
        client.map_or(-1, |client| unsafe { (self.host.get_client_fd)(client.raw()) })
    }

    fn seat(&mut self, seat: Seat, screen: usize, client: Option<ClientId>) {
        let before = self.roles.take(seat, screen, client);
        for id in before.into_iter().chain(client) {
            self.scheduler.handle(now(), Fact::Role { client: id, role: self.roles.of(id) });
        }
    }
}
