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
use anyhow::Result;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use xqos_wire::link::Side;

/// The last display whose port is X's: no other server has a socket in /tmp/.X11-unix with this number or those before it,
/// which belong to the other slots.
const LAST_DISPLAY: u16 = 63;
/// Where the near proxy listens for the other one.
const PORT: u16 = 4063;
/// Before the program is started: what the pair holds it back for is no part of what the link costs.
const HEAD_START: Duration = Duration::from_secs(8);

/// Starts both and, once they know each other, the program.
pub(super) fn start(site: &Site, program: &[&str], line: Line, taint: bool) -> Result<Vec<Owned>> {
    let display = LAST_DISPLAY - site.slot() as u16;
    let proxy = |side, name: &str, kind: &str, options: &str| {
        // What it writes is in a folder of its own.
        let root = site.path(name);
        fs::create_dir(&root)?;
        let root = root.display();
        let files = format!("root={root},session={root}/session,errors={root}/errors,stats={root}/stats");
        let mut command = Command::new(program::find("nxproxy")?);
        command.arg(kind).arg(format!("nx/nx,{options},{files},cleanup=0:{display}"));
        site.start(side, name, &site.near_display(), &mut command)
    };
    let mut near = proxy(Side::Client, "near", "-C", &format!("listen={PORT},{}", session(line, taint)))?;
    site.wait_for(PORT, &mut [("near", &mut near)])?;
    let connect = format!("connect={},port={PORT},retry=20", Side::Client.address());
    let mut far = proxy(Side::Server, "far", "-S", &connect)?;
    site.wait_for(6000 + display, &mut [("near", &mut near), ("far", &mut far)])?;
    sleep(HEAD_START);
    let mut command = Command::new(program[0]);
    let display = format!("127.0.0.1:{display}");
    Ok(vec![site.start(Side::Client, "program", &display, command.args(&program[1..]))?, near, far])
}

/// What the two agree on; the near one says it.
fn session(line: Line, taint: bool) -> String {
    format!("type=proxy,link={},taint={}", kind(line), u8::from(taint))
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
