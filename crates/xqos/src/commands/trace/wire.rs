// SPDX-License-Identifier: MIT
//! Reads a capture for a trace, through the program that decodes captures.

use anyhow::{Context, Result, anyhow};
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use xqos_cli::{output, sibling};
use xqos_core::Time;
use xqos_trace::file::Trace;
use xqos_trace::model::Model;
use xqos_trace::wire::Wire;

/// The messages of a capture with the clock of the trace.
pub fn read(capture: &Path, trace: &Trace) -> Result<Wire> {
    let program = sibling::needed("xqos-wire", "--wire")?;
    let mut command = Command::new(&program);
    command.args(["analyse", "--messages", "--json"]).arg(capture);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("cannot start {}", program.display()))?;
    let out = child.stdout.take().map(BufReader::new).context("the messages cannot be read")?;
    let wire = Wire::read(out, trace.header.realtime_offset_ns);
    let mut said = String::new();
    child.stderr.take().map_or(Ok(0), |mut err| err.read_to_string(&mut said))?;
    let mut notes = said.lines().map(|line| line.trim_start_matches("xqos: "));
    if !child.wait()?.success() {
        return Err(anyhow!("{}", notes.next_back().unwrap_or("the capture cannot be read").to_owned()));
    }
    let wire = wire?;
    notes.for_each(output::note);
    if wire.connections.is_empty() {
        output::note(&format!("{} has no X connection", capture.display()));
    } else if !wire.has_messages(span_of(trace)) {
        output::note(&format!(
            "{} has no message from the time of the trace: run `xqos cap` on the server's machine during the recording",
            capture.display()
        ));
    }
    Ok(wire)
}

fn span_of(trace: &Trace) -> (Time, Time) {
    let mut model = Model::without_causes();
    trace.events().for_each(|event| _ = model.take(&event));
    (model.began.unwrap_or(model.now), model.now)
}
