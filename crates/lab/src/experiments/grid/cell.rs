// SPDX-License-Identifier: MIT
//! One cell: a program from its first packet until it is quiet, and what the capture and the queue's log say of that.
//!
//! The clock begins with the first packet of X, at the program's end, and ends with the last one before the silence. What a
//! proxy needs to get going is not in it, nor what the program loads before it asks for a connection.

use super::case::{Case, Transport};
use super::foretold::{FASTEST, Foretold};
use crate::actor::{CAPTURE_FILE, Captured, capture_now_ns};
use crate::experiments::far::{Part, Site, nx, ssh};
use crate::folder::Folder;
use crate::process::Owned;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;
use xqos_wire::analysis::agreement::agreement;
use xqos_wire::analysis::spans::{Span, Spans, length_until, union};
use xqos_wire::analysis::states::States;
use xqos_wire::analysis::{Analysis, Connection};
use xqos_wire::link::Side;
use xqos_wire::link::log::{Entry, Reader};
use xqos_wire::observe::{ConnectionId, Kind, Message, Observer};
use xqos_wire::session::{self, Session};

/// A proxy has sent what it held when nothing went over the link for so long; and no longer than that is waited for.
const LINK_SILENCE: Duration = Duration::from_millis(1500);
const LINK_LIMIT: Duration = Duration::from_secs(30);

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub case: Case,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Measured(Measured),
    /// The program or the proxy failed, and said this.
    Failed(String),
    /// This is missing.
    LeftOut(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Otherwise the limit was reached, and all figures are what there was until then.
    pub is_quiet: bool,
    pub limit_s: f64,
    pub elapsed_s: f64,
    /// Total network delay: either direction blocked, or a reply waited for.
    pub delay_s: f64,
    pub reply_wait_s: f64,
    pub round_trips: u64,
    /// Of X at the program's end, both ways.
    pub x_bytes: u64,
    /// Over the link since the first packet of X: from the program's end, and back; whole IP packets.
    pub link_bytes: [u64; 2],
    /// Until the last of these, or until the program was quiet, if that was later.
    pub link_s: f64,
    /// Packets that the kernel did not hand to the capture.
    pub dropped: u64,
    /// Of raw X: part of the time in which the classifier says of requests, and of replies, what the queue's log says.
    pub agreement: Option<[f64; 2]>,
    /// Of raw X over the fastest line.
    #[serde(default)]
    pub foretold: Option<Foretold>,
}

impl Part for Cell {
    type Case = Case;

    fn case(&self) -> Case {
        self.case
    }

    fn left_out(case: Case, missing: String) -> Cell {
        Cell { case, outcome: Outcome::LeftOut(missing) }
    }
}

impl Cell {
    /// A failure is a finding of this cell; only what no cell could do without is an error. No two cells have the same
    /// `place` at a time.
    pub fn measure(case: Case, place: usize, limit: Duration) -> Result<Cell> {
        let site = Site::open(case.line, place)?;
        let outcome = match measured(site, case, limit) {
            Ok(measured) => Outcome::Measured(measured),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        Ok(Cell { case, outcome })
    }

    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed(_) | Outcome::LeftOut(_) => None,
        }
    }
}

impl Measured {
    /// Bytes of X over the time that the link needed for them.
    pub fn effective_kbit_per_s(&self) -> f64 {
        if self.link_s > 0.0 { self.x_bytes as f64 * 8.0 / 1e3 / self.link_s } else { 0.0 }
    }
}

fn measured(site: Site, case: Case, limit: Duration) -> Result<Measured> {
    let on_loopback = case.transport != Transport::Raw;
    let actor = site.capture(Side::Client, on_loopback, case.line.silence(), limit)?;
    let mut running = start(&site, case)?;
    let captured = site.wait_until_quiet(actor, &mut running[0], limit)?;
    if on_loopback && captured.is_quiet {
        // That it was not silent is seen in the figures.
        site.wait_until_silent(LINK_SILENCE, LINK_LIMIT);
    }
    let until_ns = capture_now_ns();
    // The link ends them all at once, which is gentler than one after the other.
    let folder = site.close()?;
    drop(running);
    let mut measured = conclude(&folder, !on_loopback, captured, limit, until_ns)?;
    if !on_loopback && case.line == FASTEST && measured.is_quiet {
        measured.foretold = Foretold::of_capture(&folder.path(CAPTURE_FILE))?;
    }
    Ok(measured)
}

/// The program is the first.
fn start(site: &Site, case: Case) -> Result<Vec<Owned>> {
    let program = case.program.command();
    match case.transport {
        Transport::Raw => {
            let mut command = Command::new(program[0]);
            command.args(&program[1..]).env("DISPLAY", site.far_display());
            Ok(vec![site.start(Side::Client, "program", &mut command)?])
        }
        Transport::Ssh | Transport::SshC => ssh::start(site, program, case.transport == Transport::SshC),
        Transport::Nx | Transport::NxTaint => nx::start(site, program, case.line, case.transport == Transport::NxTaint),
    }
}

