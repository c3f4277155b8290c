// SPDX-License-Identifier: MIT
//! Compares captures of real programs with earlier results and with xtrace.
//!
//! xtrace ran between the program and the server and logged each message. The capture has xtrace's server connection.
//! Both logs are in `captures`, so neither program is needed here.
//!
//! The test compensates for these differences of xtrace:
//! - its sequence numbers have 16 bits, ours 64;
//! - it names replies without the extension;
//! - it writes GLX requests as C functions (glXQueryVersion), and errors as BadShmSeg;
//! - it writes UNKNOWN for DOUBLE-BUFFER, and does not know that XKEYBOARD::PerClientFlags has a reply;
//! - it shows no length of events and errors;
//! - it shows the sequence number of the last forwarded request as that of an event.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use xqos_wire::capture::CaptureReader;
use xqos_wire::messages::{MessageFormat, MessageLog};
use xqos_wire::session::Session;
use xqos_wire::x11::message_name::Filter;

const NAMES: [&str; 5] = ["xterm", "gtk3-demo", "qt5", "emacs", "x11perf"];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name)
}

fn unpack(name: &str) -> String {
    let mut text = String::new();
    let packed = File::open(file(name)).expect("the capture is committed");
    zstd::Decoder::new(packed).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn printed(name: &str) -> String {
    let packed = File::open(file(&format!("{name}.pcapng.zst"))).expect("the capture is committed");
    let mut reader = CaptureReader::new(zstd::Decoder::new(packed).unwrap()).unwrap();
    let mut out = Vec::new();
    let mut log = MessageLog::new(&mut out, MessageFormat::Text, None, Filter::default());
    let mut session = Session::new(vec![&mut log]);
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    let counts = session.finish();
    log.finish().unwrap();
    assert_eq!((counts.gaps, counts.skipped_bytes, counts.broken_packets), (0, 0, 0), "{name} was captured whole");
    assert!(reader.notes().is_empty());
    // Fields have their own tests.
    let lines = String::from_utf8(out).unwrap();
    lines.lines().map(|line| line.split(": ").next().unwrap().to_owned() + "\n").collect()
}

/// The parts of a message that xtrace shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Logged {
    sequence: u64,
    kind: String,
    name: String,
    length: Option<u64>,
}

/// Messages by connection and direction, because xtrace orders the two directions differently.
type Streams = BTreeMap<(u32, char), Vec<Logged>>;

fn ours(text: &str) -> Streams {
    let mut streams = Streams::new();
    for line in text.lines() {
        // Extension names may contain spaces.
        let (front, length) = line.rsplit_once(' ').unwrap();
        let fields: Vec<&str> = front.splitn(6, ' ').collect();
        let &[_at, id, arrow, sequence, kind, name] = &fields[..] else { continue };
        if kind.starts_with("Setup") {
            continue;
        }
        let is_long = matches!(kind, "Request" | "Reply");
        let name = if kind == "Request" { name } else { name.split_once("::").map_or(name, |(_, own)| own) };
        let logged = Logged {
            sequence: sequence.parse::<u64>().unwrap() % 65_536,
            kind: kind.to_owned(),
            name: name.to_owned(),
            length: is_long.then(|| length.parse().unwrap()),
        };
        streams.entry((id.parse().unwrap(), arrow.parse().unwrap())).or_default().push(logged);
    }
    streams
}

fn theirs(text: &str) -> Streams {
    let mut streams = Streams::new();
    for line in text.lines() {
        let mut fields = line.splitn(4, ':');
        let (Some(id), Some(arrow), Some(sequence), Some(rest)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Ok(sequence) = u64::from_str_radix(sequence, 16) else { continue };
        let Some(logged) = logged(sequence, rest) else { continue };
        // xtrace counts connections from 0, and its arrow points from the client to xtrace.
        let arrow = if arrow == "<" { '>' } else { '<' };
        streams.entry((id.parse::<u32>().unwrap() + 1, arrow)).or_default().push(logged);
    }
    streams
}

fn logged(sequence: u64, rest: &str) -> Option<Logged> {
    let word = |text: &str| text.split([' ', ':', '(']).next().unwrap_or_default().trim_start_matches("glX").to_owned();
    let of = |kind: &str, name: String, length| Some(Logged { sequence, kind: kind.to_owned(), name, length });
    if let Some(event) = rest.trim_start().strip_prefix("Event ") {
        let event = event.trim_start_matches("(generated) ");
        // The name is the third part: it follows the numbers of the event and of the extension, each in parentheses.
        let generic = event.strip_prefix("Generic").and_then(|event| event.split(") ").nth(2));
        return of("Event", word(generic.unwrap_or(event)), None);
    }
    if let Some((_, error)) = rest.strip_prefix("Error ").and_then(|error| error.split_once('=')) {
        return of("Error", word(error), None);
    }
    let (length, what) = rest.split_once(':')?;
    let (length, what) = (length.trim().parse().ok(), what.trim());
    if let Some(reply) = what.strip_prefix("Reply to ") {
        return of("Reply", word(reply), length);
    }
    if what.starts_with("unexpected Reply") {
        return of("Reply", "UNKNOWN".to_owned(), length);
    }
    let (opcodes, name) = what.split_once(": ")?;
    let name = match opcodes.split_once("-Request(") {
        Some((extension, _)) => format!("{extension}::{}", word(name)),
        None => word(name),
    };
    of("Request", name, length)
}

/// True if xtrace shows the same message.
fn is_same(ours: &Logged, theirs: &Logged) -> bool {
    let is_unknown = theirs.name.ends_with("UNKNOWN");
    let error = |name: &str| name.trim_start_matches("Bad").trim_start_matches("Shm").to_owned();
    let is_same_name = match ours.kind.as_str() {
        "Error" => error(&ours.name) == error(&theirs.name),
        _ => ours.name == theirs.name || is_unknown,
    };
    let is_same_number = match ours.kind.as_str() {
        "Event" => ours.sequence <= theirs.sequence,
        _ => ours.sequence == theirs.sequence,
    };
    (&ours.kind, ours.length) == (&theirs.kind, theirs.length) && is_same_number && is_same_name
}

#[test]
fn real_captures_give_the_recorded_messages() {
    for name in NAMES {
        let (now, before) = (printed(name), unpack(&format!("{name}.messages.zst")));
        for (now, before) in now.lines().zip(before.lines()) {
            assert_eq!(now, before, "in {name}");
        }
        assert_eq!(now.lines().count(), before.lines().count(), "in {name}");
    }
}

#[test]
fn real_captures_are_read_as_xtrace_saw_them() {
    for name in NAMES {
        let (ours, theirs) = (ours(&printed(name)), theirs(&unpack(&format!("{name}.xtrace.zst"))));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "streams of {name}");
        for (stream, ours) in &ours {
            let theirs = &theirs[stream];
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert!(is_same(ours, theirs), "{name} {stream:?}: xtrace shows {theirs:?} for {ours:?}");
            }
            assert_eq!(ours.len(), theirs.len(), "messages of {name} {stream:?}");
        }
    }
}
