// SPDX-License-Identifier: MIT
//! Finds out why Xorg does not load xqos although it is installed: another `Section "Module"` hides ours.
//!
//! In X.Org up to 21.1 (fixed in 26.1), each section of this name replaces the previous one, and the main configuration
//! file is read last. The files of xrdp and nvidia-xconfig have such a section.

use std::fs;
use std::path::{Path, PathBuf};

/// The file that loads xqos, as installed by `make install`.
const OURS: &str = "20-xqos.conf";
/// The folder of Xorg's main configuration file. A relative path on the command line starts here, too.
const FOLDER: &str = "/etc/X11";

/// A module section that replaces ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hiding {
    pub file: PathBuf,
    /// Line number, from 1.
    pub line: usize,
}

impl Hiding {
    /// Explains how to make Xorg load xqos.
    pub fn advice(&self, module: &str) -> String {
        format!(
            "{}:{} has a Section \"Module\", which replaces the one that loads xqos: add the line Load \"{module}\" to it, and \
             start the server again",
            self.file.display(),
            self.line
        )
    }
}

/// The section that hides ours from an Xorg with this command line; `folder` contains our file.
pub fn hiding(command: &[String], folder: &Path) -> Option<Hiding> {
    let named = command.iter().position(|word| word == "-config").and_then(|at| command.get(at + 1));
    // `join` with an absolute path ignores the folder.
    let main = Path::new(FOLDER).join(named.map_or("xorg.conf", String::as_str));
    let mut later: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    later.retain(|path| path.extension().is_some_and(|end| end == "conf") && path.file_name() > Some(OURS.as_ref()));
    later.sort();
    [main].into_iter().chain(later.into_iter().rev()).find_map(|file| {
        let line = foreign_section(&fs::read_to_string(&file).ok()?)?;
        Some(Hiding { file, line })
    })
}

/// The line of the last module section, unless that section loads xqos.
fn foreign_section(text: &str) -> Option<usize> {
    let (mut section, mut inside) = (None, false);
    for (at, line) in text.lines().enumerate() {
        let words: Vec<String> =
            line.split('#').next().unwrap_or("").split_whitespace().map(str::to_lowercase).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["section", "\"module\"", ..] => (section, inside) = (Some(at + 1), true),
            ["endsection", ..] => inside = false,
            ["load", what, ..] if inside && what.contains("xqos") => section = None,
            _ => {}
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_section_that_does_not_load_xqos_is_found() {
        let foreign = "# Section \"Module\"\nSection \"Device\"\nEndSection\n  section   \"Module\" # ours\n Load \"dbe\"\nEndSection\n";
        assert_eq!(foreign_section(foreign), Some(4));
        assert_eq!(foreign_section(&foreign.replace("\"dbe\"", "\"/usr/lib/xqos/xqos.so\"")), None);
        assert_eq!(foreign_section("Section \"Files\"\n Load \"xqos\"\nEndSection"), None);
        assert_eq!(foreign_section("Section \"Module\"\nEndSection\nLoad \"xqos\""), Some(1), "Load is outside");
    }

    #[test]
    fn the_file_of_the_command_line_comes_first_then_files_after_ours() {
        let folder = std::env::temp_dir().join(format!("xqos-xorg-config-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write =
            |name: &str| fs::write(folder.join(name), "Section \"Module\"\n Load \"glx\"\nEndSection\n").unwrap();
        let hidden = |name: &str| {
            let command = ["Xorg", ":7", "-config", folder.join(name).to_str().unwrap()].map(str::to_owned);
            hiding(&command, &folder).map(|hiding| hiding.file.file_name().unwrap().to_owned())
        };
        write("10-first.conf");
        assert_eq!(hidden("none"), None, "10-first.conf is read before ours");
        write("main");
        assert_eq!(hidden("main"), Some("main".into()));
        write("30-nvidia.conf");
        assert_eq!(hidden("none"), Some("30-nvidia.conf".into()));
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Uses the file of the package xorgxrdp, which scripts/setup installs.
    #[test]
    fn the_configuration_of_xrdp_hides_ours() {
        let command = ["Xorg", ":10", "-config", "xrdp/xorg.conf"].map(str::to_owned);
        let hiding =
            hiding(&command, Path::new("/nowhere")).expect("install the package xorgxrdp: scripts/setup --for test");
        assert!(hiding.file == Path::new("/etc/X11/xrdp/xorg.conf") && hiding.line > 1, "{hiding:?}");
        assert!(hiding.advice("/x/xqos.so").contains("add the line Load \"/x/xqos.so\""));
    }
}
