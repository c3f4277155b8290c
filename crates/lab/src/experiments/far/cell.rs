// SPDX-License-Identifier: MIT
//! Measures a cell: a program from its command until it is quiet, by the capture, the queue's log and near's report.
//!
//! No figure includes the start of a proxy. Only [`Start::from_command_s`] includes the time to load the program before
//! its first X packet. A cell that is not quiet within its limit has not failed: its figures are lower bounds.

use super::predicted::Predicted;
use super::start::{self, StartFiles};
use super::steady::Steady;
use super::{Capture, Case, Line, Route, Site};
use crate::actor::{CAPTURE_FILE, Captured, capture_now_ns};
use crate::folder::Folder;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::time::Duration;
use xqos_wire::analysis::agreement::agreement;
use xqos_wire::analysis::counts::MessageSum;
use xqos_wire::analysis::report::Figures;
use xqos_wire::analysis::spans::{Span, Spans, length_until, union};
use xqos_wire::analysis::states::States;
use xqos_wire::analysis::{Analysis, Connection};
use xqos_wire::link::log::{Entry, Reader};
use xqos_wire::observe::{ConnectionId, Kind, Message, Observer};
use xqos_wire::session::{self, Session};

/// A proxy has sent everything once the link has been silent for this long. The second value limits the wait.
const LINK_SILENCE: Duration = Duration::from_millis(1500);
const LINK_LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::experiments) struct Cell {
    pub case: Case,
    /// The measurement, or the reason why there is none: an error or a missing program.
    pub outcome: Result<Start, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct Start {
    /// False if the limit was reached.
    pub is_quiet: bool,
    pub limit_s: f64,
    /// Time from the program's first X packet to the last one before the silence.
    pub elapsed_s: f64,
    /// Time from the command at the program's end of the link to the same packet.
    pub from_command_s: f64,
    /// Total network delay: the time in which either direction was blocked or a reply was outstanding.
    pub delay_s: f64,
    pub reply_wait_s: f64,
    pub round_trips: u64,
    /// X bytes in both directions.
    pub x_bytes: u64,
    /// IP bytes on the link since the first X packet: those sent from the program's end, then those sent to it.
    pub link_bytes: [u64; 2],
    /// Time until the last of these packets, or until the program was quiet, whichever is later.
    pub link_s: f64,
    /// Packets that the kernel did not pass to the capture.
    pub dropped: u64,
    /// For raw X captured at the program's end: the fraction of the time in which the classifier agrees with the
    /// queue's log, for requests and for replies.
    pub agreement: Option<[f64; 2]>,
    /// Predictions from raw X, captured at the program's end on the fastest line.
    pub predicted: Option<Predicted>,
    /// All requests by name, captured as for `predicted`.
    #[serde(default)]
    pub requests: Vec<RequestCounts>,
    /// Round trips, from near's own report.
    pub waits: Option<Trips>,
    pub steady: Option<Steady>,
}

/// Requests of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::experiments) struct RequestCounts {
    pub name: String,
    pub sent: u64,
    /// Round trips that the program waited for, and those that it could avoid.
    pub waits: u64,
    pub avoidable: u64,
    /// Bytes of the requests and of their replies.
    #[serde(default)]
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::experiments) struct Trips {
    pub left: u64,
    pub saved: u64,
}

impl Cell {
    /// A failure is a finding about this cell. Only failures that concern every cell are errors.
    pub(super) fn measure(case: Case, slot: usize, limit: Duration, start_files: &StartFiles) -> Result<Cell> {
        let site = Site::open(case.line, slot)?;
        let outcome = measured(site, case, limit, start_files).map_err(|error| format!("{error:#}"));
        Ok(Cell { case, outcome })
    }
}

impl Start {
    /// X bytes divided by the time that the link needed for them.
    pub fn effective_kbit_per_s(&self) -> f64 {
        if self.link_s > 0.0 { self.x_bytes as f64 * 8.0 / 1e3 / self.link_s } else { 0.0 }
    }

    /// The mark for figures of a start that was cut off.
    pub fn bound(&self) -> &'static str {
        if self.is_quiet { "" } else { "> " }
    }
}

