// SPDX-License-Identifier: MIT
//! The name of a process's program as users know it: the last part of its first argument.
//!
//! Chromium and programs based on it overwrite the first argument with all arguments, separated by spaces. The kernel's
//! name of the process (its first 15 bytes) then shows where the first argument ended, since a path can itself contain
//! spaces.
//!
//! Wine and Proton store a Windows path as the first argument, such as `Z:\games\one.exe`.

use crate::proc;

/// Bytes of a name that the kernel keeps.
const KEPT_BYTES: usize = 15;

/// The name of a process's program; empty for kernel threads and processes that have exited.
pub fn program(pid: i32) -> String {
    named_by(&proc::command_line(pid), || proc::name(pid).unwrap_or_default())
}

/// The last part of a path, after the last `/`, or `\` as on Windows.
pub fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// True for an absolute Windows path, `Z:\x` or `\\server\x`. Wine never appends arguments to it.
fn is_of_windows(path: &str) -> bool {
    path.get(1..3) == Some(":\\") || path.starts_with("\\\\")
}

fn named_by(line: &[u8], kernels_name: impl FnOnce() -> String) -> String {
    let (first, rest) = line.split_at(line.iter().position(|&byte| byte == 0).unwrap_or(line.len()));
    let first = String::from_utf8_lossy(first);
    let is_alone = rest.iter().all(|&byte| byte == 0);
    if !is_alone || !first.contains(' ') || is_of_windows(&first) {
        return last_part(&first).to_owned();
    }
    let kernels = kernels_name();
    let spaces = first.match_indices(' ').map(|(at, _)| at);
    let mut names = spaces.chain([first.len()]).map(|end| last_part(&first[..end]));
    let is_it = |name: &&str| kernels.as_bytes() == &name.as_bytes()[..name.len().min(KEPT_BYTES)];
    let found = names.find(is_it).unwrap_or_else(|| last_part(first.split(" -").next().unwrap_or_default()));
    found.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &str, kernels: &str) -> String {
        named_by(line.as_bytes(), || kernels.to_owned())
    }

    #[test]
    fn the_name_is_the_last_part_of_the_first_argument() {
        assert_eq!(name("/usr/bin/xterm\0-e\0/bin/sh\0", "renamed"), "xterm");
        assert_eq!(name("xterm\0", "renamed"), "xterm");
        assert_eq!(name("", "gone"), "");
        assert_eq!(name("/opt/My Editor/my editor\0/home/a file\0", "renamed"), "my editor");
    }

    #[test]
    fn arguments_that_overwrite_the_first_are_not_part_of_the_name() {
        let line = "/usr/lib/chromium/chromium --no-sandbox --app=file:///tmp/page.html\0";
        assert_eq!(name(line, "chromium"), "chromium");
        assert_eq!(name(line, "renamed"), "chromium");
        assert_eq!(name("/usr/share/code/code /home/someone/file\0\0\0", "code"), "code");
        assert_eq!(name("/opt/a very long program --flag\0", "a very long pro"), "a very long program");
    }

    #[test]
    fn a_path_may_contain_spaces() {
        assert_eq!(name("/opt/My Editor/my editor\0", "my editor"), "my editor");
        assert_eq!(name("/opt/My Editor/editor\0", "renamed"), "editor");
    }

    #[test]
    fn a_windows_path_gives_the_whole_name_after_its_last_separator() {
        let door = r"Z:\home\user\common\Get To The Orange Door\Get To The Orange Door.exe";
        assert_eq!(name(&format!("{door}\0"), "Get To The Oran"), "Get To The Orange Door.exe");
        assert_eq!(name(&format!("{door}\0-windowed\0"), "Get To The Oran"), "Get To The Orange Door.exe");
        assert_eq!(name("Other Game\\bin\\other.exe\0", "other.exe"), "other.exe");
        assert_eq!(name("C:\\windows\\system32/explorer.exe\0", "explorer.exe"), "explorer.exe");
        assert_eq!(name("/opt/FactoryGameSteam-Win64-Shipping.exe\0", ""), "FactoryGameSteam-Win64-Shipping.exe");
        assert_eq!(name("/usr/share/code/code --path=C:\\x y\0", "code"), "code");
    }

    #[test]
    fn the_name_of_this_process_is_found() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(program(std::process::id() as i32), own.file_name().unwrap().to_str().unwrap());
        assert_eq!(program(-1), "");
    }
}
