// SPDX-License-Identifier: MIT
//! The compositors and window managers of all screens, updated as they start and stop.
//!
//! | role | how it is recognised |
//! |---|---|
//! | compositing manager of screen n | owns the selection `_NET_WM_CM_Sn` (Extended Window Manager Hints, section 8) |
//! | window manager of screen n | owns the selection `WM_Sn` (ICCCM, section 4.3) |
//! | window manager without a selection | selects SubstructureRedirect on the root window (only one client can) |
//!
//! The server reports selection changes. Root windows must be polled, at most a few times a second.

use xqos_core::{ClientId, Role};

/// A kind of manager. A screen has at most one of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerKind {
    Compositor,
    WindowManager,
    Redirector,
}

impl ManagerKind {
    fn role(self) -> Role {
        match self {
            ManagerKind::Compositor => Role { compositor: true, ..Role::NONE },
            ManagerKind::WindowManager | ManagerKind::Redirector => Role { window_manager: true, ..Role::NONE },
        }
    }

    /// The kind of manager that owns this selection, and its screen.
    pub fn from_selection(name: &str) -> Option<(ManagerKind, usize)> {
        let (kind, screen) = match name.strip_prefix("_NET_WM_CM_S") {
            Some(screen) => (ManagerKind::Compositor, screen),
            None => (ManagerKind::WindowManager, name.strip_prefix("WM_S")?),
        };
        // Without this check, "+1" would parse.
        let is_number = !screen.is_empty() && screen.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Some((kind, screen.parse().ok()?)))?
    }
}

/// The current managers of all screens. The list is short.
#[derive(Debug, Default)]
pub struct Roles {
    managers: Vec<(ManagerKind, usize, ClientId)>,
}

impl Roles {
    /// Sets the manager of a screen; `None` removes it. Returns the previous manager if it was another client.
    pub fn take(&mut self, kind: ManagerKind, screen: usize, client: Option<ClientId>) -> Option<ClientId> {
        let at = self.managers.iter().position(|&(taken, of, _)| (taken, of) == (kind, screen));
        let before = at.map(|at| self.managers.swap_remove(at).2);
        self.managers.extend(client.map(|client| (kind, screen, client)));
        before.filter(|&before| Some(before) != client)
    }

    pub fn is_empty(&self) -> bool {
        self.managers.is_empty()
    }

    pub fn leave(&mut self, client: ClientId) {
        self.managers.retain(|&(_, _, other)| other != client);
    }

    pub fn role_of(&self, client: ClientId) -> Role {
        let managers = self.managers.iter().filter(|&&(_, _, other)| other == client);
        managers.fold(Role::NONE, |all, (kind, ..)| Role::from_bits(all.bits() | kind.role().bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_of_managers_are_distinguished_from_others() {
        let of = ManagerKind::from_selection;
        assert_eq!(of("_NET_WM_CM_S0"), Some((ManagerKind::Compositor, 0)));
        assert_eq!(of("WM_S12"), Some((ManagerKind::WindowManager, 12)));
        for other in
            ["PRIMARY", "WM_S", "WM_S+1", "WM_STATE", "_NET_WM_CM_S", "_NET_WM_CM_S0x", "WM_S99999999999999999999"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_screen_has_one_manager_of_each_kind_and_a_client_may_be_several() {
        let (old, new) = (ClientId(3), ClientId(4));
        let mut roles = Roles::default();
        assert_eq!(roles.take(ManagerKind::Compositor, 0, Some(old)), None);
        assert_eq!(roles.take(ManagerKind::WindowManager, 0, Some(old)), None);
        assert_eq!(roles.role_of(old), Role { compositor: true, window_manager: true });
        assert_eq!(roles.take(ManagerKind::Compositor, 0, Some(old)), None, "the manager is the same");
        assert_eq!(roles.take(ManagerKind::Compositor, 0, Some(new)), Some(old));
        assert_eq!(roles.role_of(old), Role { window_manager: true, ..Role::NONE });
        roles.leave(old);
        assert_eq!((roles.role_of(old), roles.role_of(new).compositor), (Role::NONE, true));
        assert_eq!(roles.take(ManagerKind::Compositor, 0, None), Some(new));
        assert_eq!(roles.role_of(new), Role::NONE);
    }
}
