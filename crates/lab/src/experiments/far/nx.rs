// SPDX-License-Identifier: MIT
//! X through nxproxy: a proxy next to the program, to which the program connects, and a proxy next to the server.
//!
//! | detail | reason |
//! |---|---|
//! | `type=proxy` | without it, nxproxy assumes an nxagent session and ignores the requested `taint` |
//! | `taint` | the near proxy answers GetInputFocus itself, but no other request |
//! | head start | the proxies hold back the first connection for about 5 s after they start ([`HEAD_START`]) |
//! | BIG-REQUESTS | nxproxy hides it: a program that sends a request of more than 256 kB exits (speedcrunch) |

use super::{Line, Site};
use crate::process::Owned;
use crate::program;
use anyhow::Result;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use xqos_wire::link::Side;

/// The last display with an X port. Other slots use the numbers below it; no other server has a socket with these
/// numbers in /tmp/.X11-unix.
const LAST_DISPLAY: u16 = 63;
/// Port on which the near proxy waits for the other one.
const PORT: u16 = 4063;
/// Delay before the program is started, because the time that the proxies take to start is not a cost of the link.
const HEAD_START: Duration = Duration::from_secs(8);

/// Starts both proxies and, once they are connected, the program.
pub(super) fn start(site: &Site, program: &[&str], line: Line, taint: bool) -> Result<Vec<Owned>> {
    let display = LAST_DISPLAY - site.slot() as u16;
    let proxy = |side, name: &str, kind: &str, options: &str| {
        // Each proxy writes its output to its own folder.
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

/// Settings of the session. The near proxy determines them for both.
fn session(line: Line, taint: bool) -> String {
    format!("type=proxy,link={},taint={}", kind(line), u8::from(taint))
}

/// nxproxy's name for a link of this rate, which determines the compression.
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
    fn taint_is_requested_in_a_proxy_session() {
        let line = Line { kbit_per_s: 1_000, delay_us: 100 };
        assert_eq!(session(line, true), "type=proxy,link=wan,taint=1");
        assert_eq!(session(line, false), "type=proxy,link=wan,taint=0");
    }
}
