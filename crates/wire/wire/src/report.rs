// SPDX-License-Identifier: MIT
//! The figures of a capture, for each connection and summed for the session.
//!
//! Field names are part of the JSON format and do not change. Times are in seconds, lengths in bytes.
//!
//! | file | purpose |
//! |---|---|
//! | `filter` | leaves out the rows of other messages |
//! | [`table`], [`parquet`] | the figures as CSV and as Parquet tables |
//! | [`compare`], [`budget`] | compares two reports; checks a report against limits |

pub mod budget;
pub mod compare;
mod filter;
pub mod parquet;
pub mod table;

use crate::analysis::avoidable::Reason;
use crate::analysis::bandwidth::{ByteUse, Samples};
use crate::analysis::compression::Compression;
use crate::analysis::counts::MessageSum;
use crate::analysis::figure::{Amounts, Declared, Largest, NamedRow, Value, figures};
use crate::analysis::names::{NameId, NameTable};
use crate::analysis::patterns::Pattern;
use crate::analysis::proxied::figures::ProxyFigures;
use crate::analysis::redundancy::{RepeatedCoordinates, UnusedBytes};
use crate::analysis::round_trip::{WaitTotal, saving_s};
use crate::analysis::spans::{Span, Spans, length_until, minus, seconds, union};
use crate::analysis::startup::Phase;
use crate::analysis::transmitter::Transmitter;
use crate::analysis::{AnalysedConnection, Analysis, Traffic};
use crate::observe::Ending;
use crate::predict::Prediction;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the format. It increases when a field changes its meaning or is removed.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub version: u32,
    /// One-way latency used to compute `saving_s`.
    pub latency_s: f64,
    pub connections: Vec<ConnectionReport>,
    pub session: SessionReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    pub client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub server: String,
    /// Seconds since 1970.
    pub began_s: f64,
    pub seconds: f64,
    pub started_midstream: bool,
    pub ending: Ending,
    /// True if the capture contains the connection from its start, with no message missing.
    pub is_whole: bool,
    #[serde(flatten)]
    pub figures: Figures,
    pub streams: Streams,
    pub startup: StartupFigures,
}

#[derive(Clone, Debug, Serialize)]
pub struct SessionReport {
    pub connections: usize,
    /// Number of connections beyond the maximum, which are not analysed.
    pub left_out: u64,
    pub began_s: f64,
    pub seconds: f64,
    #[serde(flatten)]
    pub figures: Figures,
    pub compression: BTreeMap<&'static str, Compression>,
}

figures! {
    Figures of it: Reading<'_>;
    /// Time from the start until the last client became quiet. Only sessions have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    quiet_s: Option<f64> {
        position: 8, compared: "until quiet", limit: "seconds", parts: |it| it.waits("seconds")
    } => None;
    requests: BTreeMap<String, MessageSum> => it.messages(0);
    replies: BTreeMap<String, MessageSum> => it.messages(1);
    events: BTreeMap<String, MessageSum> => it.messages(2);
    errors: BTreeMap<String, MessageSum> { limit: "errors", parts: errors } => it.messages(3);
    waits: Vec<WaitFigures> => wait_figures(&it.of.waits.by_name, it.names);
    patterns: Vec<PatternFigures> => it.of.waits.patterns.named(it.names).iter().map(PatternFigures::read).collect();
    idle_s: f64 { title: "IDLE", state: "idle" } =>
        seconds(it.duration_ns.saturating_sub(it.network_ns + it.receiver_ns));
    blocked_network_s: f64 {
        title: "NETWORK", state: "blocked by network", position: 5, compared: "blocked by the network"
    } => seconds(it.network_ns);
    blocked_receiver_s: f64 {
        title: "RECEIVER", state: "blocked by receiver", position: 6, compared: "blocked by the receiver"
    } => seconds(it.receiver_ns);
    reply_wait_s: f64 {
        title: "REPLIES", state: "waiting for replies", position: 4, compared: "waiting for replies",
        limit: "waits", parts: |it| it.waits("seconds")
    } => seconds(it.of.waits.spans.total_ns());
    /// Total network delay: time in which the client waited for replies, or its requests were blocked.
    network_delay_s: f64 { title: "DELAY", state: "network delay", position: 7, compared: "network delay" } =>
        seconds(it.delay_ns);
    round_trips: u64 {
        title: "ROUND TRIPS", position: 1, compared: "round trips", limit: "round-trips", parts: |it| it.waits("count")
    } => it.sum(|total| total.count);
    avoidable: u64 {
        title: "AVOIDABLE", position: 2, compared: "avoidable", limit: "avoidable", parts: |it| it.waits("avoidable")
    } => it.sum(WaitTotal::avoidable_count);
    pipelined: u64 => it.of.waits.pipelined;
    /// Time that the avoidable round trips cost at `latency_s`.
    saving_s: f64 => saving_s(it.sum(WaitTotal::avoidable_count), it.latency_s);
    /// Bytes in both directions.
    bytes: u64 { title: "BYTES", rank: 1, position: 3, compared: "bytes", limit: "bytes", parts: message_bytes } =>
        it.of.traffic.iter().map(|traffic| traffic.bytes).sum();
    missing_bytes: u64 => it.of.traffic.iter().map(|traffic| traffic.missing).sum();
    bandwidth: BTreeMap<String, u64> =>
        ByteUse::ALL.iter().zip(it.of.bandwidth.bytes).map(|(what, bytes)| (what.name().to_owned(), bytes)).collect();
    /// Unused bytes of requests, and coordinates that repeat those of the preceding shape.
    unused: BTreeMap<String, UnusedBytes> => it.of.redundancy.unused.named(it.names);
    repeated: BTreeMap<String, RepeatedCoordinates> => it.of.redundancy.repeated.named(it.names);
    /// Present if a proxy was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<ProxyFigures> => it.of.proxied.as_ref().map(|proxied| proxied.figures(it.names, it.latency_s));
}

