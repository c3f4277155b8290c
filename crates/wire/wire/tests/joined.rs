// SPDX-License-Identifier: MIT
//! Tests that a file that begins in the middle of connections is decoded like the same part of a whole capture.

mod packets;

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;
use xqos_testkit::{Folder, Random};
use xqos_wire::analysis::Analysis;
use xqos_wire::capture::{CaptureReader, CaptureWriter, Record};
use xqos_wire::contents::Contents;
use xqos_wire::observe::{ConnectionId, Message, Observer};
use xqos_wire::plot::model::{Choice, Plot};
use xqos_wire::recording::rewrite::rewrite;
use xqos_wire::recording::scrub::Extent;
use xqos_wire::recording::trigger::{self, Start, Stop, TriggerEvent};
use xqos_wire::recording::{RecordingSettings, Ring, Target, numbered};
use xqos_wire::session::Session;

/// The captures are not from a display with one of the usual numbers.
const PORT: u16 = 6070;
const PROGRAMS: [&str; 5] = ["xterm", "gtk3-demo", "qt5", "emacs", "x11perf"];

/// Time of the first byte, and kind, sequence number, name and length of each message.
#[derive(Debug, Default)]
struct Lines(Vec<(u64, String)>);

impl Observer for Lines {
    fn message(&mut self, _: ConnectionId, message: &Message<'_>) {
        let Message { kind, sequence, name, length, .. } = *message;
        self.0.push((message.first_ns, format!("{kind:?} {sequence} {name} {length}")));
    }
}

impl Lines {
    fn since(&self, at_ns: u64) -> Vec<&str> {
        self.0.iter().filter(|(first_ns, _)| *first_ns >= at_ns).map(|(_, line)| line.as_str()).collect()
    }
}

