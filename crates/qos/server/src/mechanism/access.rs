// SPDX-License-Identifier: MIT
//! Access control: the identity of a client, and which requests it may make.
//!
//! | request | allowed for |
//! |---|---|
//! | reading, own settings | every client that sees the extension (SECURITY hides it from untrusted clients) |
//! | settings of another client | local clients of the same user as that client, of the server's user, or of root |
//! | settings of a group | clients that may change each of its members |
//! | the server's policy | local clients of the server's user or of root |
//! | any request over the control socket | the server's user, root, and users that have a client |
//!
//! `docs/access.md` has the complete table, and a test checks each of its cells on real servers. User ids are compared
//! as they appear in the server's user namespace. All users without an id in this namespace appear with the same id
//! ([`xqos_sys::unknown_user`]), which matches no user.

use std::sync::OnceLock;

/// The process of a client, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// 0 if the client is remote or in another pid namespace.
    pub pid: i32,
    /// [`Identity::NOBODY`] if the client is remote.
    pub uid: u32,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity::REMOTE
    }
}

impl Identity {
    /// Stands for a user that is not on this machine.
    pub const NOBODY: u32 = u32::MAX;
    pub const REMOTE: Identity = Identity { pid: 0, uid: Identity::NOBODY };

    pub fn is_local(&self) -> bool {
        self.uid != Identity::NOBODY
    }

    /// Returns true if both clients belong to the same known user of this machine.
    pub fn is_same_user(&self, other: &Identity) -> bool {
        self.has_known_user() && self.uid == other.uid
    }

    /// Returns true if this client may set another client's reservation, weight or priority.
    pub fn may_change(&self, other: &Identity, server_uid: u32) -> bool {
        self.may_administer(server_uid) || self.is_same_user(other)
    }

    /// Returns true if this client may set the server's policy.
    pub fn may_administer(&self, server_uid: u32) -> bool {
        self.has_known_user() && (self.uid == 0 || self.uid == server_uid)
    }

    fn has_known_user(&self) -> bool {
        static UNKNOWN: OnceLock<Option<u32>> = OnceLock::new();
        self.is_local() && *UNKNOWN.get_or_init(xqos_sys::unknown_user) != Some(self.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_the_servers_user_and_root_may_change_a_client() {
        let user = |uid| Identity { pid: 1, uid };
        assert!(user(1000).may_change(&user(1000), 0));
        assert!(!user(1001).may_change(&user(1000), 0));
        assert!(user(0).may_change(&user(1000), 900) && user(900).may_change(&user(1000), 900));
        assert!(!Identity::REMOTE.may_change(&Identity::REMOTE, 0), "two remote clients are not one user");
        assert!(!Identity::REMOTE.may_change(&user(1000), Identity::NOBODY));
        assert!(!user(1000).may_administer(0) && user(0).may_administer(900));
    }
}
