// SPDX-License-Identifier: MIT
//! `xqos cap -r`: rewrites an existing capture.

use super::Arguments;
use super::progress::Progress;
use anyhow::{Context, Result, bail};
use std::path::Path;
use xqos_cli::output::{NewFile, is_same, note};
use xqos_wire::capture::Reader;
use xqos_wire::capture::rewrite::rewrite;

/// Number of packets between two updates of the progress line.
const STRIDE: u64 = 4096;

pub fn write(arguments: &Arguments, capture: &Path, output: &Path) -> Result<()> {
    let name = capture.display();
    let reader = Reader::open(capture).with_context(|| format!("cannot read the capture {name}"))?;
    if is_same(capture, output) {
        bail!("{name} would be overwritten while it is read: name another file after -o");
    }
    let mut progress = Progress::new(arguments.quiet);
    let ports = arguments.port.as_ref();
    let failed = || format!("cannot write {}", output.display());
    // Only the user can read the file, because it may contain what people type.
    let file = NewFile::create(output, 0o600).with_context(failed)?;
    let target = file.file().with_context(failed)?;
    let mut rewritten = rewrite(reader, ports, target, &arguments.settings(), &mut |packets, bytes| {
        if packets % STRIDE == 0 {
            progress.update(|| format!("{packets} packets, {bytes} bytes read"));
        }
    })
    .with_context(failed)?;
    drop(progress);
    for trouble in &rewritten.notes {
        note(&format!("{name}: {trouble}"));
    }
    if let Some(trouble) = rewritten.recorded.error.take() {
        return Err(trouble).with_context(failed);
    }
    if rewritten.recorded.has_started {
        file.finish().with_context(failed)?;
    }
    arguments.conclude(&rewritten.recorded, output, &format!("{} packets read, ", rewritten.read))
}