fn golden(name: &str) -> Vec<u8> {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.pcapng.zst"));
    let mut bytes = Vec::new();
    zstd::Decoder::new(File::open(packed).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn observe(capture: &[u8], observer: &mut dyn Observer) -> Contents {
    let mut reader = CaptureReader::new(Cursor::new(capture.to_vec())).unwrap();
    let mut session = Session::new(vec![observer]).also_port(PORT);
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    session.finish()
}

fn lines(capture: &[u8]) -> (Lines, Contents) {
    let mut lines = Lines::default();
    let contents = observe(capture, &mut lines);
    (lines, contents)
}

fn times(capture: &[u8]) -> Vec<u64> {
    let mut reader = CaptureReader::new(Cursor::new(capture.to_vec())).unwrap();
    std::iter::from_fn(|| reader.next().map(|record| record.at_ns)).collect()
}

/// The part of a capture from this packet on, counted from 1.
fn cut(capture: &[u8], from: u64, scrub: Option<Extent>, folder: &Path) -> Vec<u8> {
    let path = folder.join("cut");
    let start = Start::On(TriggerEvent::Signal);
    let trigger = trigger::TriggerSettings { start, ..Default::default() };
    let settings = RecordingSettings { scrub, trigger, also_port: Some(PORT), ..Default::default() };
    let target = Target::One(File::create(&path).unwrap());
    let reader = CaptureReader::new(Cursor::new(capture.to_vec())).unwrap();
    let signal = &settings.trigger.signal;
    rewrite(reader, None, target, &settings, &mut |packet, _| signal.store(packet == from, Ordering::Relaxed)).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_file_from_any_packet_on_is_decoded_like_the_whole() {
    let folder = Folder::new("joined");
    for program in PROGRAMS {
        let whole = golden(program);
        let (times, (all, _)) = (times(&whole), lines(&whole));
        for number in 0..12 {
            // The first offsets are close together, because extensions are queried at the start.
            let from = if number < 6 { 2 + 7 * number } else { times.len() * number / 12 };
            for scrub in [None, Some(Extent::All)] {
                let part = cut(&whole, from as u64, scrub, &folder.path);
                let (seen, contents) = lines(&part);
                let since_ns = times[from - 1];
                // A scrubbed packet waits for the end of its messages, so earlier ones may be in the file.
                let from_ns = if scrub.is_none() { 0 } else { since_ns };
                assert_eq!(seen.since(from_ns), all.since(since_ns), "{program} from packet {from}, {scrub:?}");
                assert_eq!((contents.skipped_bytes, contents.gap_bytes), (0, 0), "{program} from packet {from}");
            }
        }
    }
}

/// Records repeatedly from one message to another. Returns the files.
fn ring(capture: &[u8], [start, stop]: [&str; 2], before_ns: u64, keep: Option<usize>, folder: &Path) -> Vec<Vec<u8>> {
    let on = |name: &str| TriggerEvent::Message(name.parse().unwrap());
    let (start, stop) = (Start::On(on(start)), Some(Stop::On(on(stop))));
    let trigger = trigger::TriggerSettings { start, stop, before_ns, repeat: true, ..Default::default() };
    let settings = RecordingSettings { scrub: Some(Extent::Cookie), trigger, ..Default::default() };
    let path = folder.join("part.pcapng");
    let target = Target::Ring(Ring::new(&path, keep.and_then(NonZeroUsize::new)).unwrap());
    let reader = CaptureReader::new(Cursor::new(capture.to_vec())).unwrap();
    let recorded = rewrite(reader, None, target, &settings, &mut |_, _| {}).unwrap().recorded;
    assert!(recorded.error.is_none());
    let paths = (1..=recorded.files as u32).map(|number| numbered(&path, number)).filter(|path| path.exists());
    let files = paths.map(|path| (fs::read(&path).unwrap(), fs::remove_file(path).unwrap()).0).collect();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    files
}

#[test]
fn each_file_of_a_ring_has_its_events_and_the_time_before_them() {
    let folder = Folder::new("joined");
    let whole = golden("emacs");
    let (all, _) = lines(&whole);
    let files = ring(&whole, ["InternAtom", "GetProperty"], 0, None, &folder.path);
    assert!(files.len() > 2, "{}", files.len());
    for file in &files {
        let (seen, contents) = lines(file);
        let (seen, begin_ns) = (seen.since(0), times(file)[0]);
        assert!(all.since(begin_ns).starts_with(&seen), "the file has a consecutive part");
        let position = |name: &str| seen.iter().position(|line| line.starts_with("Request") && line.contains(name));
        assert!(position(" InternAtom ") < position(" GetProperty ") || files.last() == Some(file), "{seen:#?}");
        assert_eq!((contents.skipped_bytes, contents.gap_bytes), (0, 0));
    }
    // Messages between a stop and the next start are in no file.
    let with_before = ring(&whole, ["InternAtom", "GetProperty"], 20_000_000, Some(2), &folder.path);
    let count = files.len();
    assert_eq!(with_before.len(), 2, "only the last are kept");
    for (short, long) in files[count - 2..].iter().zip(&with_before) {
        let ((short, _), (long, _)) = (lines(short), lines(long));
        assert!(long.since(0).ends_with(&short.since(0)) && long.0.len() >= short.0.len());
    }
}

#[test]
fn an_event_that_does_not_occur_leaves_no_file() {
    let folder = Folder::new("joined");
    assert!(ring(&golden("xterm"), ["BadWindow", "MapWindow"], 0, None, &folder.path).is_empty());
}

#[test]
fn figures_and_plots_of_a_part_have_names_but_no_start_up() {
    let folder = Folder::new("joined");
    let whole = golden("gtk3-demo");
    let part = cut(&whole, times(&whole).len() as u64 / 2, None, &folder.path);
    let mut analysis = Analysis::default();
    observe(&part, &mut analysis);
    let report = analysis.report(0.05);
    let connection = &report.connections[0];
    assert!(connection.started_midstream && !connection.is_whole && connection.figures.missing_bytes == 0);
    assert!(connection.figures.requests.contains_key("RENDER::Composite"), "{:?}", connection.figures.requests);
    let names = connection.figures.requests.keys().chain(connection.figures.replies.keys());
    assert!(names.clone().all(|name| !name.contains("request")), "{:?}", names.collect::<Vec<_>>());
    let mut plot = Plot::new(Choice::default());
    observe(&part, &mut plot);
    let drawn: usize = plot.connections.values().flat_map(|one| &one.tracks).map(|track| track.messages.count).sum();
    assert_eq!(drawn, lines(&part).0.0.len());
}

/// Writes a capture again with these checkpoints instead of its own.
fn with_checkpoints(capture: &[u8], change: &mut dyn FnMut(&str) -> String) -> Vec<u8> {
    let mut reader = CaptureReader::new(Cursor::new(capture.to_vec())).unwrap();
    let mut writer = CaptureWriter::new(Vec::new(), "test").unwrap();
    while let Some(record) = reader.next() {
        let checkpoint = record.checkpoint.map(&mut *change);
        writer.write(&Record { checkpoint: checkpoint.as_deref(), ..record }).unwrap();
    }
    writer.into_inner()
}

#[test]
fn wrong_checkpoints_do_no_harm() {
    let folder = Folder::new("joined");
    let whole = golden("xterm");
    let part = cut(&whole, 300, None, &folder.path);
    let right = lines(&part).0.0.len();
    let mut random = Random(xqos_testkit::seed());
    for round in 0..200 {
        let changed = with_checkpoints(&part, &mut |text| {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=round % 3 {
                let (at, digit) = (random.below(bytes.len()), b'0' + random.below(10) as u8);
                match bytes[at] {
                    b'0'..=b'9' => bytes[at] = digit,
                    _ if round % 5 == 0 => bytes[at] = digit,
                    _ => {}
                }
            }
            String::from_utf8(bytes).unwrap()
        });
        assert!(lines(&changed).0.0.len() <= right + 1);
    }
    for text in ["", "{}", "[]", "null", "\u{1f980}"] {
        let changed = with_checkpoints(&part, &mut |_| text.to_owned());
        assert!(lines(&changed).0.0.len() > right / 2, "without a checkpoint, the boundaries are searched for");
    }
    let huge = format!("{}:{}", "9".repeat(40), u64::MAX);
    for name in ["requests", "answered", "rest", "next", "pending"] {
        let changed = with_checkpoints(&part, &mut |text| {
            text.replace(&format!("\"{name}\":["), &format!("\"{name}\":[{},", u64::MAX))
                .replace(&format!("\"{name}\":"), &format!("\"{name}\":{huge},"))
        });
        assert!(lines(&changed).0.0.len() <= right);
    }
}
