// SPDX-License-Identifier: MIT
//! Profiles: the usual start-up questions of a toolkit's programs, for programs that start for the first time.
//!
//! The files that a program has mapped show its toolkit: linked, loaded later, or used by an interpreter. A few
//! programs have profiles of their own.

use std::path::Path;
use xqos_near::Questions;
use xqos_sys::proc;

/// A profile by its name in data/near.
macro_rules! profile {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../../data/near/", $name, ".profile")))
    };
}

/// Profiles of single programs, by the name of the process.
const PROGRAMS: [(&str, &str); 2] = [profile!("emacs"), profile!("xterm")];

/// Profiles of toolkits, and how the names of their files begin. If a program uses several toolkits, the first one in
/// this list has opened the connection.
const TOOLKITS: [((&str, &str), &[&str]); 11] = [
    (profile!("chromium"), &["chrome_100_percent.pak"]),
    (profile!("java"), &["libawt_xawt.so"]),
    (profile!("qt6"), &["libQt6XcbQpa.so"]),
    (profile!("qt5"), &["libQt5XcbQpa.so"]),
    (profile!("gtk4"), &["libgtk-4.so"]),
    (profile!("gtk3"), &["libgtk-3.so"]),
    (profile!("gtk2"), &["libgtk-x11-2.0.so"]),
    (profile!("sdl2"), &["libSDL2-2.0.so"]),
    (profile!("tk"), &["libtk8"]),
    (profile!("xt"), &["libXt.so"]),
    (profile!("xlib"), &["libX11.so", "libxcb.so"]),
];

/// The name of the profile for a process, and the profile. `None` if the process cannot be read, or uses no library
/// that is known.
pub fn of_process(pid: i32) -> Option<(&'static str, Questions)> {
    let program = program(pid)?;
    // Other users may not see what a program with privileges has mapped.
    let (name, text) = choose(&program, &proc::maps(pid))?;
    Questions::read(text).ok().map(|questions| (name, questions))
}

pub fn program(pid: i32) -> Option<String> {
    proc::name(pid).filter(|name| !name.is_empty())
}

fn choose(program: &str, maps: &str) -> Option<(&'static str, &'static str)> {
    // The bytes in profiles are those that little-endian machines send.
    if cfg!(target_endian = "big") {
        return None;
    }
    if let Some(profile) = PROGRAMS.iter().find(|(name, _)| *name == program) {
        return Some(*profile);
    }
    let files: Vec<&str> = maps.lines().filter_map(|line| Path::new(line).file_name()?.to_str()).collect();
    let is_mapped = |starts: &[&str]| starts.iter().any(|start| files.iter().any(|file| file.starts_with(start)));
    TOOLKITS.iter().find(|(_, starts)| is_mapped(starts)).map(|(profile, _)| *profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(program: &str, files: &[&str]) -> Option<&'static str> {
        let line = |file: &&str| format!("7f1ab35f6000-7f1ab35f8000 r-xp 00002000 fe:01 1182 {file}\n");
        choose(program, &files.iter().map(line).collect::<String>()).map(|(name, _)| name)
    }

    #[test]
    fn the_mapped_files_select_the_profile() {
        let lib = "/usr/lib/x86_64-linux-gnu";
        let of = |program, names: &[&str]| {
            let files: Vec<String> = names.iter().map(|name| format!("{lib}/{name}")).collect();
            chosen(program, &files.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(of("gedit", &["libX11.so.6.4.0", "libgtk-3.so.0.2406.32"]), Some("gtk3"));
        assert_eq!(of("xclock", &["libX11.so.6.4.0", "libXaw7.so.7.0.0", "libXt.so.6.0.0"]), Some("xt"));
        assert_eq!(of("xdpyinfo", &["libX11.so.6.4.0"]), Some("xlib"));
        assert_eq!(of("python3", &["libQt5XcbQpa.so.5.15.8", "libX11.so.6"]), Some("qt5"));
        assert_eq!(of("true", &["libc.so.6"]), None);
        assert_eq!(chosen("true", &["/home/libX11.so.d/file", "", "[heap]"]), None, "only the file's name counts");
    }

    #[test]
    fn a_programs_own_profile_wins() {
        assert_eq!(chosen("xterm", &["/usr/lib/libXt.so.6.0.0"]), Some("xterm"));
        assert_eq!(chosen("xterm", &[]), Some("xterm"), "even if its files are not visible");
    }

    #[test]
    fn every_profile_is_shipped_and_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/near");
        let files =
            std::fs::read_dir(folder).unwrap().filter_map(|file| Some(file.ok()?.path().file_stem()?.to_owned()));
        let mut files: Vec<String> = files.filter_map(|name| name.into_string().ok()).collect();
        let shipped = || PROGRAMS.iter().chain(TOOLKITS.iter().map(|(profile, _)| profile));
        let mut names: Vec<&str> = shipped().map(|(name, _)| *name).collect();
        files.sort();
        names.sort();
        assert_eq!(files, names);
        for (name, text) in shipped() {
            let questions = Questions::read(text).unwrap_or_else(|damaged| panic!("{name}: {damaged}"));
            assert!(questions.usual().count() >= 5, "{name}");
            assert_eq!(questions, questions.for_others(), "{name} names outputs or devices of one server");
        }
    }
}
