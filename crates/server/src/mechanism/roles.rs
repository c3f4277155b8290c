// SPDX-License-Identifier: MIT
//! Compositors and window managers, as they start and stop.
//!
//! | role | how it is recognised |
//! |---|---|
//! | compositing manager of screen n | owns the selection `_NET_WM_CM_Sn` (Extended Window Manager Hints, section 8) |
//! | window manager of screen n | owns the selection `WM_Sn` (ICCCM, section 4.3) |
//! | window manager without a selection | selects SubstructureRedirect on the root window, as only one client can |
//!
//! The server reports changes of selections. Root windows must be polled, at most a few times a second.

use xqos_core::{ClientId, Role};

/// A position that one client at a time can have on a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    Compositor,
    WindowManager,
    Redirector,
}

impl Seat {
    fn role(self) -> Role {
        match self {
            Seat::Compositor => Role { compositor: true, ..Role::NONE },
            Seat::WindowManager | Seat::Redirector => Role { window_manager: true, ..Role::NONE },
        }
    }

    /// The position that a selection stands for, and its screen.
    pub fn of_selection(name: &str) -> Option<(Seat, usize)> {
        let (seat, screen) = match name.strip_prefix("_NET_WM_CM_S") {
            Some(screen) => (Seat::Compositor, screen),
            None => (Seat::WindowManager, name.strip_prefix("WM_S")?),
        };
        // Without this check, "+1" would parse.
        let is_number = !screen.is_empty() && screen.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Some((seat, screen.parse().ok()?)))?
    }
}

/// The present holder of each position. The list is short.
#[derive(Debug, Default)]
pub struct Roles {
    seats: Vec<(Seat, usize, ClientId)>,
}

impl Roles {
    /// Gives a position to a client, or to nobody. Returns the previous holder if it was another client.
    pub fn take(&mut self, seat: Seat, screen: usize, client: Option<ClientId>) -> Option<ClientId> {
        let at = self.seats.iter().position(|&(taken, of, _)| (taken, of) == (seat, screen));
        let before = at.map(|at| self.seats.swap_remove(at).2);
        self.seats.extend(client.map(|client| (seat, screen, client)));
        before.filter(|&before| Some(before) != client)
    }

    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Removes a client from all its positions.
    pub fn leave(&mut self, client: ClientId) {
        self.seats.retain(|&(_, _, other)| other != client);
    }

    /// The roles of a client.
    pub fn of(&self, client: ClientId) -> Role {
        let seats = self.seats.iter().filter(|&&(_, _, other)| other == client);
        seats.fold(Role::NONE, |all, (seat, ..)| Role::from_bits(all.bits() | seat.role().bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_of_managers_are_told_from_others() {
        let of = Seat::of_selection;
        assert_eq!(of("_NET_WM_CM_S0"), Some((Seat::Compositor, 0)));
        assert_eq!(of("WM_S12"), Some((Seat::WindowManager, 12)));
        for other in
            ["PRIMARY", "WM_S", "WM_S+1", "WM_STATE", "_NET_WM_CM_S", "_NET_WM_CM_S0x", "WM_S99999999999999999999"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_seat_has_one_client_and_a_client_may_have_several_seats() {
        let (old, new) = (ClientId(3), ClientId(4));
        let mut roles = Roles::default();
        assert_eq!(roles.take(Seat::Compositor, 0, Some(old)), None);
        assert_eq!(roles.take(Seat::WindowManager, 0, Some(old)), None);
        assert_eq!(roles.of(old), Role { compositor: true, window_manager: true });
        assert_eq!(roles.take(Seat::Compositor, 0, Some(old)), None, "it was its own");
        assert_eq!(roles.take(Seat::Compositor, 0, Some(new)), Some(old));
        assert_eq!(roles.of(old), Role { window_manager: true, ..Role::NONE });
        roles.leave(old);
        assert_eq!((roles.of(old), roles.of(new).compositor), (Role::NONE, true));
        assert_eq!(roles.take(Seat::Compositor, 0, None), Some(new));
        assert_eq!(roles.of(new), Role::NONE);
    }
}