figures! {
    WaitFigures of it: (&str, &WaitTotal);
    name: String => it.0.to_owned();
    count: u64 { title: "ROUND TRIPS" } => it.1.count;
    seconds: f64 { title: "SECONDS" } => seconds(it.1.ns);
    avoidable: u64 { title: "AVOIDABLE" } => it.1.avoidable_count();
    reasons: BTreeMap<Reason, u64> => it.1.avoidable.clone();
}

figures! {
    PatternFigures of it: (String, Pattern);
    pattern: String => it.0.clone();
    count: u64 { title: "ROUND TRIPS" } => it.1.total.count;
    /// Largest number of consecutive waits with this pattern.
    in_a_row: Largest { title: "IN A ROW" } => Largest(it.1.in_a_row);
    seconds: f64 { title: "SECONDS" } => seconds(it.1.total.ns);
    avoidable: u64 { title: "AVOIDABLE" } => it.1.total.avoidable_count();
}

#[derive(Clone, Debug, Serialize)]
pub struct Streams {
    pub requests: StreamFigures,
    pub replies: StreamFigures,
}

figures! {
    StreamFigures of it: (&Traffic, &Transmitter, u64);
    packets: u64 { title: "PACKETS", rank: 2 } => it.0.packets;
    bytes: u64 { title: "BYTES", rank: 1 } => it.0.bytes;
    retransmitted_bytes: u64 { title: "RESENT", rank: 3 } => it.0.retransmitted;
    missing_bytes: u64 => it.0.missing;
    idle_s: f64 { title: "IDLE" } => seconds(it.2.saturating_sub(it.1.blocked.total_ns()));
    /// Blocked by the network: the link's queue was not empty, or TCP's window was full.
    blocked_link_s: f64 { title: "LINK" } => seconds(it.1.blocked.link.total_ns());
    blocked_window_s: f64 { title: "WINDOW" } => seconds(it.1.blocked.window.total_ns());
    blocked_receiver_s: f64 { title: "RECEIVER" } => seconds(it.1.blocked.receiver.total_ns());
    /// Rate of the slowest link, if it was ever busy.
    link_bytes_per_s: Option<u64> { title: "LINK kB/s", rank: 4 } => it.1.rate.bytes_per_second;
    /// Shortest round trip from the capturing machine.
    round_trip_s: Option<f64> => it.1.round_trip_ns().map(seconds);
}

#[derive(Clone, Debug, Serialize)]
pub struct StartupFigures {
    /// Figures until the first window is visible; null if none was mapped.
    pub window: Option<PhaseFigures>,
    pub quiet: PhaseFigures,
    /// False if 2 s of silence never occurred; `quiet` then extends to the end of the capture.
    pub is_quiet: bool,
}

