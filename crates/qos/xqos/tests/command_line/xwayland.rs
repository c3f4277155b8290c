// SPDX-License-Identifier: MIT
//! `xqos xwayland`, as a user installs and removes it.

use crate::fixture::{Ended, Folder, ended, module, xqos};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const WESTON: &str = "[core]\nxwayland=true\n[xwayland]\npath=/opt/Xwayland\n[shell]\n";

/// Runs `xqos xwayland` with a separate home folder, so that the user's own files are neither read nor written.
fn ask(home: &Folder, arguments: &[&str]) -> Ended {
    ended(&mut command(home, arguments))
}

fn command(home: &Folder, arguments: &[&str]) -> Command {
    let mut command = xqos();
    command.env("HOME", home.file("")).env("XQOS_MODULE", module());
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
    command.arg("xwayland").args(arguments);
    command
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
        return xqos_testkit::left_out(&said.err);
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

/// Puts a program into a folder of its own, and returns the folder.
fn program(home: &Folder, name: &str, text: &str) -> String {
    fs::create_dir_all(home.file("bin")).unwrap();
    let path = home.file(&format!("bin/{name}"));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    home.file("bin")
}

#[test]
fn installing_for_another_compositor_keeps_the_first() {
    let home = Folder::new("xwayland-two");
    let path = program(&home, "Xwayland", "#!/bin/sh\n");
    let install = |compositor: &str| {
        ended(command(&home, &["install", "--for", compositor]).env("PATH", &path)).with(0);
        fs::read_to_string(home.file(".config/environment.d/90-xqos-xwayland.conf")).unwrap()
    };
    install("wlroots");
    let both = install("path");
    assert!(both.contains("\nWLR_XWAYLAND=") && both.contains("\nPATH="), "{both}");
    assert_eq!(install("wlroots"), both);
}

#[test]
fn the_server_is_found_where_the_script_of_mutter_has_moved_it() {
    let home = Folder::new("xwayland-moved");
    let path = program(&home, "Xwayland", "#!/bin/sh\n");
    let install = || ended(command(&home, &["install", "--for", "wlroots"]).env("PATH", &path)).with(0);
    install();
    let script = fs::read_to_string(home.file(".local/share/xqos/xwayland/Xwayland")).unwrap();
    // dpkg-divert moves the program, and the same script takes its place.
    let moved = program(&home, "Xwayland.distrib", "#!/bin/sh\n") + "/Xwayland.distrib";
    program(&home, "Xwayland", &script);
    ended(&mut command(&home, &["remove"])).with(0);
    install();
    let script = fs::read_to_string(home.file(".local/share/xqos/xwayland/Xwayland")).unwrap();
    assert!(script.contains(&format!("exec '{moved}'")), "{script}");
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