/// What the files of a cell say; what came after `until_ns` are farewells.
fn conclude(folder: &Folder, is_raw: bool, captured: Captured, limit: Duration, until_ns: u64) -> Result<Measured> {
    let log = folder.path("queue.log");
    let (mut analysis, mut asked) = (Analysis::default(), Asked::default());
    session::read(&folder.path(CAPTURE_FILE), Session::new(vec![&mut analysis, &mut asked]))?;
    let agreed = if is_raw { agreement(&analysis, Reader::open(&log)?)? } else { None };
    let began_ns = analysis.connections.values().map(|connection| connection.opened.at_ns).min();
    let began_ns = began_ns.context("nothing of X was captured")?;
    let ended_ns = captured.ended_ns(&analysis, began_ns, limit);
    let delays_ns = analysis.connections.iter().map(|(id, connection)| {
        let cut_off = asked.0.get(id).filter(|_| !captured.is_quiet).map(|asked| asked.at_ns);
        delay_ns(connection, cut_off.map(|from_ns| Span { from_ns, to_ns: ended_ns }))
    });
    let delay_s = delays_ns.sum::<u64>() as f64 / 1e9;
    let session = analysis.report(0.0).session;
    let mut measured = Measured {
        is_quiet: captured.is_quiet,
        limit_s: limit.as_secs_f64(),
        elapsed_s: (ended_ns - began_ns) as f64 / 1e9,
        delay_s,
        reply_wait_s: session.figures.reply_wait_s,
        round_trips: session.figures.round_trips,
        x_bytes: session.figures.bytes,
        dropped: captured.dropped,
        agreement: agreed.map(|agreed| [agreed.requests, agreed.replies]),
        ..Measured::default()
    };
    let log = Reader::open(&log)?.map_while(Result::ok);
    add_link(&mut measured, log, began_ns..until_ns, ended_ns);
    Ok(measured)
}

/// When a connection was not idle; with the wait that the end of the capture cut off.
fn delay_ns(connection: &Connection, cut_off: Option<Span>) -> u64 {
    let States { requests, replies, .. } = &connection.states;
    let blocked = requests.told.stretches().into_iter().chain(replies.told.stretches()).map(Spans::list);
    let lists: Vec<&[Span]> = blocked.chain([connection.waits.spans.list(), cut_off.as_slice()]).collect();
    length_until(&union(&lists), u64::MAX)
}

/// The oldest request of each connection that was not answered.
#[derive(Debug, Default)]
struct Asked(BTreeMap<ConnectionId, Question>);

#[derive(Debug)]
struct Question {
    sequence: u64,
    at_ns: u64,
}

impl Observer for Asked {
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Message { kind, sequence, last_ns, has_reply, .. } = *message;
        match kind {
            Kind::Request if has_reply => {
                self.0.entry(id).or_insert(Question { sequence, at_ns: last_ns });
            }
            // Answers come in order: what is older has its own, or will never have one.
            Kind::Reply | Kind::Error if self.0.get(&id).is_some_and(|asked| asked.sequence <= sequence) => {
                self.0.remove(&id);
            }
            _ => {}
        }
    }
}

/// Counts what came to the link in that time, which begins with the first packet of X.
fn add_link(measured: &mut Measured, log: impl Iterator<Item = Entry>, time_ns: Range<u64>, ended_ns: u64) {
    let mut last_ns = ended_ns;
    for entry in log {
        if let Entry::Packet(packet) = entry {
            if let Some((_, sent_ns)) = packet.sent_ns.filter(|_| time_ns.contains(&packet.arrived_ns)) {
                measured.link_bytes[packet.direction as usize] += u64::from(packet.bytes);
                last_ns = last_ns.max(sent_ns.min(time_ns.end));
            }
        }
    }
    measured.link_s = last_ns.saturating_sub(time_ns.start) as f64 / 1e9;
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_wire::link::log::{Fate, Record};
    use xqos_wire::observe::Direction;

    #[test]
    fn a_question_is_open_until_its_answer_or_a_later_one() {
        let mut asked = Asked::default();
        let id = ConnectionId(0);
        let mut say = |kind, sequence: u64, has_reply| {
            let (name, last_ns) = ("InternAtom", sequence);
            asked.message(
                id,
                &Message {
                    kind,
                    sequence,
                    name,
                    major: 16,
                    minor: 0,
                    has_reply,
                    offset: 0,
                    length: 8,
                    first_ns: last_ns,
                    last_ns,
                    is_little_endian: true,
                    bytes: &[],
                },
            );
            asked.0.get(&id).map(|asked| asked.at_ns)
        };
        assert_eq!(say(Kind::Request, 1, false), None);
        assert_eq!((say(Kind::Request, 2, true), say(Kind::Request, 3, true)), (Some(2), Some(2)));
        assert_eq!(say(Kind::Event, 9, false), Some(2));
        assert_eq!(say(Kind::Error, 3, false), None);
    }

    #[test]
    fn the_links_bytes_count_from_the_first_packet_of_x_to_the_end() {
        let packet = |direction, arrived_ns: u64, fate| {
            let sent_ns = (fate != Fate::Dropped).then_some((arrived_ns, arrived_ns + 1_000_000_000));
            let delivered_ns = sent_ns.map(|(_, end_ns)| end_ns);
            Entry::Packet(Record { direction, number: 1, bytes: 100, arrived_ns, sent_ns, delivered_ns, fate })
        };
        let log = [
            packet(Direction::Requests, 1, Fate::Delivered),
            packet(Direction::Requests, 10, Fate::Delivered),
            packet(Direction::Requests, 11, Fate::Dropped),
            packet(Direction::Replies, 20, Fate::Lost),
            packet(Direction::Replies, 2_000_000_000, Fate::Delivered),
        ];
        let mut measured = Measured::default();
        add_link(&mut measured, log.into_iter(), 10..2_000_000_000, 30);
        assert_eq!(measured.link_bytes, [100, 100]);
        assert!((measured.link_s - 1.00000001).abs() < 1e-9, "{}", measured.link_s);
    }
}
