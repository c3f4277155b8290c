// SPDX-License-Identifier: MIT
//! Scenarios: clients and their habits, written by hand, as files in `scenarios/`.
//!
//! A length is a number of microseconds, or the name of a cost. Costs have values in the file, and whoever runs the
//! scenario may give others in their place: what was measured on a real server, say. So a scenario says how clients
//! behave, and the machine says how long their requests are.
//!
//! | key of a `[[client]]` | what |
//! |---|---|
//! | `name`, `count` | how the outcome calls them; how many, 1 if not given |
//! | `behaviour` | `busy`: asks without end and waits for nothing; `waits`: rests when its burst is done, then asks again; `periodic`: asks at intervals, however far behind the server is |
//! | `rest_us`, `every_us` | of `waits` and of `periodic` |
//! | `jitter_us` | up to so much is added to each rest or interval |
//! | `way_us` | what a burst takes outside the server: the client's own work, the way there and back |
//! | `burst` | what it asks for at once: `requests` (1 if not given) of `each_us`, with `bytes` (16) each |
//! | `input` | it asks because of a key or a motion, which the server has to see first |
//! | `measured` | its times are kept |
//! | `reservation` | what it asks for under `cbs`: `budget_us` in `period_us`, `hard` or not |
//! | `from_ms`, `until_ms` | when it is there |
//!
//! What rules set is no part of a file: [`Scenario::with`] gives it to clients by their name.
//!
//! The file is checked as it is read: what cannot be meant is an error that names the line.

mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::BEGAN;

use crate::generator::Habit;
use crate::server::Looks;
use std::collections::BTreeMap;
use std::fmt;
use xqos_core::{GroupId, Parameters, PolicyKind, Reservation};

/// Lengths by name, in microseconds.
pub type Costs = BTreeMap<String, f64>;

/// The files of `scenarios/`, as name and text.
pub const ALL: [(&str, &str); 6] = [
    ("interactive", include_str!("../scenarios/interactive.toml")),
    ("animation", include_str!("../scenarios/animation.toml")),
    ("ocbench", include_str!("../scenarios/ocbench.toml")),
    ("hard", include_str!("../scenarios/hard.toml")),
    ("ten-thousand-clients", include_str!("../scenarios/ten-thousand-clients.toml")),
    ("sixty-four-players", include_str!("../scenarios/sixty-four-players.toml")),
];

/// A scenario of [`ALL`], with these costs in place of its own.
pub fn named(name: &str, costs: &Costs) -> Result<Scenario, Mistake> {
    match ALL.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Scenario::read(&format!("{name}.toml"), text, costs),
        None => {
            let known = ALL.map(|(known, _)| known).join(", ");
            let what = format!("there is no such scenario; there are {known}");
            Err(Mistake { file: format!("{name}.toml"), line: 0, what })
        }
    }
}

/// What is wrong with a file, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: String,
    /// 0: the file as a whole.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.file, self.what),
            line => write!(out, "{}:{line}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for Mistake {}

/// A policy, and whether the reservations of the scenario are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Regime {
    Policy(PolicyKind),
    /// Policy `fair` and the reservations.
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

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub title: String,
    pub about: String,
    /// Under which it makes sense.
    pub regimes: Vec<Regime>,
    pub(crate) duration_ns: u64,
    /// What is asked for before is not counted.
    pub(crate) warm_up_ns: u64,
    pub(crate) looks: Looks,
    pub(crate) parameters: Parameters,
    pub(crate) groups: Vec<Group>,
}

/// What is set for each client of a name, beside what the scenario says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// For the policy `fair`, hundredths.
    pub weight: Option<u32>,
    /// A group, and the most that all who are in it get together.
    pub cap: Option<(GroupId, Ppm)>,
}

/// Millionths of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ppm(pub u32);

/// Clients with the same habit.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) is_measured: bool,
    pub(crate) reservation: Option<Reservation>,
    pub(crate) settings: Settings,
    /// Its seed is the file's; each client adds its place.
    pub(crate) habit: Habit,
}

impl Scenario {
    /// Reads a file; `file` is what errors call it.
    pub fn read(file: &str, text: &str, costs: &Costs) -> Result<Scenario, Mistake> {
        file::read(file, text, costs)
    }

    /// The same with these settings for the clients of a name; a name that nobody has changes nothing.
    pub fn with(mut self, name: &str, settings: Settings) -> Scenario {
        self.groups.iter_mut().filter(|group| group.name == name).for_each(|group| group.settings = settings);
        self
    }

    /// How many clients it has.
    pub fn clients(&self) -> u32 {
        self.groups.iter().map(|group| group.count).sum()
    }

    pub fn seconds(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}
