// SPDX-License-Identifier: MIT
//! Facts about an X server from outside: its vendor and release, and its process.

pub mod exports;
pub mod xorg_config;

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;
use xqos_sys::{self as sys, proc};

/// File names of the module, as they appear in a server's memory map.
const MODULE_NAMES: [&str; 2] = ["/xqos.so", "/libxqos_module.so"];

/// The first program of this name in PATH that `is_wanted` accepts.
pub fn in_path(name: &OsStr, is_wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path) && is_wanted(path))
}

pub fn has_module(pid: i32) -> bool {
    proc::maps(pid).lines().any(|line| MODULE_NAMES.iter().any(|name| line.ends_with(name)))
}

/// A word for a shell, quoted if necessary.
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=+,@%".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { shell_quoted(word) }
}

pub fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.mode() & 0o111 != 0)
}

/// A server as seen from outside.
#[derive(Debug)]
pub struct Host {
    pub vendor: String,
    pub release: String,
    pub xwayland: bool,
    /// `None` if it runs on another machine or in a container.
    pub process: Option<HostProcess>,
}

#[derive(Debug)]
pub struct HostProcess {
    pub pid: i32,
    /// `None` if we may not read it.
    pub program: Option<PathBuf>,
    pub command: Vec<String>,
    /// Symbols that xqos needs and the program does not export; `None` if the program could not be read.
    pub missing: Option<Vec<&'static str>>,
    pub module_loaded: bool,
}

impl Host {
    /// `reported` is the server's pid if the server itself reported it. The process at the other end of the connection
    /// may be a Wayland compositor, which listens before it starts Xwayland.
    ///
    /// Without a connection, vendor and release stay empty.
    pub fn look(connection: Option<&RustConnection>, reported: Option<i32>) -> Host {
        let setup = connection.map(|connection| connection.setup());
        let vendor = setup.map(|setup| String::from_utf8_lossy(&setup.vendor).into_owned()).unwrap_or_default();
        let pid = reported.or_else(|| sys::peer_pid(connection?.stream()));
        let process = pid.filter(|&pid| xqos_sys::exists(pid)).map(HostProcess::look);
        let program = process.as_ref().and_then(|process| process.program.as_deref());
        let xwayland = is_xwayland(connection, &vendor, program);
        let release = setup.map(|setup| version(setup.release_number)).unwrap_or_default();
        Host { release, xwayland, process, vendor }
    }

    /// The program's name, or the vendor if the program is unknown. Only the command line of another user's process can
    /// be read.
    pub fn name(&self) -> &str {
        let process = self.process.as_ref();
        let command = || Some(Path::new(process?.command.first()?));
        let program = process.and_then(|process| process.program.as_deref()).or_else(command);
        program.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or(&self.vendor)
    }
}

impl HostProcess {
    fn look(pid: i32) -> HostProcess {
        let command = proc::command_line(pid);
        let command = command.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        HostProcess {
            pid,
            program: proc::program_path(pid),
            command: command.filter(|word| !word.is_empty()).collect(),
            missing: exports::missing(&proc::program_file(pid)).ok().flatten(),
            module_loaded: has_module(pid),
        }
    }
}

fn is_xwayland(connection: Option<&RustConnection>, vendor: &str, program: Option<&Path>) -> bool {
    // Since 23.1, Xwayland has an extension whose only purpose is identification.
    let extension =
        connection.and_then(|it| it.query_extension(b"XWAYLAND").ok()).and_then(|cookie| cookie.reply().ok());
    extension.is_some_and(|reply| reply.present)
        || vendor.to_ascii_lowercase().contains("xwayland")
        || program.and_then(Path::file_name).is_some_and(|name| name == "Xwayland" || name == "Xwayland.distrib")
}

/// Converts the release number to the usual form of the version: 12101007 is 21.1.7, 12013000 is 1.20.13.
fn version(number: u32) -> String {
    let (major, minor, patch, snapshot) =
        (number / 10_000_000, number / 100_000 % 100, number / 1000 % 100, number % 1000);
    match (major, snapshot) {
        // Since version 21, the number keeps the leading 1, but the written version does not.
        (1, _) if minor >= 21 => format!("{minor}.{patch}.{snapshot}"),
        (_, 0) => format!("{major}.{minor}.{patch}"),
        _ => format!("{major}.{minor}.{patch}.{snapshot}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_numbers_read_as_versions() {
        assert_eq!(version(12_101_007), "21.1.7");
        assert_eq!(version(12_101_016), "21.1.16");
        assert_eq!(version(12_013_000), "1.20.13");
        assert_eq!(version(11_999_902), "1.19.99.902");
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["Xvfb", ":77", "-screen", "0", "it's", "a b", "$x"].map(shell_word);
        assert_eq!(words.join(" "), r"Xvfb :77 -screen 0 'it'\''s' 'a b' '$x'");
    }
}
