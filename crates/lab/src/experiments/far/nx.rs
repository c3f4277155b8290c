// SPDX-License-Identifier: MIT
//! X through nxproxy: one proxy beside the program that it takes for its server, one beside the server.
//!
//! | what has to be minded | |
//! |---|---|
//! | `type=proxy` | without it the session is taken for one of nxagent, and `taint` is turned off whatever was asked for |
//! | `taint` | the near proxy answers GetInputFocus itself, and nothing else |
//! | its own start | the first set-up is held until the pair has been up for about 5 s, hence a head start ([`HEAD_START`]) |
//! | BIG-REQUESTS | is hidden, so that a program ends which sends a request of more than 256 kB (speedcrunch) |

use super::{Line, Site};
use crate::process::Owned;
use crate::program;
use anyhow::{Result, bail};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use xqos_wire::link::{Side, listens};

/// The last display whose port is X's: no other server has a socket in /tmp/.X11-unix with this number or those before it,
/// which belong to the other slots.
const LAST_DISPLAY: u16 = 63;
/// Where the near proxy listens for the other one.
const PORT: u16 = 4063;
/// The two greet each other over 10 kb/s.
const PATIENCE: u32 = 1500;
/// Before the program is started: what the pair holds it back for is no part of what the link costs.
const HEAD_START: Duration = Duration::from_secs(8);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts both and, once they know each other, the program.
pub(super) fn start(site: &Site, program: &[&str], line: Line, taint: bool) -> Result<Vec<Owned>> {
    let display = LAST_DISPLAY - site.slot() as u16;
    let near = format!("listen={PORT},{},{}", session(line, taint), files(site, "near")?);
    let mut near = proxy("-C", &near, display)?;
    let mut near = site.start(Side::Client, "near", &mut near)?;
    site.wait_for("near", &mut near, PORT)?;
    let far = format!("connect={},port={PORT},retry=20,{}", Side::Client.address(), files(site, "far")?);
    let mut far = proxy("-S", &far, display)?;
    far.env("DISPLAY", site.near_display());
    let mut far = site.start(Side::Server, "far", &mut far)?;
    wait_for_display(site, &mut near, &mut far, display)?;
    sleep(HEAD_START);
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).env("DISPLAY", format!("127.0.0.1:{display}"));
    Ok(vec![site.start(Side::Client, "program", &mut command)?, near, far])
}

/// What the two agree on; the near one says it.
fn session(line: Line, taint: bool) -> String {
    format!("type=proxy,link={},taint={}", kind(line), u8::from(taint))
}

fn proxy(side: &str, options: &str, display: u16) -> Result<Command> {
    let mut command = Command::new(program::find("nxproxy")?);
    command.arg(side).arg(format!("nx/nx,{options},cleanup=0:{display}"));
    Ok(command)
}

/// Whatever it writes is in a folder of its own.
fn files(site: &Site, name: &str) -> Result<String> {
    let root = site.path(name);
    fs::create_dir(&root)?;
    let root = root.display();
    Ok(format!("root={root},session={root}/session,errors={root}/errors,stats={root}/stats"))
}

/// Its word for a link of that rate, by which it chooses how hard to compress.
fn kind(line: Line) -> &'static str {
    match line.kbit_per_s {
        0..=33 => "modem",
        34..=128 => "isdn",
        129..=512 => "adsl",
        513..=2_000 => "wan",
        _ => "lan",
    }
}

fn wait_for_display(site: &Site, near: &mut Owned, far: &mut Owned, display: u16) -> Result<()> {
    for _ in 0..PATIENCE {
        if listens(near.pid(), 6000 + display).unwrap_or(false) {
            return Ok(());
        }
        for (name, proxy) in [("near", &mut *near), ("far", &mut *far)] {
            if !proxy.is_running() {
                bail!("the {name} nxproxy ended: {}", site.complaint(name));
            }
        }
        sleep(LOOK_AGAIN);
    }
    bail!("the two nxproxy do not find each other: {}", site.complaint("far"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taint_is_asked_for_in_a_session_that_does_not_turn_it_off() {
        let line = Line { kbit_per_s: 1_000, delay_us: 100 };
        assert_eq!(session(line, true), "type=proxy,link=wan,taint=1");
        assert_eq!(session(line, false), "type=proxy,link=wan,taint=0");
    }
}
