// SPDX-License-Identifier: MIT
//! `xqos cap -- PROGRAM`: captures a program, and all processes that it starts, through a relay.

use super::Arguments;
use crate::program::{Program, counted};
use anyhow::{Context, Error, Result};
use std::process::ExitCode;
use xqos_sys as sys;
use xqos_wire::relay::upstream::Upstream;
use xqos_wire::relay::{Relay, Relayed};

pub fn capture(arguments: &Arguments, display: Option<&str>) -> Result<ExitCode> {
    // Do this before watching for signals, which would otherwise wait for a server that does not answer.
    let upstream = Upstream::find(display)?;
    // Do this before starting threads, which would otherwise receive the signals.
    let signals = arguments.signals().context("cannot watch for the program's end")?;
    sys::adopt_orphans().context("cannot become the parent of the program's orphaned processes")?;
    let (target, settings) = (arguments.target()?, arguments.settings());
    let start = || {
        let relay = Relay::start(upstream, target, &settings)?;
        Ok((Program::start(&arguments.program, &relay.display(), relay.authority())?, relay))
    };
    let (mut program, relay) = start().inspect_err(|_: &Error| arguments.discard())?;
    program.user_signal = settings.trigger.signal;
    program.watch(Some(&|| (relay.open(), relay.closing())), &signals, arguments.quiet)?;
    let relayed = relay.finish()?;
    arguments.conclude(&relayed.recorded, &summary(&relayed))?;
    Ok(ExitCode::from(program.status()))
}

fn summary(relayed: &Relayed) -> String {
    let Relayed { connections, refused, bytes: [requests, replies], files, files_lost, .. } = relayed;
    let (connections, files) = (counted(*connections, "connection"), counted(*files, "file"));
    let mut text = format!("{connections}, {requests} bytes to the server, {replies} back, 0 dropped, ");
    text += &format!("{files} passed, ");
    if *files_lost > 0 {
        text += &format!("{} not passed because the server is reached over TCP, ", counted(*files_lost, "file"));
    }
    if *refused > 0 {
        text += &format!("{} refused because the server was gone, ", counted(*refused, "client"));
    }
    text
}
