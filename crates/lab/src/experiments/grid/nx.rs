//! X through nxproxy: one proxy beside the program that it takes for its server, one beside the server.
//!
//! `taint` lets the near one answer trivial round trips itself. That is the closest living relative of LBX, which left the
//! servers long ago.

use super::case::Line;
use super::site::Site;
use crate::process::Owned;
use crate::program;
use anyhow::{Result, bail};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use xqos_wire::link::{Side, listens};

/// The last display whose port is X's: nobody else's socket in /tmp/.X11-unix has this name, or that of those before it,
/// which belong to the other places.
const LAST_DISPLAY: u16 = 63;
/// Where the near proxy listens for the other one.
const PORT: u16 = 4063;
/// The two greet each other over 10 kb/s.
const PATIENCE: u32 = 1500;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts both and, once they know each other, the program.
pub(super) fn start(site: &Site, program: &[&str], line: Line, taint: bool) -> Result<Vec<Owned>> {
    let taint = u8::from(taint);
    let display = LAST_DISPLAY - site.place() as u16;
    let near = format!("listen={PORT},link={},taint={taint},{}", kind(line), files(site, "near")?);
    let mut near = proxy("-C", &near, display)?;
    let mut near = site.start(Side::Client, "near", &mut near)?;
    site.wait_for("near", &mut near, PORT)?;
    let far = format!("connect={},port={PORT},retry=20,{}", Side::Client.address(), files(site, "far")?);
    let mut far = proxy("-S", &far, display)?;
    far.env("DISPLAY", site.near_display());
    let mut far = site.start(Side::Server, "far", &mut far)?;
    wait_for_display(site, &mut near, &mut far, display)?;
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).env("DISPLAY", format!("127.0.0.1:{display}"));
    Ok(vec![site.start(Side::Client, "program", &mut command)?, near, far])
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
