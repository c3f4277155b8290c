// SPDX-License-Identifier: MIT
//! The identity of a client, as the kernel reports it. Its rights are in `access`.

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
}
