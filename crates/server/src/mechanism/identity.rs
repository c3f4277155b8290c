// SPDX-License-Identifier: MIT
//! The identity of a client, as the kernel reports it. Its rights are in `mechanism::access`.

use std::fs;
use std::os::fd::RawFd;

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

    /// The process at the other end of a connection.
    pub fn of_peer(fd: RawFd) -> Identity {
        xqos_sys::peer(&fd).map_or(Identity::REMOTE, |(pid, uid)| Identity { pid, uid })
    }

    pub fn is_local(&self) -> bool {
        self.uid != Identity::NOBODY
    }

    pub fn program(&self) -> String {
        if self.pid > 0 { xqos_sys::program(self.pid) } else { String::new() }
    }

    /// The control group of the client's application ([`application_in`]).
    pub fn application(&self) -> Option<String> {
        let lines = (self.pid > 0).then(|| fs::read_to_string(format!("/proc/{}/cgroup", self.pid)).ok())??;
        application_in(&lines).map(str::to_owned)
    }
}

/// The application in /proc/PID/cgroup: the name that a desktop gives to the scope or service of a program it starts.
fn application_in(lines: &str) -> Option<&str> {
    let path = lines.lines().find_map(|line| line.strip_prefix("0::"))?;
    let unit = path.rsplit('/').find(|part| part.ends_with(".scope") || part.ends_with(".service"))?;
    unit.strip_prefix("app-")?.strip_suffix(".scope").or_else(|| unit.strip_prefix("app-")?.strip_suffix(".service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_recognised_by_their_control_groups() {
        let of = |path: &str| application_in(path).map(str::to_owned);
        let user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice";
        assert_eq!(of(&format!("{user}/app-gnome-firefox-77.scope\n")).as_deref(), Some("gnome-firefox-77"));
        assert_eq!(of(&format!("{user}/app-org.kde.konsole@1.service\n")).as_deref(), Some("org.kde.konsole@1"));
        assert_eq!(of("0::/user.slice/user-0.slice/session-2.scope\n"), None);
        assert_eq!(of("12:cpu:/app-x-1.scope\n0::/\n"), None);
        assert_eq!(of(""), None);
    }
}
