// SPDX-License-Identifier: MIT
//! Facts about a client's process, from the server and from /proc.
//!
//! The kernel reports pid, user (credentials of the client's socket), program and control group, so none of these is
//! the client's own claim. Facts that cannot be read stay unknown: the program of another user's process, and
//! everything about a remote client.

use std::collections::HashMap;
use std::fs;
use xqos_abi::{ClientEntry, cut, entry_flag};
use xqos_rules::facts::{ClientFacts, bounded, unit_of};
use xqos_sys::proc;

/// Names of users by number, from /etc/passwd only. Other users are known by their number.
#[derive(Debug, Default)]
pub struct Users(HashMap<u32, String>);

impl Users {
    pub fn read() -> Users {
        Users::parse(&fs::read("/etc/passwd").unwrap_or_default())
    }

    fn parse(passwd: &[u8]) -> Users {
        let user = |line: &[u8]| {
            let line = std::str::from_utf8(line).ok()?;
            let mut fields = line.split(':');
            let name = fields.next()?;
            Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
        };
        Users(passwd.split(|&byte| byte == b'\n').filter_map(user).collect())
    }

    pub fn name(&self, number: u32) -> String {
        self.0.get(&number).cloned().unwrap_or_else(|| number.to_string())
    }

    fn names(&self, number: u32) -> Vec<String> {
        self.0.get(&number).cloned().into_iter().chain([number.to_string()]).collect()
    }
}

/// The facts of a client, without those of its windows.
pub fn facts(entry: &ClientEntry, users: &Users) -> ClientFacts {
    let is_local = entry.flags & entry_flag::LOCAL != 0;
    let pid = (is_local && entry.pid > 0).then_some(entry.pid);
    let cgroup = pid.and_then(proc::control_group).map(|path| bounded(&path).into_owned());
    ClientFacts {
        exe: pid.and_then(exe),
        name: Some(name(entry, pid)).filter(|name| !name.is_empty()),
        user: (is_local && entry.uid != u32::MAX).then(|| users.names(entry.uid)),
        unit: cgroup.as_deref().and_then(unit_of).map(str::to_owned),
        cgroup,
        host: Some(bounded(&entry.host).into_owned()).filter(|host| !host.is_empty()),
        local: Some(is_local),
        ..ClientFacts::default()
    }
}

/// The server has only the beginning of a long name; /proc has all of it.
fn name(entry: &ClientEntry, pid: Option<i32>) -> String {
    let whole = pid.map(xqos_sys::program).filter(|whole| cut(whole) == entry.name);
    bounded(&whole.unwrap_or_else(|| entry.name.clone())).into_owned()
}

/// The path of a process's program.
pub fn exe(pid: i32) -> Option<String> {
    Some(bounded(&proc::program_path(pid)?.to_string_lossy()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_a_name_and_a_number() {
        let users = Users::parse(b"root:x:0:0:root:/root:/bin/sh\nbad\n\xff:x:7:\nann:x:1000:1000::/:/bin/sh\n");
        assert_eq!(users.names(1000), ["ann", "1000"]);
        assert_eq!(users.names(7), ["7"]);
    }

    #[test]
    fn facts_of_a_local_process_are_known_and_of_a_remote_client_unknown() {
        let pid = std::process::id() as i32;
        let entry = ClientEntry { pid, uid: 0, name: "me".into(), flags: entry_flag::LOCAL, ..ClientEntry::default() };
        let known = facts(&entry, &Users::default());
        let program = std::env::current_exe().unwrap();
        assert_eq!(known.exe.as_deref(), program.to_str());
        assert_eq!((known.local, known.user.as_deref()), (Some(true), Some(&["0".to_owned()][..])));
        assert_eq!(known.name.as_deref(), Some("me"), "the server's name, because it does not begin the one in /proc");
        let known = facts(&ClientEntry { flags: 0, ..entry }, &Users::default());
        assert_eq!((known.exe, known.user, known.cgroup, known.local), (None, None, None, Some(false)));
    }

    #[test]
    fn a_long_name_is_completed_from_proc() {
        let whole = "FactoryGameSteam-Win64-Shipping.exe";
        let mut game = std::process::Command::new("sleep");
        let mut game = std::os::unix::process::CommandExt::arg0(&mut game, whole).arg("60").spawn().unwrap();
        // spawn() can return before the kernel has set up the arguments.
        while xqos_sys::program(game.id() as i32).is_empty() {
            std::thread::yield_now();
        }
        let entry = ClientEntry {
            pid: game.id() as i32,
            name: cut(whole).to_owned(),
            flags: entry_flag::LOCAL,
            ..ClientEntry::default()
        };
        let known = facts(&entry, &Users::default()).name;
        game.kill().and_then(|()| game.wait()).unwrap();
        assert_eq!((entry.name.len(), known.as_deref()), (31, Some(whole)));
    }
}