fn measured(site: Site, case: Case, limit: Duration, start_files: &StartFiles) -> Result<Start> {
    start_files.install(&site, case)?;
    let actor = site.capture(case, limit)?;
    let mut running = start::start(&site, case)?;
    let captured = site.wait_until_quiet(actor, &mut running[0], limit)?;
    if captured.is_quiet && case.watched == Capture::AtProgram && case.way != Route::Raw {
        // Ignore the result: if the link does not become silent, the figures show it.
        site.wait_until_silent(LINK_SILENCE, LINK_LIMIT)?;
    }
    let until_ns = capture_now_ns();
    let steady = (captured.is_quiet && case.has_work()).then(|| Steady::measure(&site, case)).transpose()?;
    let waits = if case.way.is_near() {
        start::let_end(&mut running[0])?;
        waits(&fs::read_to_string(site.path("program.errors")).unwrap_or_default())
    } else {
        None
    };
    let command_ns = start::began_ns(&site)?;
    // Closing the link ends all of its processes together.
    let folder = site.close()?;
    drop(running);
    let start = conclude(&folder, case, captured, limit, command_ns, until_ns)?;
    Ok(Start { waits, steady, ..start })
}

/// Evaluates the files of a cell. Packets after `until_ns` belong to the shutdown.
fn conclude(
    folder: &Folder,
    case: Case,
    captured: Captured,
    limit: Duration,
    command_ns: u64,
    until_ns: u64,
) -> Result<Start> {
    let (capture, log) = (folder.path(CAPTURE_FILE), folder.path("queue.log"));
    let is_whole = case.watched == Capture::AtProgram && case.way == Route::Raw;
    let (mut analysis, mut asked) = (Analysis::default(), OpenQueries::default());
    session::read(&capture, Session::new(vec![&mut analysis, &mut asked]))?;
    let agreed = if is_whole { agreement(&analysis, Reader::open(&log)?)? } else { None };
    let mut opened_ns: Vec<u64> = analysis.connections.values().map(|connection| connection.opened.at_ns).collect();
    opened_ns.sort_unstable();
    // With near, the first connection is near's own.
    let began_ns = *opened_ns.get(usize::from(case.way.is_near())).context("no traffic of the program was captured")?;
    let ended_ns = captured.ended_ns(&analysis, opened_ns[0], limit);
    let delays_ns = analysis.connections.iter().map(|(id, connection)| {
        let cut_off = asked.0.get(id).filter(|_| !captured.is_quiet).map(|asked| asked.1);
        delay_ns(connection, cut_off.map(|from_ns| Span { from_ns, to_ns: ended_ns }))
    });
    let delay_s = delays_ns.sum::<u64>() as f64 / 1e9;
    let figures = analysis.report(0.0).session.figures;
    let since_s = |from_ns: u64| ended_ns.saturating_sub(from_ns) as f64 / 1e9;
    let predicts = is_whole && case.line == Line::KNOWN && captured.is_quiet;
    let mut start = Start {
        is_quiet: captured.is_quiet,
        limit_s: limit.as_secs_f64(),
        elapsed_s: since_s(began_ns),
        from_command_s: since_s(command_ns),
        delay_s,
        reply_wait_s: figures.reply_wait_s,
        round_trips: figures.round_trips,
        x_bytes: figures.bytes,
        dropped: captured.dropped,
        agreement: agreed.map(|agreed| [agreed.requests, agreed.replies]),
        predicted: if predicts { Predicted::from_capture(&capture)? } else { None },
        requests: if predicts { request_counts(&figures) } else { Vec::new() },
        ..Start::default()
    };
    let log = Reader::open(&log)?.map_while(Result::ok);
    add_link(&mut start, log, opened_ns[0]..until_ns, ended_ns);
    Ok(start)
}

/// The requests, those with the most waits first.
fn request_counts(figures: &Figures) -> Vec<RequestCounts> {
    let counts = |(name, sum): (&String, &MessageSum)| {
        let wait = figures.waits.iter().find(|wait| wait.name == *name);
        let (waits, avoidable) = wait.map_or((0, 0), |wait| (wait.count, wait.avoidable));
        let bytes = sum.bytes + figures.replies.get(name).map_or(0, |replies| replies.bytes);
        RequestCounts { name: name.clone(), sent: sum.count, waits, avoidable, bytes }
    };
    let mut list: Vec<_> = figures.requests.iter().map(counts).collect();
    list.sort_by_key(|counts| std::cmp::Reverse((counts.waits, counts.sent)));
    list
}

