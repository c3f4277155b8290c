// SPDX-License-Identifier: MIT
//! Programs that experiments need, with the Debian packages that errors about missing programs name.

use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, error, fmt};

/// Debian package of each program.
const PACKAGES: [(&str, &str); 37] = [
    ("Xephyr", "xserver-xephyr"),
    ("Xorg", "xserver-xorg-core"),
    ("Xtigervnc", "tigervnc-standalone-server"),
    ("Xvfb", "xvfb"),
    ("Xwayland", "xwayland"),
    ("chromium", "chromium"),
    ("dbus-daemon", "dbus-daemon"),
    ("dbus-run-session", "dbus-daemon"),
    ("emacs", "emacs-lucid"),
    ("featherpad", "featherpad"),
    ("gnumeric", "gnumeric"),
    ("gtk3-demo", "gtk-3-examples"),
    ("gtk3-icon-browser", "gtk-3-examples"),
    ("gtk4-demo", "gtk-4-examples"),
    ("kwin_wayland", "kwin-wayland"),
    ("mpv", "mpv"),
    ("mutter", "mutter"),
    ("nxproxy", "nxproxy"),
    ("pcmanfm", "pcmanfm"),
    ("qt6ct", "qt6ct"),
    ("speedcrunch", "speedcrunch"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("sshd", "openssh-server"),
    ("stdbuf", "coreutils"),
    ("sway", "sway"),
    ("twm", "twm"),
    ("weston", "weston"),
    ("x11perf", "x11-apps"),
    ("xauth", "xauth"),
    ("xclock", "x11-apps"),
    ("xdotool", "xdotool"),
    ("xfce4-panel", "xfce4-panel"),
    ("xfce4-session", "xfce4-session"),
    ("xfdesktop", "xfdesktop4"),
    ("xfwm4", "xfwm4"),
    ("xterm", "xterm"),
];

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
        match PACKAGES.iter().find(|(program, _)| *program == name) {
            Some((_, package)) => write!(out, ": install Debian's package {package}"),
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
