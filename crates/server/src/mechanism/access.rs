// SPDX-License-Identifier: MIT
//! Access control: which client may make which request.
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
//! ([`unknown_user`]), which matches no user.

use crate::mechanism::identity::Identity;
use std::fs;
use std::sync::OnceLock;

impl Identity {
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
        self.is_local() && *UNKNOWN.get_or_init(unknown_user) != Some(self.uid)
    }
}

/// The id that stands for all users without an id in the server's user namespace; `None` if every user has one.
fn unknown_user() -> Option<u32> {
    /// The default of `overflowuid` in the kernel.
    const OVERFLOW: u32 = 65534;
    let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    let overflow = overflow.and_then(|text| text.trim().parse().ok()).unwrap_or(OVERFLOW);
    // Without /proc the user namespace is unknown, so assume that this id stands for unknown users.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    (!is_mapped(&map, overflow)).then_some(overflow)
}

/// Returns true if this uid_map (user_namespaces(7)) maps the given user id.
fn is_mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) = (words.next(), words.next(), words.next()) else {
            return false;
        };
        (first..first.saturating_add(count)).contains(&uid.into())
    })
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

    #[test]
    fn a_user_without_a_number_in_the_namespace_is_not_mapped() {
        const ALL: &str = "         0          0 4294967295\n";
        const CONTAINER: &str = "         0     100000      65536\n";
        const ROOTLESS: &str = "         0       1000          1\n         1     100000       1000\n";
        assert_eq!([ALL, CONTAINER, ROOTLESS, ""].map(|map| is_mapped(map, 65534)), [true, true, false, false]);
        assert!(is_mapped(ROOTLESS, 1000) && !is_mapped(ROOTLESS, 1001));
        assert!(!is_mapped("no map", 0));
    }
}