/// Time in which a connection was not idle, including a wait that was cut off by the end of the capture.
fn delay_ns(connection: &Connection, cut_off: Option<Span>) -> u64 {
    let States { requests, replies, .. } = &connection.states;
    let blocked = requests.blocked.by_cause().into_iter().chain(replies.blocked.by_cause()).map(Spans::list);
    let lists: Vec<&[Span]> = blocked.chain([connection.waits.spans.list(), cut_off.as_slice()]).collect();
    length_until(&union(&lists), u64::MAX)
}
/// The oldest unanswered request of each connection: its sequence number, and when it was sent.
#[derive(Debug, Default)]
struct OpenQueries(BTreeMap<ConnectionId, (u64, u64)>);

impl Observer for OpenQueries {
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Message { kind, sequence, last_ns, has_reply, .. } = *message;
        match kind {
            Kind::Request if has_reply => {
                self.0.entry(id).or_insert((sequence, last_ns));
            }
            // Answers arrive in order, so older requests have been answered or never will be.
            Kind::Reply | Kind::Error if self.0.get(&id).is_some_and(|asked| asked.0 <= sequence) => {
                self.0.remove(&id);
            }
            _ => {}
        }
    }
}

/// Counts link packets in `time_ns`, which begins with the first X packet.
fn add_link(start: &mut Start, log: impl Iterator<Item = Entry>, time_ns: Range<u64>, ended_ns: u64) {
    let mut last_ns = ended_ns;
    for entry in log {
        if let Entry::Packet(packet) = entry {
            if let Some((_, sent_ns)) = packet.sent_ns.filter(|_| time_ns.contains(&packet.arrived_ns)) {
                start.link_bytes[packet.direction as usize] += u64::from(packet.bytes);
                last_ns = last_ns.max(sent_ns.min(time_ns.end));
            }
        }
    }
    start.link_s = last_ns.saturating_sub(time_ns.start) as f64 / 1e9;
}

/// The two numbers in near's `18 round trips left, 240 saved`.
fn waits(report: &str) -> Option<Trips> {
    let before = |words: &str| -> Option<u64> {
        let number = report.split(words).next().filter(|before| before.len() < report.len())?;
        number.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    Some(Trips { left: before(" round trips left,")?, saved: before(" saved")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_wire::link::log::{LoggedPacket, Outcome};
    use xqos_wire::observe::Direction;

    #[test]
    fn a_query_is_open_until_its_answer_or_a_later_one() {
        let mut asked = OpenQueries::default();
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
            asked.0.get(&id).map(|asked| asked.1)
        };
        assert_eq!(say(Kind::Request, 1, false), None);
        assert_eq!((say(Kind::Request, 2, true), say(Kind::Request, 3, true)), (Some(2), Some(2)));
        assert_eq!(say(Kind::Event, 9, false), Some(2));
        assert_eq!(say(Kind::Error, 3, false), None);
    }

    #[test]
    fn link_bytes_count_from_the_first_x_packet_to_the_end() {
        let packet = |direction, arrived_ns: u64, outcome| {
            let sent_ns = (outcome != Outcome::Dropped).then_some((arrived_ns, arrived_ns + 1_000_000_000));
            let delivered_ns = sent_ns.map(|(_, end_ns)| end_ns);
            Entry::Packet(LoggedPacket { direction, number: 1, bytes: 100, arrived_ns, sent_ns, delivered_ns, outcome })
        };
        let log = [
            packet(Direction::Requests, 1, Outcome::Delivered),
            packet(Direction::Requests, 10, Outcome::Delivered),
            packet(Direction::Requests, 11, Outcome::Dropped),
            packet(Direction::Replies, 20, Outcome::Lost),
            packet(Direction::Replies, 2_000_000_000, Outcome::Delivered),
        ];
        let mut start = Start::default();
        add_link(&mut start, log.into_iter(), 10..2_000_000_000, 30);
        assert_eq!(start.link_bytes, [100, 100]);
        assert!((start.link_s - 1.00000001).abs() < 1e-9, "{}", start.link_s);
    }

    #[test]
    fn only_the_report_of_near_is_parsed() {
        let report =
            "(emacs) a warning\nxqos: 1 connection: 261 queries, 241 answered locally; 18 round trips left, 240 saved";
        assert_eq!(waits(report), Some(Trips { left: 18, saved: 240 }));
        assert_eq!((waits(""), waits("xqos: near: no display")), (None, None));
    }
}
