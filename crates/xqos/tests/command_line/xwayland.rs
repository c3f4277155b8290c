// SPDX-License-Identifier: MIT
//! `xqos xwayland`, as a user installs and removes it.

use crate::fixture::{Ended, Folder, ended, module, xqos};
use std::fs;

const WESTON: &str = "[core]\nxwayland=true\n[xwayland]\npath=/opt/Xwayland\n[shell]\n";

/// Runs `xqos xwayland` with a separate home folder, so that the user's own files are neither read nor written.
fn ask(home: &Folder, arguments: &[&str]) -> Ended {
    let mut command = xqos();
    command.env("HOME", home.file("")).env("XQOS_MODULE", module());
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    ended(command.arg("xwayland").args(arguments))
}

fn files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path().display().to_string());
    let mut all: Vec<String> = entries.flat_map(|path| [vec![path.clone()], files(&path)].concat()).collect();
    all.sort();
    all
}

#[test]
fn removing_restores_the_files_from_before_the_installation() {
    let home = Folder::new("xwayland");
    fs::create_dir(home.file(".config")).unwrap();
    fs::write(home.file(".config/weston.ini"), WESTON).unwrap();
    let install = ["install", "--for", "wlroots,weston,path"];

    let said = ask(&home, &[&install[..], &["--dry-run"]].concat());
    if said.err.contains("Xwayland is not installed") {
        return xqos_skip::left_out(&said.err);
    }
    assert!(said.with(0).out.contains("would write"));
    assert_eq!(files(&home.file("")).len(), 2, "nothing was done");

    assert!(ask(&home, &install).with(0).out.contains("undo: xqos xwayland remove"));
    let script = home.file(".local/share/xqos/xwayland/Xwayland");
    let weston = fs::read_to_string(home.file(".config/weston.ini")).unwrap();
    assert!(weston.contains(&format!("path={script}")), "{weston}");
    let environment = fs::read_to_string(home.file(".config/environment.d/90-xqos-xwayland.conf")).unwrap();
    assert!(environment.contains(&format!("WLR_XWAYLAND={script}")) && environment.contains(":$PATH"), "{environment}");
    assert!(ask(&home, &["status"]).with(0).out.contains("weston.ini names the script"));
    assert!(ask(&home, &install).with(0).out.contains("everything is in place"));

    assert!(ask(&home, &["remove"]).with(0).out.contains("removed the path of xqos from"));
    assert_eq!(fs::read_to_string(home.file(".config/weston.ini")).unwrap(), WESTON);
    assert!(!files(&home.file("")).iter().any(|path| path.contains("Xwayland") || path.contains("90-xqos")));
    assert!(ask(&home, &["remove"]).with(0).out.contains("nothing to remove"));
}

#[test]
fn a_file_that_xqos_did_not_write_is_left_alone() {
    let home = Folder::new("xwayland-other");
    let folder = home.file(".config/environment.d");
    fs::create_dir_all(&folder).unwrap();
    let theirs = format!("{folder}/90-xqos-xwayland.conf");
    fs::write(&theirs, "WLR_XWAYLAND=/mine\n").unwrap();
    let said = ask(&home, &["install", "--for", "wlroots"]);
    assert!(said.err.contains("was not written by xqos") || said.err.contains("not installed"), "{said:#?}");
    ask(&home, &["remove"]).with(0);
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "WLR_XWAYLAND=/mine\n");
    ask(&home, &["install", "--for", "nonsense"]).with(2);
}
