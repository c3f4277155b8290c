// SPDX-License-Identifier: MIT
//! Identifies the program at the other end of a connection by data from the kernel.

use crate::host::kernel;
use crate::mechanism::access::Identity;
use crate::mechanism::host::Established;
use std::os::fd::RawFd;

pub fn identity_of(fd: RawFd) -> Identity {
    xqos_sys::peer(&fd).map_or(Identity::REMOTE, |(pid, uid)| Identity { pid, uid })
}

/// A client that is set up. `program` is its name, if the server knows it.
pub fn established(identity: Identity, fd: RawFd, program: Option<String>) -> Established {
    let Identity { pid, .. } = identity;
    let by_pid = || if pid > 0 { xqos_sys::program(pid) } else { String::new() };
    let group = if pid > 0 { xqos_sys::proc::control_group(pid) } else { None }.unwrap_or_default();
    Established {
        program: program.unwrap_or_else(by_pid),
        control_group: application_in(&group).map(str::to_owned),
        host: if identity.is_local() { None } else { kernel::peer_address(fd) },
    }
}

/// The application in the path of a control group: the name of the scope or service in which a desktop starts a
/// program.
fn application_in(path: &str) -> Option<&str> {
    let unit = path.rsplit('/').find(|part| part.ends_with(".scope") || part.ends_with(".service"))?;
    unit.strip_prefix("app-")?.strip_suffix(".scope").or_else(|| unit.strip_prefix("app-")?.strip_suffix(".service"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_recognised_by_their_control_groups() {
        let of = |path: &str| application_in(path).map(str::to_owned);
        let user = "/user.slice/user-1000.slice/user@1000.service/app.slice";
        assert_eq!(of(&format!("{user}/app-gnome-firefox-77.scope")).as_deref(), Some("gnome-firefox-77"));
        assert_eq!(of(&format!("{user}/app-org.kde.konsole@1.service")).as_deref(), Some("org.kde.konsole@1"));
        assert_eq!(of("/user.slice/user-0.slice/session-2.scope"), None);
        assert_eq!(of("/"), None);
        assert_eq!(of(""), None);
    }
}
