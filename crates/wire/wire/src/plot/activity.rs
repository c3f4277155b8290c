// SPDX-License-Identifier: MIT
//! The state of a connection over time, which colours a plot.
//!
//! | state | condition, per direction |
//! |---|---|
//! | blocked by the receiver | the receiver did not read |
//! | blocked by the network | data were queued at the slowest link, or TCP's window was full |
//! | waiting for a reply | the client waited, and nothing blocked this direction |
//! | idle | otherwise |
//!
//! States of a direction never overlap, and together they cover its time. A message belongs to the state that it ends:
//! a reply to the wait for this reply, a request to the state that delayed it.

use super::track::Window;
use crate::analysis::spans::{Span, minus, union, within};
use crate::analysis::states::States;
use crate::analysis::transmitter::Transmitter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Idle,
    Network,
    Receiver,
    Waiting,
}

impl Activity {
    pub fn name(self) -> &'static str {
        ["idle", "blocked by the network", "blocked by the receiver", "waiting for a reply"][self as usize]
    }
}

/// Spans in one direction that are not idle, in order; times since the start of the capture.
#[derive(Clone, Debug, Default)]
pub struct DirectionActivity {
    pub network: Vec<Span>,
    pub receiver: Vec<Span>,
    pub waiting: Vec<Span>,
}

/// The activity of a connection, indexed by [`Direction`](crate::observe::Direction).
pub fn of_connection(states: &States, waits: &[Span], began_ns: u64, window: &Window) -> [DirectionActivity; 2] {
    let waits = since(waits, began_ns, window);
    let activity = |transmitter: &Transmitter| {
        let receiver = since(transmitter.blocked.receiver.list(), began_ns, window);
        let blocked = union(&[transmitter.blocked.link.list(), transmitter.blocked.window.list()]);
        let network = minus(&since(&blocked, began_ns, window), &receiver);
        let waiting = minus(&minus(&waits, &receiver), &network);
        DirectionActivity { network, receiver, waiting }
    };
    [&states.requests, &states.replies].map(activity)
}

impl DirectionActivity {
    /// The state just before this time.
    pub fn state_before(&self, at_ns: u64) -> Activity {
        use Activity::{Network, Receiver, Waiting};
        let lists = [(Receiver, &self.receiver), (Network, &self.network), (Waiting, &self.waiting)];
        let found = lists.into_iter().find(|(_, list)| {
            let next = list.partition_point(|span| span.to_ns < at_ns);
            list.get(next).is_some_and(|span| span.from_ns < at_ns)
        });
        found.map_or(Activity::Idle, |(state, _)| state)
    }

    pub fn list(&self, state: Activity) -> &[Span] {
        match state {
            Activity::Idle => &[],
            Activity::Network => &self.network,
            Activity::Receiver => &self.receiver,
            Activity::Waiting => &self.waiting,
        }
    }
}

/// Converts to times since the start of the capture, cut to the window.
fn since(list: &[Span], began_ns: u64, window: &Window) -> Vec<Span> {
    let at = |at_ns: u64| at_ns.saturating_sub(began_ns);
    within(list.iter().map(|span| Span { from_ns: at(span.from_ns), to_ns: at(span.to_ns) }), window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(u64, u64)]) -> Vec<Span> {
        list.iter().map(|&(from_ns, to_ns)| Span { from_ns, to_ns }).collect()
    }

    #[test]
    fn a_message_belongs_to_the_state_that_ends_with_it() {
        let (network, receiver) = (spans(&[(10, 20)]), spans(&[(30, 40)]));
        let activity = DirectionActivity { network, receiver, waiting: spans(&[(0, 10), (50, 60)]) };
        let states: Vec<Activity> = [0, 1, 10, 11, 20, 21, 35, 50, 60, 61].map(|at| activity.state_before(at)).into();
        use Activity::{Idle, Network, Receiver, Waiting};
        assert_eq!(states, [Idle, Waiting, Waiting, Network, Network, Idle, Receiver, Idle, Waiting, Idle]);
    }

    #[test]
    fn blocked_time_is_not_waiting() {
        let mut states = States::default();
        states.requests.blocked.link.add(1_100, 1_200);
        states.requests.blocked.window.add(1_150, 1_300);
        states.requests.blocked.receiver.add(1_250, 1_400);
        let window = Window { from_ns: 50, to_ns: 450 };
        let [requests, replies] = of_connection(&states, &spans(&[(1_000, 1_500)]), 1_000, &window);
        assert_eq!(requests.network, spans(&[(100, 250)]));
        assert_eq!(requests.receiver, spans(&[(250, 400)]));
        assert_eq!(requests.waiting, spans(&[(50, 100), (400, 450)]));
        assert_eq!(replies.waiting, spans(&[(50, 450)]));
    }
}