figures! {
    PhaseFigures of it: PhaseReading<'_>;
    seconds: f64 { title: "SECONDS" } => seconds(it.total_ns);
    requests: u64 { title: "REQUESTS", rank: 1 } => it.phase.requests;
    bytes: u64 { title: "BYTES", rank: 1 } => it.phase.bytes;
    round_trips: u64 { title: "ROUND TRIPS" } => it.phase.round_trips();
    avoidable: u64 { title: "AVOIDABLE" } => it.phase.avoidable();
    saving_s: f64 => saving_s(it.phase.avoidable(), it.latency_s);
    /// The three parts of `seconds`: waiting for replies, blocked while sending or receiving, and all other time.
    reply_wait_s: f64 { title: "REPLIES" } => seconds(it.waited_ns);
    blocked_s: f64 { title: "BLOCKED" } => seconds(it.blocked_ns);
    client_s: f64 { title: "CLIENT" } => seconds(it.total_ns.saturating_sub(it.waited_ns + it.blocked_ns));
    waits: Vec<WaitFigures> => wait_figures(&it.phase.waits, it.names);
}

impl Analysis {
    pub fn report(self, latency_s: f64) -> Report {
        let Analysis { names, connections, samples, left_out, .. } = self;
        let open = |mut connection: AnalysedConnection| {
            connection.end();
            connection
        };
        let ends: Vec<AnalysedConnection> = connections.into_values().map(open).collect();
        let connections: Vec<_> =
            ends.iter().map(|connection| connection_report(connection, &names, latency_s)).collect();
        let session = SessionReport { left_out, ..session(&ends, &connections, compression(samples)) };
        Report { version: VERSION, latency_s, connections, session, predictions: Vec::new() }
    }
}

fn compression(samples: Samples) -> BTreeMap<&'static str, Compression> {
    let names = ByteUse::ALL.iter().map(|what| what.name()).chain(["all requests", "all replies"]);
    let samples = samples.uses.into_iter().chain(samples.directions);
    names.zip(samples).filter_map(|(name, sample)| Some((name, sample.finish()?))).collect()
}

fn session(
    ends: &[AnalysedConnection],
    reports: &[ConnectionReport],
    compression: BTreeMap<&'static str, Compression>,
) -> SessionReport {
    let began_ns = ends.iter().map(|connection| connection.opened.at_ns).min().unwrap_or(0);
    let ended_ns = ends.iter().map(|connection| connection.ended_ns).max().unwrap_or(0);
    let quiet_ns = ends.iter().map(|connection| connection.startup.quiet().until_ns).max().unwrap_or(0);
    let mut figures = Figures::default();
    reports.iter().for_each(|report| figures.merge(&report.figures));
    figures.quiet_s = Some(seconds(quiet_ns.saturating_sub(began_ns)));
    SessionReport {
        connections: ends.len(),
        left_out: 0,
        began_s: seconds(began_ns),
        seconds: seconds(ended_ns.saturating_sub(began_ns)),
        figures,
        compression,
    }
}

fn connection_report(connection: &AnalysedConnection, names: &NameTable, latency_s: f64) -> ConnectionReport {
    let AnalysedConnection { opened, program, ended_ns, ending, is_whole, traffic, states, startup, .. } = connection;
    let duration_ns = ended_ns.saturating_sub(opened.at_ns);
    let phase = |phase: &Phase| PhaseFigures::read(&PhaseReading::of(connection, phase, names, latency_s));
    ConnectionReport {
        client: opened.client.to_string(),
        program: program.clone(),
        server: opened.server.to_string(),
        began_s: seconds(opened.at_ns),
        seconds: seconds(duration_ns),
        started_midstream: opened.started_midstream,
        ending: *ending,
        is_whole: *is_whole,
        figures: Figures::read(&Reading::of(connection, names, latency_s)),
        streams: Streams {
            requests: StreamFigures::read(&(&traffic[0], &states.requests, duration_ns)),
            replies: StreamFigures::read(&(&traffic[1], &states.replies, duration_ns)),
        },
        startup: StartupFigures {
            window: startup.window().map(phase),
            quiet: phase(startup.quiet()),
            is_quiet: startup.is_quiet(*ended_ns),
        },
    }
}

/// The source of a connection's figures.
struct Reading<'a> {
    of: &'a AnalysedConnection,
    names: &'a NameTable,
    latency_s: f64,
    duration_ns: u64,
    network_ns: u64,
    receiver_ns: u64,
    delay_ns: u64,
}

