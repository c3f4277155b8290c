// SPDX-License-Identifier: MIT
//! The tutorial of rules (docs/rules.md) as a reader follows it, and the way back from a hand to the rules.

use crate::fixture::{Running, Server, ended, eventually, xqos};
use crate::rules::{Rules, file, rule, weighs};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn rules_match_the_names_of_windows_programs_whole() {
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
    let _daemon = rules.kept_on(&server);
    weighs(&server, door.pid(), 3.0);
    weighs(&server, factory.pid(), 2.0);
    let mistaken = rules.path("wrong.toml");
    fs::write(&mistaken, file(&[rule("never", r#"name = '*\other.exe'"#, "weight = 3")])).unwrap();
    let told = ended(xqos().args(["rules", "check", &mistaken])).with(1);
    assert!(told.out.contains("never matches: a name is what follows the last"), "{told:#?}");
}
