// SPDX-License-Identifier: MIT
//! Records an existing capture again: scrubbed, cut, or restricted to some ports.

use super::{Recorded, Recorder, RecordingSettings, Target};
use crate::capture::{CaptureReader, Record};
use crate::frame::{Frame, parse};
use std::io;
use std::ops::RangeInclusive;

/// Number of packets read, and totals of those recorded.
#[derive(Debug)]
pub struct Rewritten {
    pub read: u64,
    pub recorded: Recorded,
    pub notes: Vec<String>,
}

/// Records all packets, or only the TCP connections on these ports. `progress` gets the packets and bytes read so far.
pub fn rewrite(
    mut reader: CaptureReader,
    ports: Option<&RangeInclusive<u16>>,
    target: Target,
    settings: &RecordingSettings,
    progress: &mut impl FnMut(u64, u64),
) -> io::Result<Rewritten> {
    let mut recorder = Recorder::new(target, None, settings)?;
    let (mut packets, mut bytes) = (0, 0);
    while let Some(record) = reader.next() {
        (packets, bytes) = (packets + 1, bytes + u64::from(record.length));
        progress(packets, bytes);
        if ports.is_none_or(|ports| is_between(&record, ports)) {
            recorder.take(&record);
        }
        if recorder.is_over() {
            break;
        }
    }
    Ok(Rewritten { read: packets, recorded: recorder.finish(), notes: reader.notes() })
}

fn is_between(record: &Record<'_>, ports: &RangeInclusive<u16>) -> bool {
    let Frame::Segment(segment) = parse(record) else { return false };
    ports.contains(&segment.source.port()) || ports.contains(&segment.destination.port())
}
