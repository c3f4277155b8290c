// SPDX-License-Identifier: MIT
//! Best-effort policies: in which order ready clients without (remaining) reservation are served.
//!
//! The scheduler knows no policy: it asks for a [`Key`] (smaller first, after SYNC priority, which is strict everywhere
//! as the Sync extension demands) and tells what was served. Each policy's file opens with its rule and where it comes
//! from.

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
use alloc::vec::Vec;
use core::fmt::Debug;

named! {
    /// The policies by name; the numbers are those of the XQOS extension.
    #[derive(Default)]
    #[non_exhaustive]
    PolicyKind {
        /// Decide nothing, observe only.
        #[default]
        Stock "stock",
        /// The scheduler of 1987.
        Classic "classic",
        /// The scheduler of 2000, as its text describes it.
        Smart "smart",
        /// Virtual time: who has paid least for server time runs.
        Fair "fair",
        /// Fixed priorities.
        Fixed "fixed",
    }
}

impl PolicyKind {
    /// The code in the extension's protocol.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The policy of that code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    pub(crate) fn build(self, parameters: &Parameters) -> Box<dyn Policy> {
        match self {
            PolicyKind::Stock => Box::new(stock::Stock),
            PolicyKind::Classic => Box::new(classic::Classic::new()),
            PolicyKind::Smart => Box::new(smart::Smart::new(parameters)),
            PolicyKind::Fair => Box::new(fair::Fair::new(parameters)),
            PolicyKind::Fixed => Box::new(fixed::Fixed::new(parameters)),
        }
    }
}

/// A place in the best-effort queue: smaller is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub u64, pub u64);

/// What a policy may know of a client besides its behaviour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The socket's descriptor: the order of the 1987 scheduler.
    pub(crate) descriptor: u32,
    /// Hundredths.
    pub(crate) weight: u32,
    pub(crate) fixed_priority: i32,
    pub(crate) sync_priority: i32,
    pub(crate) group: GroupId,
    /// Hundredths; 0: that of its heaviest client.
    pub(crate) group_weight: u32,
}

impl Facts {
    /// Of a client that has just connected.
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

/// How long the picked client may go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowance {
    pub(crate) slice_ns: u64,
    /// 0: not limited.
    pub(crate) requests: u32,
    /// 0: not limited.
    pub(crate) bytes: u32,
}

/// How a running client stands against arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defence {
    pub(crate) key: i64,
    /// The key grows by this many hundredths of a nanosecond for each nanosecond served.
    pub(crate) growth: u32,
    /// An arrival must be better by this much.
    pub(crate) margin: i64,
}

/// What was served to whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) length_ns: u64,
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
}

pub(crate) trait Policy: Debug + Send {
    fn kind(&self) -> PolicyKind;

    /// False: the server's own scheduler chooses among best-effort clients.
    fn decides(&self) -> bool {
        true
    }

    /// Whether clients that work for others go first ([`crate::desktop`]).
    fn favours_desktop(&self) -> bool {
        false
    }

    /// Whether the choice is the server's own without contention ([`crate::Contention`]).
    fn needs_contention(&self) -> bool {
        false
    }

    /// A client connected, or the policy was set while it is connected. Memory is taken here and nowhere else.
    fn join(&mut self, client: ClientId, facts: &Facts);

    /// A client has gone.
    fn left(&mut self, _client: ClientId) {}

    /// Weight, priority, SYNC priority or group changed.
    fn changed(&mut self, _client: ClientId, _facts: &Facts) {}

    /// An idle client has a request; it was idle for `idle_ns`.
    fn ready(&mut self, _client: ClientId, _idle_ns: u64) {}

    /// User input or an Expose was delivered to the client.
    fn noticed(&mut self, _client: ClientId, _is_input: bool) {}

    fn key(&self, client: ClientId) -> Key;

    /// Number of the group in which the client waits, below the number of clients.
    fn group(&self, _client: ClientId) -> usize {
        0
    }

    /// How many clients that group has; `None`: all.
    fn members(&self, _client: ClientId) -> Option<usize> {
        None
    }

    /// The place of a group among the groups, given the first of its clients that wait.
    fn group_key(&self, _first: ClientId) -> Key {
        Key::default()
    }

    /// The client will run now; `alone`: no other client is ready.
    fn picked(&mut self, client: ClientId, alone: bool, now: Time) -> Allowance;

    fn served(&mut self, client: ClientId, served: &Served);

    /// The key with which an arrival of this idle client would contest a running slice; `None`: it waits for its end.
    fn challenge(&self, _client: ClientId) -> Option<i64> {
        None
    }

    /// The key of the running client in such a contest.
    fn defence(&self, _client: ClientId) -> Defence {
        Defence::default()
    }

    /// Writes down what the policy knows of itself and of these clients, all that are connected.
    fn save(&self, _clients: &[ClientId], _out: &mut Vec<u64>) {}

    /// Reads it back, after all of them have joined; `None` where the words cannot be that.
    fn load(&mut self, _clients: &[ClientId], _words: &mut Words) -> Option<()> {
        Some(())
    }

    /// Writes down what concerns groups; read back after the clients are in theirs.
    fn save_groups(&self, _clients: &[ClientId], _out: &mut Vec<u64>) {}

    /// Reads it back.
    fn load_groups(&mut self, _clients: &[ClientId], _words: &mut Words) -> Option<()> {
        Some(())
    }
}
