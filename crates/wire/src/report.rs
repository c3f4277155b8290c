// SPDX-License-Identifier: MIT
//! The figures of a capture, for each connection and summed for the session.
//!
//! Field names are part of the JSON format and do not change. Times are in seconds, lengths in bytes.
//!
//! | file | purpose |
//! |---|---|
//! | `merge`, `filter` | sums connections; leaves out the rows of other messages |
//! | [`table`], [`parquet`] | the figures as CSV and as Parquet tables |
//! | [`compare`], [`budget`] | compares two reports; checks a report against limits |

pub mod budget;
pub mod compare;
mod filter;
mod merge;
pub mod parquet;
pub mod table;

use crate::analysis::avoidable::Reason;
use crate::analysis::bandwidth::{ByteUse, Samples};
use crate::analysis::compression::Compression;
use crate::analysis::counts::MessageSum;
use crate::analysis::names::{NameId, Names};
use crate::analysis::patterns::Pattern;
use crate::analysis::proxied::figures::ProxyFigures;
use crate::analysis::redundancy::{RepeatedCoordinates, UnusedBytes};
use crate::analysis::round_trip::{WaitTotal, saving_s};
use crate::analysis::spans::{Span, Spans, length_until, minus, seconds, union};
use crate::analysis::startup::Phase;
use crate::analysis::transmitter::Transmitter;
use crate::analysis::{Analysis, Connection, Traffic};
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
    pub session: Session,
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
pub struct Session {
    pub connections: usize,
    /// Number of connections beyond the maximum, which are not analysed.
    pub left_out: u64,
    pub began_s: f64,
    pub seconds: f64,
    /// Time from the start until the last client became quiet.
    pub quiet_s: f64,
    #[serde(flatten)]
    pub figures: Figures,
    pub compression: BTreeMap<&'static str, Compression>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub requests: BTreeMap<String, MessageSum>,
    pub replies: BTreeMap<String, MessageSum>,
    pub events: BTreeMap<String, MessageSum>,
    pub errors: BTreeMap<String, MessageSum>,
    pub waits: Vec<WaitFigures>,
    pub patterns: Vec<PatternFigures>,
    pub idle_s: f64,
    pub blocked_network_s: f64,
    pub blocked_receiver_s: f64,
    pub reply_wait_s: f64,
    /// Total network delay: time in which the client waited for replies, or its requests were blocked.
    pub network_delay_s: f64,
    pub round_trips: u64,
    pub avoidable: u64,
    pub pipelined: u64,
    /// Time that the avoidable round trips cost at `latency_s`.
    pub saving_s: f64,
    /// Bytes in both directions.
    pub bytes: u64,
    pub missing_bytes: u64,
    pub bandwidth: BTreeMap<String, u64>,
    /// Unused bytes of requests, and coordinates that repeat those of the preceding shape.
    pub unused: BTreeMap<String, UnusedBytes>,
    pub repeated: BTreeMap<String, RepeatedCoordinates>,
    /// Present if a proxy was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyFigures>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct WaitFigures {
    pub name: String,
    pub count: u64,
    pub seconds: f64,
    pub avoidable: u64,
    pub reasons: BTreeMap<Reason, u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PatternFigures {
    pub pattern: String,
    pub count: u64,
    /// Largest number of consecutive waits with this pattern.
    pub in_a_row: u64,
    pub seconds: f64,
    pub avoidable: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Streams {
    pub requests: StreamFigures,
    pub replies: StreamFigures,
}

#[derive(Clone, Debug, Serialize)]
pub struct StreamFigures {
    pub packets: u64,
    pub bytes: u64,
    pub retransmitted_bytes: u64,
    pub missing_bytes: u64,
    pub idle_s: f64,
    /// Blocked by the network: the link's queue was not empty, or TCP's window was full.
    pub blocked_link_s: f64,
    pub blocked_window_s: f64,
    pub blocked_receiver_s: f64,
    /// Rate of the slowest link, if it was ever busy.
    pub link_bytes_per_s: Option<u64>,
    /// Shortest round trip from the capturing machine.
    pub round_trip_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StartupFigures {
    /// Figures until the first window is visible; null if none was mapped.
    pub window: Option<PhaseFigures>,
    pub quiet: PhaseFigures,
    /// False if 2 s of silence never occurred; `quiet` then extends to the end of the capture.
    pub is_quiet: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct PhaseFigures {
    pub seconds: f64,
    pub requests: u64,
    pub bytes: u64,
    pub round_trips: u64,
    pub avoidable: u64,
    pub saving_s: f64,
    /// The three parts of `seconds`: waiting for replies, blocked while sending or receiving, and all other time.
    pub reply_wait_s: f64,
    pub blocked_s: f64,
    pub client_s: f64,
    pub waits: Vec<WaitFigures>,
}

impl Analysis {
    pub fn report(self, latency_s: f64) -> Report {
        let Analysis { names, connections, samples, left_out, .. } = self;
        let open = |mut connection: Connection| {
            connection.end();
            connection
        };
        let ends: Vec<Connection> = connections.into_values().map(open).collect();
        let connections: Vec<_> =
            ends.iter().map(|connection| connection_report(connection, &names, latency_s)).collect();
        let session = Session { left_out, ..session(&ends, &connections, compression(samples)) };
        Report { version: VERSION, latency_s, connections, session, predictions: Vec::new() }
    }
}

fn compression(samples: Samples) -> BTreeMap<&'static str, Compression> {
    let names = ByteUse::ALL.iter().map(|what| what.name()).chain(["all requests", "all replies"]);
    let samples = samples.uses.into_iter().chain(samples.directions);
    names.zip(samples).filter_map(|(name, sample)| Some((name, sample.finish()?))).collect()
}

fn session(
    ends: &[Connection],
    reports: &[ConnectionReport],
    compression: BTreeMap<&'static str, Compression>,
) -> Session {
    let began_ns = ends.iter().map(|connection| connection.opened.at_ns).min().unwrap_or(0);
    let ended_ns = ends.iter().map(|connection| connection.ended_ns).max().unwrap_or(0);
    let quiet_ns = ends.iter().map(|connection| connection.startup.quiet().until_ns).max().unwrap_or(0);
    let mut figures = Figures::default();
    reports.iter().for_each(|report| figures.merge(&report.figures));
    Session {
        connections: ends.len(),
        left_out: 0,
        began_s: seconds(began_ns),
        seconds: seconds(ended_ns.saturating_sub(began_ns)),
        quiet_s: seconds(quiet_ns.saturating_sub(began_ns)),
        figures,
        compression,
    }
}

fn connection_report(connection: &Connection, names: &Names, latency_s: f64) -> ConnectionReport {
    let Connection { opened, program, ended_ns, ending, is_whole, traffic, states, startup, .. } = connection;
    let duration_ns = ended_ns.saturating_sub(opened.at_ns);
    let phase = |phase: &Phase| phase_figures(connection, phase, names, latency_s);
    ConnectionReport {
        client: opened.client.to_string(),
        program: program.clone(),
        server: opened.server.to_string(),
        began_s: seconds(opened.at_ns),
        seconds: seconds(duration_ns),
        started_midstream: opened.started_midstream,
        ending: *ending,
        is_whole: *is_whole,
        figures: figures(connection, names, latency_s),
        streams: Streams {
            requests: stream(&traffic[0], &states.requests, duration_ns),
            replies: stream(&traffic[1], &states.replies, duration_ns),
        },
        startup: StartupFigures {
            window: startup.window().map(phase),
            quiet: phase(startup.quiet()),
            is_quiet: startup.is_quiet(*ended_ns),
        },
    }
}

fn figures(connection: &Connection, names: &Names, latency_s: f64) -> Figures {
    let Connection { counts, waits, traffic, bandwidth, redundancy, .. } = connection;
    let duration_ns = connection.ended_ns.saturating_sub(connection.opened.at_ns);
    let (network, receiver, sending) = blocked(connection);
    let (requests, replies) = (&connection.states.requests.blocked, &connection.states.replies.blocked);
    let network_ns = length(&network, &[&requests.link, &requests.window, &replies.link, &replies.window]);
    let receiver_ns = length(&receiver, &[&requests.receiver, &replies.receiver]);
    let delay = union(&[&sending, waits.spans.list()]);
    let delay_ns = length(&delay, &[&requests.by_cause()[..], &[&waits.spans]].concat());
    let waits_by_name = wait_figures(&waits.by_name, names);
    let avoidable = waits_by_name.iter().map(|wait| wait.avoidable).sum::<u64>();
    let uses = ByteUse::ALL.iter().zip(bandwidth.bytes).map(|(what, bytes)| (what.name().to_owned(), bytes));
    let [requests, replies, events, errors] = counts.0.each_ref().map(|messages| messages.named(names));
    Figures {
        requests,
        replies,
        events,
        errors,
        round_trips: waits_by_name.iter().map(|wait| wait.count).sum(),
        waits: waits_by_name,
        patterns: waits.patterns.named(names).iter().map(pattern_figures).collect(),
        idle_s: seconds(duration_ns.saturating_sub(network_ns + receiver_ns)),
        blocked_network_s: seconds(network_ns),
        blocked_receiver_s: seconds(receiver_ns),
        reply_wait_s: seconds(waits.spans.total_ns()),
        network_delay_s: seconds(delay_ns),
        avoidable,
        pipelined: waits.pipelined,
        saving_s: saving_s(avoidable, latency_s),
        bytes: traffic.iter().map(|traffic| traffic.bytes).sum(),
        missing_bytes: traffic.iter().map(|traffic| traffic.missing).sum(),
        bandwidth: uses.collect(),
        unused: redundancy.unused.named(names),
        repeated: redundancy.repeated.named(names),
        proxy: connection.proxied.as_ref().map(|proxied| proxied.figures(names, latency_s)),
    }
}

/// Total time of a list made from `parts`. Long lists are coarse, so the result is at most the exact sum of the parts.
fn length(list: &[Span], parts: &[&Spans]) -> u64 {
    length_until(list, u64::MAX).min(parts.iter().map(|part| part.total_ns()).sum())
}

/// Spans blocked by the network in either direction, spans blocked only by a receiver, and spans of blocked requests.
fn blocked(connection: &Connection) -> (Vec<Span>, Vec<Span>, Vec<Span>) {
    let (requests, replies) = (&connection.states.requests.blocked, &connection.states.replies.blocked);
    let lists = [&requests.link, &requests.window, &replies.link, &replies.window].map(|spans| spans.list());
    let network = union(&lists);
    let receiver = union(&[requests.receiver.list(), replies.receiver.list()]);
    let receiver = minus(&receiver, &network);
    let sending = union(&requests.by_cause().map(Spans::list));
    (network, receiver, sending)
}

fn wait_figures(waits: &BTreeMap<NameId, WaitTotal>, names: &Names) -> Vec<WaitFigures> {
    let figures = |(&name, total): (&NameId, &WaitTotal)| WaitFigures {
        name: names.name(name).to_owned(),
        count: total.count,
        seconds: seconds(total.ns),
        avoidable: total.avoidable_count(),
        reasons: total.avoidable.clone(),
    };
    let mut list: Vec<_> = waits.iter().map(figures).collect();
    list.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then(one.name.cmp(&other.name)));
    list
}

fn pattern_figures((pattern, Pattern { total, in_a_row }): &(String, Pattern)) -> PatternFigures {
    PatternFigures {
        pattern: pattern.clone(),
        count: total.count,
        in_a_row: *in_a_row,
        seconds: seconds(total.ns),
        avoidable: total.avoidable_count(),
    }
}

fn stream(traffic: &Traffic, transmitter: &Transmitter, duration_ns: u64) -> StreamFigures {
    let [link, window, receiver] = transmitter.blocked.by_cause().map(Spans::total_ns);
    StreamFigures {
        packets: traffic.packets,
        bytes: traffic.bytes,
        retransmitted_bytes: traffic.retransmitted,
        missing_bytes: traffic.missing,
        idle_s: seconds(duration_ns.saturating_sub(link + window + receiver)),
        blocked_link_s: seconds(link),
        blocked_window_s: seconds(window),
        blocked_receiver_s: seconds(receiver),
        link_bytes_per_s: transmitter.bytes_per_second(),
        round_trip_s: transmitter.round_trip_ns().map(seconds),
    }
}

fn phase_figures(connection: &Connection, phase: &Phase, names: &Names, latency_s: f64) -> PhaseFigures {
    let total_ns = phase.until_ns.saturating_sub(connection.opened.at_ns);
    let (network, receiver, _) = blocked(connection);
    let blocked = minus(&union(&[&network, &receiver]), connection.waits.spans.list());
    let blocked_ns = length_until(&blocked, phase.until_ns);
    let waited_ns = phase.waited_ns().min(total_ns);
    PhaseFigures {
        seconds: seconds(total_ns),
        requests: phase.requests,
        bytes: phase.bytes,
        round_trips: phase.round_trips(),
        avoidable: phase.avoidable(),
        saving_s: saving_s(phase.avoidable(), latency_s),
        reply_wait_s: seconds(waited_ns),
        blocked_s: seconds(blocked_ns),
        client_s: seconds(total_ns.saturating_sub(waited_ns + blocked_ns)),
        waits: wait_figures(&phase.waits, names),
    }
}

#[cfg(test)]
mod tests;
