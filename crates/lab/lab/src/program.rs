// SPDX-License-Identifier: MIT
//! Programs that experiments need, with the Debian packages that errors about missing programs name.

use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, error, fmt};

/// Debian packages with several programs, or with a program of another name.
const PACKAGES: [(&str, &str); 18] = [
    ("Xephyr", "xserver-xephyr"),
    ("Xorg", "xserver-xorg-core"),
    ("Xtigervnc", "tigervnc-standalone-server"),
    ("Xvfb", "xvfb"),
    ("Xwayland", "xwayland"),
    ("dbus-run-session", "dbus-daemon"),
    ("emacs", "emacs-lucid"),
    ("gtk3-demo", "gtk-3-examples"),
    ("gtk3-icon-browser", "gtk-3-examples"),
    ("gtk4-demo", "gtk-4-examples"),
    ("kwin_wayland", "kwin-wayland"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("sshd", "openssh-server"),
    ("stdbuf", "coreutils"),
    ("x11perf", "x11-apps"),
    ("xclock", "x11-apps"),
    ("xfdesktop", "xfdesktop4"),
];
/// Programs whose Debian package has their name.
const SAME: &str = "chromium dbus-daemon featherpad gnumeric mpv mutter nxproxy pcmanfm qt6ct speedcrunch \
                    sway twm weston xauth xdotool xfce4-panel xfce4-session xfwm4 xterm";

/// The path of one of xqos's own programs, which some experiments start.
pub(crate) fn own(name: &str) -> Result<PathBuf> {
    xqos_cli::sibling::find(name).ok_or_else(|| Missing::new(name).into())
}

/// PATH with the folder of xqos's own programs first.
pub(crate) fn path() -> OsString {
    let own = own("xqos").ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(own.into_iter().chain(env::split_paths(&path))).unwrap_or(path)
}

/// A program that is not installed. Its experiment is skipped, but the others still run.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    program: String,
}

impl Missing {
    pub fn new(program: impl Into<String>) -> Missing {
        Missing { program: program.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Path::new(&self.program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        write!(out, "{} is missing", self.program)?;
        let other = PACKAGES.iter().find(|(program, _)| *program == name).map(|(_, package)| *package);
        match other.or_else(|| SAME.split(' ').find(|program| *program == name)) {
            Some(package) => write!(out, ": install Debian's package {package}"),
            None => Ok(()),
        }
    }
}

impl error::Error for Missing {}

/// Checks for a program that another one starts. [`Owned::start`](crate::process::Owned::start) checks for all others.
pub fn require(program: &str) -> Result<(), Missing> {
    find(program).map(drop)
}

/// Finds a program. Daemons may be in folders that are missing from a user's PATH.
pub fn find(program: &str) -> Result<PathBuf, Missing> {
    let path = env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let places = env::split_paths(&path).chain(daemons).map(|folder| folder.join(program));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| Missing::new(program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Owned;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let text = |program: &str| Missing::new(program).to_string();
        assert_eq!(text("x11perf"), "x11perf is missing: install Debian's package x11-apps");
        assert_eq!(
            text("/usr/lib/xorg/Xorg"),
            "/usr/lib/xorg/Xorg is missing: install Debian's package xserver-xorg-core"
        );
        assert_eq!(text("nonsense"), "nonsense is missing");
        assert_eq!((require("sh"), require("no-such-program").is_err()), (Ok(()), true));
    }

    #[test]
    fn only_a_program_that_does_not_exist_counts_as_missing() {
        let start = |program: &str| Owned::start(&mut Command::new(program), Duration::ZERO).unwrap_err();
        assert_eq!(start("no-such-program").downcast_ref::<Missing>(), Some(&Missing::new("no-such-program")));
        assert!(start("/etc/passwd").downcast_ref::<Missing>().is_none());
    }
}
