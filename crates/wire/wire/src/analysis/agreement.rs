// SPDX-License-Identifier: MIT
//! Compares the states inferred from a capture with the log of an emulated link, which is exact.
//!
//! [`BlockCause::Link`](super::blocked::BlockCause) claims that data were in the queue or on the slowest link. The log
//! says when the link was sending. They are compared from the start of the first connection to the end of the last one.
//! Time that only one of them reports as busy counts as disagreement. Other traffic on the link would count as an error
//! of the states, so run nothing else on it.

use super::spans::{Span, length_until, minus, union, within};
use super::{AnalysedConnection, Analysis};
use crate::link::log::{BadLog, Busy, LogEntry};
use crate::observe::Direction;

/// Fraction of the time for which states and log agree, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    pub requests: f64,
    pub replies: f64,
    /// Time in which the link was sending requests, and time in which it was sending replies.
    pub busy_ns: [u64; 2],
    pub ns: u64,
}

/// Returns `None` if nothing was captured. Read the whole capture first.
pub fn agreement(
    analysis: &Analysis,
    log: impl Iterator<Item = Result<LogEntry, BadLog>>,
) -> Result<Option<Agreement>, BadLog> {
    let connections = || analysis.connections.values();
    let from_ns = connections().map(|connection| connection.opened.at_ns).min().unwrap_or(0);
    let to_ns = connections().map(|connection| connection.ended_ns).max().unwrap_or(0);
    if to_ns <= from_ns {
        return Ok(None);
    }
    let whole = Span { from_ns, to_ns };
    let mut truth = [Vec::new(), Vec::new()];
    for entry in log {
        if let LogEntry::Busy(Busy { direction, from_ns, to_ns }) = entry? {
            truth[direction as usize].push(Span { from_ns, to_ns });
        }
    }
    let truth = truth.map(|list| within(list.into_iter(), &whole));
    let ours = Direction::BOTH.map(|direction| within(claimed(connections(), direction).into_iter(), &whole));
    let ns = to_ns - from_ns;
    let part = |way: usize| 1.0 - differing_ns(&truth[way], &ours[way]) as f64 / ns as f64;
    let busy_ns = [0, 1].map(|way| length_until(&truth[way], u64::MAX));
    Ok(Some(Agreement { requests: part(0), replies: part(1), busy_ns, ns }))
}

/// Spans in which the inferred states call the link busy in that direction.
fn claimed<'a>(connections: impl Iterator<Item = &'a AnalysedConnection>, direction: Direction) -> Vec<Span> {
    let transmitter = |connection: &'a AnalysedConnection| match direction {
        Direction::Requests => connection.states.requests.blocked.link.list(),
        Direction::Replies => connection.states.replies.blocked.link.list(),
    };
    union(&connections.map(transmitter).collect::<Vec<_>>())
}

fn differing_ns(one: &[Span], other: &[Span]) -> u64 {
    length_until(&minus(one, other), u64::MAX) + length_until(&minus(other, one), u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{ConnectionId, Ending, Observer, Opened, Packet};

    const MS: u64 = 1_000_000;
    const BEGAN_NS: u64 = 1_000 * MS;

    /// A connection that sends 20 full packets in one burst at 125,000 bytes/s. Each is acknowledged on arrival.
    fn analysis() -> Analysis {
        let mut analysis = Analysis::default();
        let ends = ["10.0.0.2:40000", "10.0.0.1:6000"].map(|end| end.parse().unwrap());
        let opened = Opened { at_ns: BEGAN_NS, client: ends[0], server: ends[1], started_midstream: false };
        let id = ConnectionId(0);
        analysis.opened(id, &opened);
        let packet = |direction, at_ns, offset, length, acknowledged| Packet {
            direction,
            at_ns,
            offset,
            length,
            acknowledged,
            window: 1 << 20,
            is_retransmission: false,
            is_control: false,
        };
        for number in 0..20 {
            analysis.packet(id, &packet(Direction::Requests, BEGAN_NS, number * 1448, 1448, 0));
        }
        for number in 1..=20 {
            let at_ns = BEGAN_NS + number * 12 * MS + MS;
            analysis.packet(id, &packet(Direction::Replies, at_ns, 0, 0, number * 1448));
        }
        analysis.ended(id, BEGAN_NS + 480 * MS, Ending::Finished);
        analysis
    }

    fn busy(direction: Direction, from_ms: u64, to_ms: u64) -> Result<LogEntry, BadLog> {
        Ok(LogEntry::Busy(Busy { direction, from_ns: BEGAN_NS + from_ms * MS, to_ns: BEGAN_NS + to_ms * MS }))
    }

    #[test]
    fn matching_busy_times_agree() {
        let log = [busy(Direction::Requests, 0, 240)];
        let agreement = agreement(&analysis(), log.into_iter()).unwrap().unwrap();
        assert_eq!((agreement.ns, agreement.busy_ns), (480 * MS, [240 * MS, 0]));
        assert!(agreement.requests > 0.95 && agreement.replies > 0.95, "{agreement:?}");
    }

    #[test]
    fn time_that_only_one_calls_busy_is_disagreement() {
        let idle = agreement(&analysis(), [].into_iter()).unwrap().unwrap();
        assert!((0.45..0.55).contains(&idle.requests), "{idle:?}");
        // Time before and after the connection does not count.
        let log = [busy(Direction::Requests, 240, 100_000)];
        let other = agreement(&analysis(), log.into_iter()).unwrap().unwrap();
        assert!(other.requests < 0.05 && other.busy_ns[0] == 240 * MS, "{other:?}");
    }

    #[test]
    fn an_empty_capture_has_no_agreement() {
        assert_eq!(agreement(&Analysis::default(), [].into_iter()).unwrap(), None);
    }
}
