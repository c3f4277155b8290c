//! What a connection was doing: the states that colour a plot.
//!
//! | state | when, for a direction |
//! |---|---|
//! | blocked by the receiver | it did not read |
//! | blocked by the network | data were in the queue before the slowest link, or as much was on the way as TCP allows |
//! | waiting for a reply | the client waited, and nothing blocked this direction |
//! | idle | anything else |
//!
//! So the states of a direction never overlap, and together they are its time. A message belongs to the state that ends
//! with it: a reply to the wait for it, a request to whatever kept it from being sent.

use super::track::Window;
use crate::analysis::spans::{Span, minus, union};
use crate::analysis::states::States;
use crate::analysis::transmitter::Transmitter;

/// A state of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    Network,
    Receiver,
    Waiting,
}

impl State {
    pub const ALL: [State; 4] = [State::Idle, State::Network, State::Receiver, State::Waiting];

    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Network => "blocked by the network",
            State::Receiver => "blocked by the receiver",
            State::Waiting => "waiting for a reply",
        }
    }
}

/// The stretches of one direction that are not idle, in order; times since the capture's beginning.
#[derive(Clone, Debug, Default)]
pub struct Stretches {
    pub network: Vec<Span>,
    pub receiver: Vec<Span>,
    pub waiting: Vec<Span>,
}

/// Both directions of a connection.
#[derive(Clone, Debug, Default)]
pub struct Doing {
    /// By [`Direction`](crate::observe::Direction).
    pub directions: [Stretches; 2],
}

impl Doing {
    pub fn of(states: &States, waits: &[Span], began_ns: u64, window: &Window) -> Doing {
        let waits = since(waits, began_ns, window);
        let stretches = |transmitter: &Transmitter| {
            let receiver = since(transmitter.receiver.list(), began_ns, window);
            let blocked = union(&[transmitter.link.list(), transmitter.window.list()]);
            let network = minus(&since(&blocked, began_ns, window), &receiver);
            let waiting = minus(&minus(&waits, &receiver), &network);
            Stretches { network, receiver, waiting }
        };
        Doing { directions: [&states.requests, &states.replies].map(stretches) }
    }
}

impl Stretches {
    /// What was done until then.
    pub fn until(&self, at_ns: u64) -> State {
        let lists =
            [(State::Receiver, &self.receiver), (State::Network, &self.network), (State::Waiting, &self.waiting)];
        let found = lists.into_iter().find(|(_, list)| {
            let next = list.partition_point(|span| span.to_ns < at_ns);
            list.get(next).is_some_and(|span| span.from_ns < at_ns)
        });
        found.map_or(State::Idle, |(state, _)| state)
    }

    pub fn list(&self, state: State) -> &[Span] {
        match state {
            State::Idle => &[],
            State::Network => &self.network,
            State::Receiver => &self.receiver,
            State::Waiting => &self.waiting,
        }
    }
}

/// Times since the beginning, of the part that is kept.
fn since(list: &[Span], began_ns: u64, window: &Window) -> Vec<Span> {
    let kept = list.iter().filter_map(|span| {
        let [from_ns, to_ns] = [span.from_ns, span.to_ns].map(|at_ns| at_ns.saturating_sub(began_ns));
        let (from_ns, to_ns) = (from_ns.max(window.from_ns), to_ns.min(window.to_ns));
        (from_ns < to_ns).then_some(Span { from_ns, to_ns })
    });
    kept.collect()
}
