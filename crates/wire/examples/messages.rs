// SPDX-License-Identifier: MIT
//! Prints one line for each message of a capture, for comparison with other tools.
//!
//! `cargo run -p xqos-wire --example messages -- FILE [PORT]`
//!
//! ```text
//! 0 0.001832 > 14 Request InternAtom 20
//! ```
//!
//! Connection, seconds since the first X packet, direction, sequence number, kind, name, length.

use std::fmt::Arguments;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use xqos_wire::capture::Reader;
use xqos_wire::contents::Contents;
use xqos_wire::observe::{ConnectionId, Direction, Ending, Kind, Message, MissingBytes, Observer, Opened};
use xqos_wire::session::Session;

struct Lines<W> {
    out: W,
    start_ns: Option<u64>,
}

impl<W: Write> Lines<W> {
    fn line(&mut self, id: ConnectionId, at_ns: u64, text: Arguments<'_>) {
        let ns = at_ns.saturating_sub(*self.start_ns.get_or_insert(at_ns));
        // Ignore a closed pipe.
        let _ = writeln!(self.out, "{} {}.{:06} {text}", id.0, ns / 1_000_000_000, ns / 1000 % 1_000_000);
    }
}

impl<W: Write> Observer for Lines<W> {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        let how = if opened.started_midstream { "joined" } else { "opened" };
        self.line(id, opened.at_ns, format_args!("{how} {} {}", opened.client, opened.server));
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let arrow = if matches!(message.kind, Kind::Setup | Kind::Request) { '>' } else { '<' };
        let Message { sequence, kind, name, length, .. } = message;
        self.line(id, message.last_ns, format_args!("{arrow} {sequence} {kind:?} {name} {length}"));
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        let arrow = if gap.direction == Direction::Requests { '>' } else { '<' };
        self.line(id, gap.at_ns, format_args!("{arrow} gap {} {}", gap.offset, gap.length));
    }

    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {
        self.line(id, at_ns, format_args!("ended {ending:?}"));
    }
}

/// Prints all messages of a capture, including connections to `port`.
pub fn print(reader: &mut Reader, port: Option<u16>, out: impl Write) -> Contents {
    let mut lines = Lines { out, start_ns: None };
    let mut session = Session::new(vec![&mut lines]);
    if let Some(port) = port {
        session = session.also_port(port);
    }
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    session.finish()
}

#[allow(dead_code, reason = "the tests print too")]
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(path) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: messages FILE [PORT]");
        return ExitCode::from(2);
    };
    let port = arguments.next().and_then(|port| port.to_str()?.parse().ok());
    let mut reader = match Reader::open(&path) {
        Ok(reader) => reader,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let counts = print(&mut reader, port, BufWriter::new(io::stdout().lock()));
    eprintln!("{counts:?}");
    for note in reader.notes() {
        eprintln!("{note}");
    }
    ExitCode::SUCCESS
}
