// SPDX-License-Identifier: MIT
//! The files that make compositors start Xwayland with xqos: their paths and their contents.

use crate::error::{Result, asking, bail, refused};
use crate::host::{self, shell_quoted};
use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xqos_cli::output::NewFile;

/// Marks files that were written entirely by xqos.
const MARK: &str = "# Written by `xqos xwayland install`; `xqos xwayland remove` takes it away.";

#[derive(Debug)]
pub struct Places {
    /// The script, in a separate folder that can come first in PATH.
    pub wrapper: PathBuf,
    pub environment: PathBuf,
    pub weston: PathBuf,
}

impl Places {
    pub fn of_user() -> Result<Places> {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| refused!("HOME is not an absolute path: set it to your home folder"))?;
        let folder = |variable, otherwise: &str| {
            let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            named.unwrap_or_else(|| home.join(otherwise))
        };
        let config = folder("XDG_CONFIG_HOME", ".config");
        Ok(Places {
            wrapper: folder("XDG_DATA_HOME", ".local/share").join("xqos/xwayland/Xwayland"),
            environment: config.join("environment.d/90-xqos-xwayland.conf"),
            weston: config.join("weston.ini"),
        })
    }
}

/// The text of the script. If the module is missing, the script starts Xwayland without it.
pub fn wrapper(module: &Path, server: &Path) -> String {
    format!(
        "#!/bin/sh\n{MARK}\nmodule={}\n[ -r \"$module\" ] && export LD_PRELOAD=\"$module${{LD_PRELOAD:+:$LD_PRELOAD}}\"\n\
         exec {} \"$@\"\n",
        shell_quoted(&module.display().to_string()),
        shell_quoted(&server.display().to_string())
    )
}

/// The file for environment.d(5), which sets the environment of a systemd session from the next login on.
pub fn environment(wrapper: &Path, wlroots: bool, path: bool) -> String {
    let mut text = format!("{MARK}\n");
    if wlroots {
        text += &format!("WLR_XWAYLAND={}\n", wrapper.display());
    }
    if let Some(folder) = wrapper.parent().filter(|_| path) {
        text += &format!("PATH={}:$PATH\n", folder.display());
    }
    text
}

/// Returns true if xqos has written this file, and may therefore replace and remove it.
pub fn is_ours(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.lines().take(2).any(|line| line == MARK))
}

/// The first program of this name in PATH that is not our script.
pub fn in_path(name: &str) -> Option<PathBuf> {
    host::in_path(name.as_ref(), |program| !is_ours(program))
}

/// The real Xwayland, which [`divert`] may have renamed.
pub fn server() -> Option<PathBuf> {
    in_path("Xwayland").or_else(|| in_path("Xwayland.distrib"))
}

/// Returns true if our file of environment.d sets this variable.
pub fn sets(environment: &Path, variable: &str) -> bool {
    let text = fs::read_to_string(environment).unwrap_or_default();
    text.lines().any(|line| line.split_once('=').is_some_and(|(name, _)| name == variable))
}

/// Replaces a file atomically, so that readers see the old or the new one, and creates its folders. A symbolic link is
/// followed, as editors do: dotfiles are often links.
pub fn write(path: &Path, text: &str, is_executable: bool) -> Result<()> {
    let folder = path.parent().ok_or_else(|| refused!("the file has no folder"))?;
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let new = NewFile::create(path, 0o644)?;
        let mut file = new.file()?;
        if is_executable {
            file.set_permissions(fs::Permissions::from_mode(0o755))?;
        }
        file.write_all(text.as_bytes())?;
        new.finish()
    };
    write().map_err(asking(format!("cannot write {}", path.display())))
}

/// Xwayland, for compositors with a fixed path to it. Package updates go to the diverted file.
pub const PROGRAM: &str = "/usr/bin/Xwayland";
const DIVERTED: &str = "/usr/bin/Xwayland.distrib";

