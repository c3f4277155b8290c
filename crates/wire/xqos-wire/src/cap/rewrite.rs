// SPDX-License-Identifier: MIT
//! `xqos cap -r`: rewrites an existing capture.

use super::Arguments;
use super::progress::Progress;
use anyhow::{Context, Result, bail};
use std::path::Path;
use xqos_cli::output::{NewFile, is_same, note};
use xqos_wire::capture::CaptureReader;
use xqos_wire::recording::Target;
use xqos_wire::recording::rewrite::{Rewritten, rewrite};

/// Number of packets between two updates of the progress line.
const STRIDE: u64 = 4096;

pub fn write(arguments: &Arguments, capture: &Path, output: &Path) -> Result<()> {
    let name = capture.display();
    if arguments.settings().trigger.needs_signal() {
        bail!("a file has no signals: choose another event for {name}");
    }
    let reader = CaptureReader::open(capture).with_context(|| format!("cannot read the capture {name}"))?;
    if is_same(capture, output) {
        bail!("{name} would be overwritten while it is read: name another file after -o");
    }
    if arguments.repeat {
        let rewritten = record(arguments, reader, arguments.target()?)?;
        return conclude(arguments, capture, rewritten);
    }
    // Only the user can read the file, because it may contain what people type.
    let file = NewFile::create(output, 0o600).with_context(|| arguments.cannot_write())?;
    let target = Target::One(file.file().with_context(|| arguments.cannot_write())?);
    let rewritten = record(arguments, reader, target)?;
    if rewritten.recorded.has_started && rewritten.recorded.error.is_none() {
        file.finish().with_context(|| arguments.cannot_write())?;
    }
    conclude(arguments, capture, rewritten)
}

fn record(arguments: &Arguments, reader: CaptureReader, target: Target) -> Result<Rewritten> {
    let mut progress = Progress::new(arguments.quiet);
    rewrite(reader, arguments.port.as_ref(), target, &arguments.settings(), &mut |packets, bytes| {
        if packets % STRIDE == 0 {
            progress.update(|| format!("{packets} packets, {bytes} bytes read"));
        }
    })
    .with_context(|| arguments.cannot_write())
}

fn conclude(arguments: &Arguments, capture: &Path, mut rewritten: Rewritten) -> Result<()> {
    for trouble in &rewritten.notes {
        note(&format!("{}: {trouble}", capture.display()));
    }
    let is_numbered = rewritten.recorded.numbered.is_some();
    if let Some(trouble) = rewritten.recorded.error.take_if(|_| !is_numbered) {
        return Err(trouble).with_context(|| arguments.cannot_write());
    }
    arguments.conclude(&rewritten.recorded, &format!("{} packets read, ", rewritten.read))
}
