// SPDX-License-Identifier: MIT
//! Best-effort policies: the order in which ready clients without reservation budget are served.
//!
//! The scheduler does not know the policies. It asks the current one for a [`QueueKey`] (smaller is served first) and
//! reports each service. SYNC priority comes before the key under every policy, as the Sync extension requires. Each
//! policy's file begins with its rule and its source.

mod accounts;
mod classic;
mod fair;
mod fixed;
mod smart;
mod stock;

pub(crate) use fair::{CREDIT_NS, price};

use crate::words::Words;
use crate::{ClientId, GroupId, Parameters, Time};
use alloc::boxed::Box;
use core::fmt::Debug;

named! {
    /// The policies with their names. Their order determines the codes in the XQOS extension.
    #[derive(Default)]
    #[non_exhaustive]
    PolicyKind {
        /// Decide nothing, only observe.
        #[default]
        Stock "stock",
        /// The scheduler of 1987.
        Classic "classic",
        /// The scheduler of 2000, as its paper describes it.
        Smart "smart",
        /// Virtual time: the client that has paid least for server time runs.
        Fair "fair",
        /// Fixed priorities.
        Fixed "fixed",
        /// The scheduler of 2000 without bounds on waits.
        SmartStrict "smart-strict",
    }
}

impl PolicyKind {
    pub(crate) fn build(self, parameters: &Parameters) -> Box<dyn Policy> {
        match self {
            PolicyKind::Stock => Box::new(stock::Stock),
            PolicyKind::Classic => Box::new(classic::Classic::default()),
            PolicyKind::Smart | PolicyKind::SmartStrict => Box::new(smart::Smart::new(self, parameters)),
            PolicyKind::Fair => Box::new(fair::Fair::new(parameters)),
            PolicyKind::Fixed => Box::new(fixed::Fixed::new(parameters)),
        }
    }
}

/// A position in the best-effort queue; smaller is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey(pub u64, pub u64);

/// The properties of a client that a policy takes into account, apart from the client's behaviour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The descriptor of the socket, which determines the order under `classic`.
    pub(crate) descriptor: u32,
    /// The weight in hundredths.
    pub(crate) weight: u32,
    pub(crate) fixed_priority: i32,
    pub(crate) sync_priority: i32,
    pub(crate) group: GroupId,
    /// In hundredths; 0: the weight of its heaviest client.
    pub(crate) group_weight: u32,
}

impl Facts {
    /// The facts about a client that has just connected.
    pub(crate) const fn new(descriptor: u32) -> Facts {
        let (weight, group_weight) = (100, 0);
        Facts { descriptor, weight, fixed_priority: 0, sync_priority: 0, group: GroupId::NONE, group_weight }
    }
}

impl Default for Facts {
    fn default() -> Facts {
        Facts::new(0)
    }
}

/// The limits of the chosen client's slice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) slice_ns: u64,
    /// 0: no limit.
    pub(crate) requests: u32,
    /// 0: no limit.
    pub(crate) bytes: u32,
}

/// The limits that an arrival must beat to end the slice of the running client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defence {
    pub(crate) key: i64,
    /// For each nanosecond served, the key grows by this many hundredths of a nanosecond.
    pub(crate) growth: u32,
    /// An arrival must be better by more than this.
    pub(crate) margin: i64,
}

/// The service that a client received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) length_ns: u64,
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
}

pub(crate) trait Policy: Debug + Send {
    fn kind(&self) -> PolicyKind;

    /// False if the server's own scheduler chooses among best-effort clients.
    fn decides(&self) -> bool {
        true
    }

    /// True if compositors and window managers are served first ([`crate::desktop`]).
    fn favours_desktop(&self) -> bool {
        false
    }

    /// True if the server chooses while there is no contention ([`crate::Contention`]).
    fn needs_contention(&self) -> bool {
        false
    }

    /// A client connected, or the policy was set while it was connected. Only this call allocates memory.
    fn join(&mut self, client: ClientId, facts: &Facts);

    fn left(&mut self, _client: ClientId) {}

    /// Weight, priority, SYNC priority or group changed.
    fn changed(&mut self, _client: ClientId, _facts: &Facts) {}

    /// An idle client became ready after `idle_ns`.
    fn ready(&mut self, _client: ClientId, _idle_ns: u64) {}

    /// User input or an Expose was delivered to the client.
    fn noticed(&mut self, _client: ClientId, _is_input: bool) {}

    /// The client is preferred because of input or an Expose, until it is picked.
    fn has_head_start(&self, _client: ClientId) -> bool {
        false
    }

    fn key(&self, client: ClientId) -> QueueKey;

    /// The index of the group in which the client waits; indices are smaller than the number of clients.
    fn group(&self, _client: ClientId) -> usize {
        0
    }

    /// The number of clients in that group; `None`: all clients are in one group.
    fn members(&self, _client: ClientId) -> Option<usize> {
        None
    }

    /// The position of a group among the groups; `first` is the first of its waiting clients.
    fn group_key(&self, _first: ClientId) -> QueueKey {
        QueueKey::default()
    }

    /// The client is about to run; `ready`: the number of ready clients, including this one.
    fn picked(&mut self, client: ClientId, ready: usize, now: Time) -> Allowance;

    fn served(&mut self, client: ClientId, served: &Served);

    /// The client was served for this time while the server's own order was used. Virtual time advances by all of it:
    /// service without contention does not count against a client.
    fn served_freely(&mut self, _client: ClientId, _ns: u64) {}

    /// The key with which an arrival of this idle client contests a running slice; `None`: it waits for the end of the
    /// slice.
    fn challenge(&self, _client: ClientId) -> Option<i64> {
        None
    }

    /// The key of the running client in a contest with an arrival.
    fn defence(&self, _client: ClientId) -> Defence {
        Defence::default()
    }

    /// Writes or restores the state of the policy and of all connected clients. All clients must have joined. `None`:
    /// the words are not a valid state.
    fn carry(&mut self, _clients: &[ClientId], _words: &mut Words<'_>) -> Option<()> {
        Some(())
    }

    /// Writes or restores the state of groups, once the clients are in their groups.
    fn carry_groups(&mut self, _clients: &[ClientId], _words: &mut Words<'_>) -> Option<()> {
        Some(())
    }
}