impl<'a> Reading<'a> {
    fn of(of: &'a AnalysedConnection, names: &'a NameTable, latency_s: f64) -> Reading<'a> {
        let (network, receiver, sending) = blocked(of);
        let (requests, replies) = (&of.states.requests.blocked, &of.states.replies.blocked);
        let delay = union(&[&sending, of.waits.spans.list()]);
        Reading {
            of,
            names,
            latency_s,
            duration_ns: of.ended_ns.saturating_sub(of.opened.at_ns),
            network_ns: length(&network, &[&requests.link, &requests.window, &replies.link, &replies.window]),
            receiver_ns: length(&receiver, &[&requests.receiver, &replies.receiver]),
            delay_ns: length(&delay, &[&requests.by_cause()[..], &[&of.waits.spans]].concat()),
        }
    }

    fn messages(&self, kind: usize) -> BTreeMap<String, MessageSum> {
        self.of.counts.0[kind].named(self.names)
    }

    fn sum(&self, of: impl Fn(&WaitTotal) -> u64) -> u64 {
        self.of.waits.by_name.values().map(of).sum()
    }
}

impl Figures {
    /// A figure of the waits, by request.
    fn waits(&self, key: &str) -> Amounts {
        let amount = |wait: &WaitFigures| (WaitFigures::figure(key)?.of)(wait);
        self.waits.iter().filter_map(|wait| Some((wait.name.clone(), amount(wait)?))).collect()
    }
}

fn errors(figures: &Figures) -> Amounts {
    figures.errors.iter().map(|(name, sum)| (name.clone(), sum.count as f64)).collect()
}

fn message_bytes(figures: &Figures) -> Amounts {
    let kinds = [("", &figures.requests), ("reply to ", &figures.replies), ("event ", &figures.events)];
    let all = kinds.into_iter().flat_map(|(kind, names)| names.iter().map(move |entry| (kind, entry)));
    all.map(|(kind, (name, sum))| (format!("{kind}{name}"), sum.bytes as f64)).collect()
}

/// Total time of a list made from `parts`. Long lists are coarse, so the result is at most the exact sum of the parts.
fn length(list: &[Span], parts: &[&Spans]) -> u64 {
    length_until(list, u64::MAX).min(parts.iter().map(|part| part.total_ns()).sum())
}

/// Spans blocked by the network in either direction, spans blocked only by a receiver, and spans of blocked requests.
fn blocked(connection: &AnalysedConnection) -> (Vec<Span>, Vec<Span>, Vec<Span>) {
    let (requests, replies) = (&connection.states.requests.blocked, &connection.states.replies.blocked);
    let lists = [&requests.link, &requests.window, &replies.link, &replies.window].map(|spans| spans.list());
    let network = union(&lists);
    let receiver = union(&[requests.receiver.list(), replies.receiver.list()]);
    let receiver = minus(&receiver, &network);
    let sending = union(&requests.by_cause().map(Spans::list));
    (network, receiver, sending)
}

fn wait_figures(waits: &BTreeMap<NameId, WaitTotal>, names: &NameTable) -> Vec<WaitFigures> {
    let figures = waits.iter().map(|(&name, total)| WaitFigures::read(&(names.name(name), total)));
    let mut list: Vec<_> = figures.collect();
    list.sort_by(NamedRow::order);
    list
}

impl NamedRow for WaitFigures {
    fn name(&self) -> &str {
        &self.name
    }
}

impl NamedRow for PatternFigures {
    fn name(&self) -> &str {
        &self.pattern
    }
}

struct PhaseReading<'a> {
    phase: &'a Phase,
    names: &'a NameTable,
    latency_s: f64,
    total_ns: u64,
    waited_ns: u64,
    blocked_ns: u64,
}

impl<'a> PhaseReading<'a> {
    fn of(connection: &AnalysedConnection, phase: &'a Phase, names: &'a NameTable, latency_s: f64) -> PhaseReading<'a> {
        let total_ns = phase.until_ns.saturating_sub(connection.opened.at_ns);
        let (network, receiver, _) = blocked(connection);
        let blocked = minus(&union(&[&network, &receiver]), connection.waits.spans.list());
        let blocked_ns = length_until(&blocked, phase.until_ns);
        let waited_ns = phase.waited_ns().min(total_ns);
        PhaseReading { phase, names, latency_s, total_ns, waited_ns, blocked_ns }
    }
}

#[cfg(test)]
mod tests;