/// Returns true if our script is in place of Xwayland.
pub fn is_diverted() -> bool {
    is_ours(Path::new(PROGRAM)) && Path::new(DIVERTED).exists()
}

/// Moves Xwayland aside and puts the script in its place. If the second step fails, the first is undone.
pub fn divert(module: &Path) -> Result<()> {
    if !Path::new(PROGRAM).exists() {
        bail!("{PROGRAM} is not installed: install Debian's package xwayland");
    }
    dpkg_divert(&["--add"])?;
    write(Path::new(PROGRAM), &wrapper(module, Path::new(DIVERTED)), true)
        .inspect_err(|_| _ = dpkg_divert(&["--remove"]))
}

pub fn undo_diversion() -> Result<()> {
    // dpkg-divert does not overwrite a file.
    fs::remove_file(PROGRAM).map_err(asking(format!("cannot remove the script at {PROGRAM}")))?;
    dpkg_divert(&["--remove"])
}

fn dpkg_divert(what: &[&str]) -> Result<()> {
    let mut command = Command::new("dpkg-divert");
    command.args(["--local", "--rename", "--divert", DIVERTED]).args(what).arg(PROGRAM);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(asking("cannot run dpkg-divert: this needs Debian or a derivative"))?;
    if !output.status.success() {
        bail!("dpkg-divert: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Our section in weston.ini. It comes first, because weston reads only the first section of a name; the file's own
/// section stays as it is, so that removing ours restores the file.
const BEGIN: &str = "# xqos begin\n";
const END: &str = "# xqos end\n";

/// The file with our section; `None` if the file already has it.
pub fn weston_with_path(text: &str, path: &str) -> Option<String> {
    (!text.contains(BEGIN)).then(|| format!("{BEGIN}[xwayland]\npath={path}\n{END}{text}"))
}

/// The file without our section; `None` if the file does not have it.
pub fn weston_without_path(text: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_marked_and_quotes_its_paths() {
        let text = wrapper(Path::new("/a b/it's/xqos.so"), Path::new("/usr/bin/Xwayland"));
        assert!(
            text.contains("module='/a b/it'\\''s/xqos.so'\n") && text.ends_with("exec '/usr/bin/Xwayland' \"$@\"\n")
        );
        assert_eq!(text.lines().nth(1), Some(MARK));
    }

    #[test]
    fn the_environment_has_the_requested_variables() {
        let of = |wlroots, path| environment(Path::new("/home/me/x/Xwayland"), wlroots, path);
        assert!(of(true, false).ends_with("WLR_XWAYLAND=/home/me/x/Xwayland\n"));
        assert!(of(false, true).ends_with("PATH=/home/me/x:$PATH\n"));
    }

    #[test]
    fn a_file_is_restored_exactly() {
        for file in ["", "[core]\nxwayland=true", "[core]\r\n[xwayland]\r\npath = /opt/Xwayland\r\n[shell]\r\n"] {
            let with = weston_with_path(file, "/ours").expect("the section was not there");
            assert!(with.starts_with("# xqos begin\n[xwayland]\npath=/ours\n"), "{with}");
            assert_eq!(weston_with_path(&with, "/ours"), None, "a second call changes nothing");
            assert_eq!(weston_without_path(&with).as_deref(), Some(file));
            assert_eq!(weston_without_path(file), None);
        }
    }

    #[test]
    fn later_additions_are_kept() {
        let with = weston_with_path("[core]\n", "/ours").unwrap();
        let added = format!("[a]\n{with}[shell]\nx=1\n");
        assert_eq!(weston_without_path(&added).as_deref(), Some("[a]\n[core]\n[shell]\nx=1\n"));
    }

    #[test]
    fn an_incomplete_block_is_left_alone() {
        for text in ["# xqos begin\npath=/ours\n", "# xqos end\n# xqos begin\n", "# xqos end\n"] {
            assert_eq!(weston_without_path(text), None);
        }
    }
}
