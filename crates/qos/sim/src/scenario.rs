// SPDX-License-Identifier: MIT
//! Scenarios: files in `scenarios/` that describe clients and their behaviour.
//!
//! A duration is a number of microseconds or the name of a cost. Costs have values in the file, which the caller can
//! replace, for example with measured values. A scenario thus describes behaviour, and the machine determines the
//! length of requests.
//!
//! | key of a `[[client]]` | meaning |
//! |---|---|
//! | `name`, `count` | name in the results; number of clients, 1 by default |
//! | `behaviour` | `busy`: sends requests without pause; `waits`: rests after a burst; `periodic`: sends at intervals |
//! | `rest_us`, `every_us` | rest of `waits`; interval of `periodic` |
//! | `jitter_us` | maximum random time added to each rest or interval |
//! | `way_us` | time of a burst outside the server: the client's own work and the transport in both directions |
//! | `burst` | requests sent together: `requests` (default 1) of `each_us`, with `bytes` (default 16) each |
//! | `input` | the burst responds to a key or motion, which the server must see first |
//! | `measured` | response times are collected |
//! | `reservation` | requested under `cbs`: `budget_us` in `period_us`, `hard` or not |
//! | `from_ms`, `until_ms` | time during which the client exists |
//!
//! Settings such as weights and caps are not part of a file: [`Scenario::with`] applies them to clients by name.
//!
//! A file is validated while it is read. An error names the line and the remedy.

mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::BEGAN;

use crate::generator::Habit;
use crate::server::{ClientSettings, Polling};
use std::collections::BTreeMap;
use xqos_core::{Parameters, PolicyKind, Reservation};
use xqos_text::mistake::Mistake;

/// Durations by name, in microseconds.
pub type Costs = BTreeMap<String, f64>;

/// The files of `scenarios/`: name and text.
pub const ALL: [(&str, &str); 6] = [
    ("interactive", include_str!("../scenarios/interactive.toml")),
    ("animation", include_str!("../scenarios/animation.toml")),
    ("ocbench", include_str!("../scenarios/ocbench.toml")),
    ("hard", include_str!("../scenarios/hard.toml")),
    ("ten-thousand-clients", include_str!("../scenarios/ten-thousand-clients.toml")),
    ("sixty-four-players", include_str!("../scenarios/sixty-four-players.toml")),
];

/// Reads a scenario of [`ALL`]; `costs` replace those in its file.
pub fn named(name: &str, costs: &Costs) -> Result<Scenario, Mistake> {
    match ALL.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Scenario::read(&format!("{name}.toml"), text, costs),
        None => {
            let known = ALL.map(|(known, _)| known).join(", ");
            Err(Mistake::in_file(&format!("{name}.toml"), format!("there is no such scenario: choose among {known}")))
        }
    }
}

/// A policy, and whether the scenario's reservations are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regime {
    Policy(PolicyKind),
    /// Policy `fair` with the reservations.
    Cbs,
}

impl Regime {
    pub const ALL: [Regime; 6] = [
        Regime::Policy(PolicyKind::Classic),
        Regime::Policy(PolicyKind::Smart),
        Regime::Policy(PolicyKind::Stock),
        Regime::Policy(PolicyKind::Fair),
        Regime::Policy(PolicyKind::Fixed),
        Regime::Cbs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Regime::Policy(kind) => kind.name(),
            Regime::Cbs => "cbs",
        }
    }

    pub fn from_name(name: &str) -> Option<Regime> {
        Regime::ALL.into_iter().find(|regime| regime.name() == name)
    }

    pub(crate) fn policy(self) -> PolicyKind {
        match self {
            Regime::Policy(kind) => kind,
            Regime::Cbs => PolicyKind::Fair,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub title: String,
    pub about: String,
    /// The regimes under which the scenario is meaningful.
    pub regimes: Vec<Regime>,
    pub(crate) duration_ns: u64,
    /// Bursts that start earlier are not counted.
    pub(crate) warm_up_ns: u64,
    pub(crate) polling: Polling,
    pub(crate) parameters: Parameters,
    pub(crate) groups: Vec<ClientGroup>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientGroup {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) is_measured: bool,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) settings: ClientSettings,
    /// The seed is that of the file; the simulation derives a seed for each client from it.
    pub(crate) habit: Habit,
}

impl Scenario {
    /// Applies `settings` to the clients called `name`. An unknown name has no effect.
    pub fn with(mut self, name: &str, settings: ClientSettings) -> Scenario {
        self.groups.iter_mut().filter(|group| group.name == name).for_each(|group| group.settings = settings);
        self
    }

    pub fn clients(&self) -> u32 {
        self.groups.iter().map(|group| group.count).sum()
    }
}
