// SPDX-License-Identifier: MIT
//! The screen of `top` in a terminal, which `script` of util-linux provides.

use crate::PROGRAM;
use crate::fixture::{Folder, Running, Server, eventually, kill};
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// A screen that runs until `q` is pressed.
struct Screen {
    process: Child,
    /// What the screen has shown.
    typescript: String,
}

impl Screen {
    fn start(server: &Server, folder: &Folder, options: &str) -> Screen {
        let typescript = folder.file("typescript");
        let _ = fs::remove_file(&typescript);
        let line = format!("stty cols 100 rows 30; exec {PROGRAM} top {options}");
        let mut command: Command = server.command("script");
        command.args(["-q", "-e", "-f", "-c", &line, &typescript]);
        command.env("TERM", "xterm").env("XDG_CONFIG_HOME", &folder.path).stdin(Stdio::piped()).stdout(Stdio::null());
        Screen { process: command.spawn().unwrap(), typescript }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.typescript).unwrap_or_default()).into_owned()
    }

    /// Presses a key once the screen is shown, because earlier keys are lost when the terminal is set up.
    fn press(&mut self, key: &str) {
        eventually("the screen is shown", || self.shown().contains("PROGRAM").then_some(()));
        self.process.stdin.as_mut().unwrap().write_all(key.as_bytes()).unwrap();
    }

    /// Presses q; returns the program's exit status.
    fn quit(mut self) -> Option<i32> {
        self.press("q");
        eventually("the screen ends", || self.process.try_wait().unwrap()).code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_settings_of_the_screen_are_kept_and_reset_and_a_bad_file_is_left_alone() {
    let (server, folder) = (Server::served(&[]), Folder::new("screen"));
    let _clock: Running = server.client(&["xclock"]);
    let path = folder.file("xqos/top.toml");
    let kept = || fs::read_to_string(&path).unwrap_or_default();
    let mut screen = Screen::start(&server, &folder, "");
    screen.press("T");
    eventually("the sorting is kept", || kept().contains("sort = \"TIME\"\n").then_some(()));
    let shown = screen.shown();
    assert!(shown.contains("xclock") && shown.contains("MAXWAIT"), "{shown:?}");
    assert_eq!(screen.quit(), Some(0));
    assert_eq!(Screen::start(&server, &folder, "").quit(), Some(0));
    assert!(kept().contains("sort = \"TIME\"\n"), "{}", kept());
    assert_eq!(Screen::start(&server, &folder, "--reset").quit(), Some(0));
    assert_eq!(kept(), "");
    fs::write(&path, "version = 1\nsort = \"nonsense\"\n").unwrap();
    let mut screen = Screen::start(&server, &folder, "");
    screen.press("P");
    eventually("the mistake is shown", || screen.shown().contains("top.toml:").then_some(()));
    assert_eq!(screen.quit(), Some(0));
    assert_eq!(kept(), "version = 1\nsort = \"nonsense\"\n");
}

#[test]
fn a_signal_ends_the_screen_and_restores_the_terminal() {
    const LEAVE: &str = "\x1b[?1049l";
    let (server, folder) = (Server::served(&[]), Folder::new("screen-signal"));
    let mut screen = Screen::start(&server, &folder, "");
    let top = eventually("the screen is shown", || {
        Some(server.entry_called("xqos")?).filter(|_| screen.shown().contains("PROGRAM"))
    });
    assert!(!screen.shown().contains(LEAVE));
    kill(top["pid"].as_i64().unwrap() as i32, "TERM");
    assert_eq!(eventually("it ends", || screen.process.try_wait().unwrap()).code(), Some(0));
    assert!(screen.shown().contains(LEAVE), "{:?}", screen.shown());
}

#[test]
fn a_screen_continues_while_the_server_hangs() {
    let (server, folder) = (Server::served(&[]), Folder::new("screen-hangs"));
    let screen = Screen::start(&server, &folder, "");
    eventually("the screen is shown", || screen.shown().contains("PROGRAM").then_some(()));
    server.process.signal("STOP");
    eventually("the screen reports it", || screen.shown().contains("the server does not answer").then_some(()));
    server.process.signal("CONT");
    assert_eq!(screen.quit(), Some(0));
}

#[test]
fn a_screen_ends_with_its_terminal() {
    let (server, folder) = (Server::served(&[]), Folder::new("screen-gone"));
    // The program ignores the hang-up, as under nohup.
    let line = format!("trap '' HUP; exec {PROGRAM} top");
    let mut command = server.command("script");
    command.args(["-q", "-f", "-c", &line, &folder.file("typescript")]).env("TERM", "xterm");
    let terminal = Running::start(command.env("XDG_CONFIG_HOME", &folder.path).stdout(Stdio::null()));
    eventually("the screen is shown", || server.entry_called("xqos"));
    terminal.signal("KILL");
    eventually("the screen ends", || server.entry_called("xqos").is_none().then_some(()));
}
