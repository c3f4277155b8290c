// SPDX-License-Identifier: MIT
//! The rules tutorial (docs/rules.md) as a reader follows it, and `rules adopt`.

use crate::fixture::{Folder, Running, Server, ended, eventually, xqos};
use crate::rules::{Rules, file, rule, weighs};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A file of the repository.
fn source(path: &str) -> String {
    fs::read_to_string(format!("{}/../../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The TOML examples of the tutorial, each with the name of its file.
fn files_of_the_tutorial() -> Vec<(String, String)> {
    let tutorial = source("docs/rules.md");
    let mut files = Vec::new();
    for (at, _) in tutorial.match_indices("```toml\n") {
        let name = tutorial[..at].rmatch_indices("`~/.config/xqos/").next().unwrap().0;
        let name = &tutorial[name + "`~/.config/xqos/".len()..];
        let text = tutorial[at..].split("```").nth(1).unwrap().trim_start_matches("toml\n");
        files.push((name[..name.find(['`', '\n']).unwrap()].to_owned(), text.to_owned()));
    }
    files
}

/// A clock with another program name; all its other properties are the same.
fn clock_called(server: &Server, folder: &Folder, name: &str) -> Running {
    let path = folder.path.join(name);
    xqos_testkit::executable(&path, &fs::read(xqos_testkit::program("xclock").unwrap()).unwrap());
    server.client(&[&folder.file(name)])
}

#[test]
fn the_tutorial_of_rules_works_with_the_shipped_rules() {
    let (server, rules, folder) = (Server::served(&[]), Rules::new("tutorial"), Folder::new("tutorial"));
    rules.write("50-players.toml", &source("data/rules.d/50-players.toml"));
    for (name, text) in files_of_the_tutorial() {
        fs::write(rules.path(&format!("../{name}")), text).unwrap();
    }
    assert!(rules.ask(&["rules", "check"]).with(0).out.contains(" valid"));
    let test = rules.ask(&["rules", "test", &rules.path("../mine-test.toml")]).with(0);
    assert_eq!(test.out, "1 case is as expected\n");
    let mpv = clock_called(&server, &folder, "mpv");
    let daemon = rules.applied_on(&server);
    eventually("the tutorial's rule is in force", || {
        (server.entry(mpv.pid())?["reservation"]["budget_ms"] == 10.0).then_some(())
    });
    let explained = ended(rules.with(&mut server.xqos(&["explain", "--pid", &mpv.pid().to_string()]))).with(0).out;
    let overruled = "matched; its reserve is overruled by 'film' (";
    assert!(explained.lines().any(|line| line.starts_with("* players (") && line.contains(overruled)), "{explained}");
    assert!(explained.lines().any(|line| line.starts_with("* film (") && line.ends_with("): matched")), "{explained}");
    drop(daemon);
}

#[test]
fn adopt_returns_a_manually_weighted_client_to_the_rules() {
    let (server, rules) = (Server::served(&[]), Rules::new("adopt"));
    let clock = server.client(&["xclock"]);
    let (pid, origin) = (clock.pid().to_string(), || server.entry(clock.pid()).unwrap()["by"]["settings"].clone());
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    let told = server.ask(&["weight", "--pid", &pid, "5"]).with(0).out;
    let (_, undo) = told.trim_end().split_once("undo: xqos ").expect("it says how to undo it");
    assert_eq!(origin(), "hand");
    server.ask(&undo.split(' ').collect::<Vec<_>>()).with(0);
    weighs(&server, clock.pid(), 2.0);
    assert_eq!(origin(), "rule clocks", "the undo of a weight restores who made it");
    // A manual setting equal to the rule's value is kept, and the refusal does not mention another user.
    server.ask(&["weight", "--pid", &pid, "2"]).with(0);
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 3")]));
    let newcomer = server.client(&["xclock"]);
    weighs(&server, newcomer.pid(), 3.0);
    weighs(&server, clock.pid(), 2.0);
    let told = server.ask(&["rules", "adopt", "--pid", &pid]).with(0).out;
    assert!(told.contains("follows the rules again, was: weight 2; undo: xqos weight --client"), "{told}");
    weighs(&server, clock.pid(), 3.0);
    daemon.signal("TERM");
    let said = daemon.ended().with(0).err;
    assert!(said.contains("keeps settings made manually") && !said.contains("belongs to another user"), "{said}");
    let told = server.ask(&["rules", "adopt", "--pid", &pid]).with(0);
    assert!(told.err.contains("no rules are applied on this display"), "{told:#?}");
}

#[test]
fn rules_match_the_complete_names_of_windows_programs() {
    let (server, rules) = (Server::served(&[]), Rules::new("wine"));
    let start = |path: &str| {
        let mut command = Command::new("xclock");
        let command = command.arg0(path).env("DISPLAY", &server.display);
        Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let door = start(r"Z:\home\user\common\Get To The Orange Door\Get To The Orange Door.exe");
    let factory = start("/opt/games/FactoryGameSteam-Win64-Shipping.exe");
    let name = |game: &Running| eventually("it is listed", || Some(server.entry(game.pid())?["program"].clone()));
    assert_eq!(name(&door), "Get To The Orange Door.exe");
    assert_eq!(name(&factory), "FactoryGameSteam-Win64-Shipping", "the list has room for 31 bytes");
    let whole = |name: &str| format!("name = \"{name}\"");
    rules.write(
        "50-games.toml",
        &file(&[
            rule("orange", &whole("Get To The Orange Door.exe"), "weight = 3"),
            rule("factory", &whole("FactoryGameSteam-Win64-Shipping.exe"), "weight = 2"),
        ]),
    );
    let _daemon = rules.applied_on(&server);
    weighs(&server, door.pid(), 3.0);
    weighs(&server, factory.pid(), 2.0);
    let mistaken = rules.path("wrong.toml");
    fs::write(&mistaken, file(&[rule("never", r#"name = '*\other.exe'"#, "weight = 3")])).unwrap();
    let told = ended(xqos().args(["rules", "check", &mistaken])).with(1);
    assert!(told.out.contains("never matches: a name has no folder"), "{told:#?}");
}

#[test]
fn the_autostart_entry_starts_the_unit_if_it_is_enabled() {
    let entry = source("data/xqos-rules.desktop");
    let command = entry.lines().find_map(|line| line.strip_prefix("Exec=sh -c \"")?.strip_suffix('"')).unwrap();
    let folder = Folder::new("autostart");
    xqos_testkit::executable(&folder.path.join("xqos"), b"#!/bin/sh\necho \"$@\"\n");
    // The status of systemctl: enabled, disabled or unknown, and not installed.
    let unit = "--user start xqos-rules.service\n";
    for (status, starts) in [(Some(0), unit), (Some(1), "rules run\n"), (None, "rules run\n")] {
        let _ = fs::remove_file(folder.file("systemctl"));
        if let Some(status) = status {
            let systemctl = format!("#!/bin/sh\ncase $2 in start) echo \"$@\" ;; *) exit {status} ;; esac\n");
            xqos_testkit::executable(&folder.path.join("systemctl"), systemctl.as_bytes());
        }
        let started = ended(Command::new("/bin/sh").args(["-c", command]).env("PATH", &folder.path)).with(0);
        assert_eq!(started.out, starts, "{status:?}");
    }
}
