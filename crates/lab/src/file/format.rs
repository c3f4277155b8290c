// SPDX-License-Identifier: MIT
//! The format of an experiment file. docs/experiments/format.md explains each field with an example.

use indexmap::IndexMap;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// A complete file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    /// One line for the list of experiments.
    pub about: String,
    pub title: String,
    pub question: String,
    pub answer: Option<Answer>,
    #[serde(default)]
    pub server: IndexMap<String, ServerText>,
    /// Default setting of all cases; axes override it.
    #[serde(default)]
    pub setting: Setting,
    #[serde(default)]
    pub axis: IndexMap<String, Axis>,
    #[serde(default)]
    pub order: Order,
    #[serde(default)]
    pub table: Vec<Table>,
    #[serde(default)]
    pub verdict: Vec<Verdict>,
    #[serde(default)]
    pub chart: Vec<Chart>,
}

/// A sentence that contains figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub text: String,
    /// Value and unit for each name in braces in the text.
    pub figures: BTreeMap<String, (String, String)>,
}

/// The values of an axis: plain names that other texts use in braces, or names with settings.
#[derive(Clone, Debug)]
pub(super) struct Axis(pub IndexMap<String, Setting>);

/// Options for starting a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerText {
    pub kind: Option<String>,
    pub xqos: bool,
    /// `dix` or `libc`.
    pub host: Option<String>,
    pub clients: Option<u32>,
    pub screen: Option<(u32, u32)>,
    /// Maximum utilization by reservations, as a fraction.
    pub reservable: Option<f64>,
    pub options: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// The setting of a case.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Setting {
            $($(#[$doc])* pub $name: Option<$kind>,)*
        }

        impl Setting {
            /// Overrides fields with those that `other` sets.
            pub fn with(&self, other: &Setting) -> Setting {
                Setting { $($name: other.$name.clone().or_else(|| self.$name.clone()),)* }
            }
        }
    };
}

settings! {
    /// Shown in tables in place of the value's name.
    title: String,
    /// A name from `[server]`, or `stock` or `xqos`, which are Xvfb.
    server: String,
    policy: String,
    /// The maximum slice; with `smart` also the timer interval.
    slice: String,
    /// The time after which a long request lets other clients in: `on` (the default), `off`, or a time.
    cut: String,
    /// The limit to which `smart` lets slices grow if a client runs alone.
    maximum_slice: String,
    /// Grouping of clients: `none`, `app` (the default) or `user`.
    groups: String,
    measure: String,
    load: Loads,
    /// Number of clients of each load; overrides the load's own.
    clients: usize,
    /// Interval of the light client's turns.
    period: String,
    /// SYNC priority of the light client.
    priority: i32,
    /// Nice values of the server and of the window manager in a drag, such as `-1/1`.
    nice: String,
    /// Budget and period of the measuring client; with `auto`, they are found by measurement.
    reserve: String,
    /// Budget and period of processor time for the measuring client. Meanwhile the server has a raised priority.
    processor: String,
    /// `xqos boost` raises the server's priority while the server works for a client with a reservation.
    loan: bool,
    /// The server's counters are not queried, because a query requires a second client.
    unasked: bool,
    /// Level of a trace that is read during the measurement.
    trace: String,
    time: String,
    time_quick: String,
    warm_up: String,
    /// Window and compositing managers: `openbox`, `picom` or `picom_gl` with openbox, `xfwm4`, or `none`.
    managers: String,
    /// Programs of a desktop: `player`, `terminal`, `page`, `animation`, `list`.
    desk: Vec<String>,
    /// Number of motions, frames or runs, instead of a duration.
    count: usize,
    count_quick: usize,
    /// The load starts after this many frames or activations; after a quarter of them in a quick run.
    before: usize,
    /// Number of frames or activations after the load.
    after: usize,
    /// Maximum time for which pacing delays a client that exposes others.
    pacing: String,
    /// Maximum time for which `xqos boost` boosts an exposed client.
    boost: String,
    /// The server and all programs run on the first processor, the measuring thread on the last one.
    one_processor: bool,
    /// mpv may drop late frames.
    framedrop: bool,
    /// The measured program, and the names of the figures that it prints.
    command: Vec<String>,
    prints: Vec<String>,
    /// Measured only in the first turn.
    once: bool,
    /// This many consecutive cases with the same number are measured at the same time, each on a server of its own.
    together: usize,
    /// Hidden in tables and charts.
    hidden: bool,
    /// Also measured in a quick run.
    quick: bool,
    /// Figures of papers, by their names in expressions.
    published: BTreeMap<String, String>,
}

/// One load, or several.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads(pub Vec<LoadText>);

/// Clients that keep the server busy. Exactly one of the first six fields is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LoadText {
    pub x11perf: Option<String>,
    /// Requests that are sent without a pause: requests of this length, `cheap` ones, or those of a plaid.
    pub flood: Option<String>,
    /// Requests of this kind that take milliseconds, one after another.
    pub long: Option<String>,
    /// Connected clients that send nothing.
    pub silent: bool,
    /// Percentage of the time for which the load keeps the server busy.
    pub fill: Option<String>,
    pub command: Vec<String>,
    #[serde(default = "one", deserialize_with = "count")]
    pub clients: String,
    /// Name in expressions; the kind of load by default.
    pub name: Option<String>,
    pub side_by_side: bool,
    /// Duration of one run of x11perf. Shorter runs give a finer count.
    pub run: Option<String>,
    /// Reservation of each of its clients.
    pub reserve: Option<String>,
    pub weight: Option<f64>,
    /// SYNC priority of each of its clients.
    pub priority: Option<i32>,
    /// Group of all its clients, with the group's settings.
    pub group: Option<String>,
    pub cap: Option<f64>,
    pub group_reserve: Option<String>,
}

/// The order of measurements.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Order {
    /// Axes outside the turns: all turns of one value run before the next value, with new servers.
    pub outside: Vec<String>,
    /// When new servers start: each `turn`, each `case` or every `12 turns`. `server`: each turn, one server at a time.
    pub new_servers: Option<String>,
    /// Excluded cases. A case is excluded if one of these entries lists all its values.
    pub without: Vec<BTreeMap<String, Vec<String>>>,
    /// Loads continue from turn to turn, but are suspended while another case is measured.
    pub keep_loads: bool,
    /// Number of turns for each requested trial.
    pub turns: Option<u32>,
    /// Total number of turns, independent of the requested trials.
    pub fixed_turns: Option<u32>,
    pub most_turns: Option<u32>,
    /// If the machine's host takes more than this fraction of the processor time, the case is measured again, up to
    /// three times.
    pub most_steal: Option<f64>,
}

/// A table with a row for each value of some axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Documents refer to the table as `EXPERIMENT.KEY`, with the values of `each` in brackets.
    #[serde(default)]
    pub key: String,
    pub title: String,
    /// One table for each value of these axes.
    #[serde(default)]
    pub each: Vec<String>,
    pub rows: Vec<String>,
    /// Restricts axes to these values.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    pub columns: Vec<Column>,
    /// Combines the samples of all turns. Otherwise each turn gives a value, and their median is shown.
    #[serde(default)]
    pub pooled: bool,
}

/// Heading, expression, and format: `median`, `spread`, `percent`, `least` or `greatest`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Column(pub String, pub String, #[serde(default)] pub Option<String>);

/// A value with or without a goal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    /// Key that documents and lab/goals.toml use after the experiment's name and a dot. An axis in braces stands for
    /// the name of its value.
    pub key: String,
    pub what: String,
    #[serde(default)]
    pub unit: String,
    pub value: String,
    #[serde(default)]
    pub each: Vec<String>,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    /// Reduces all values of these axes to one; see `by`.
    #[serde(default)]
    pub across: Vec<String>,
    /// One of [`BY`](super::study::BY).
    pub by: Option<String>,
    /// Combines the samples of all turns. Otherwise each turn gives a value, and their median is compared.
    #[serde(default)]
    pub pooled: bool,
    pub goal: Option<crate::study::Goal>,
    /// Key of its goal in lab/goals.toml, if it differs from `key`.
    pub goal_of: Option<String>,
}

/// A chart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chart {
    pub title: String,
    /// For lines and scatters: draws one chart for each value of these axes.
    #[serde(default)]
    pub each: Vec<String>,
    /// `ranges`, `lines`, `scatter` or `lanes`.
    pub kind: String,
    /// A line, a range or a panel for each value of this axis.
    pub of: String,
    /// Axes by which ranges are grouped.
    #[serde(default)]
    pub groups: Vec<String>,
    /// For lines, an axis of numbers or samples of the first turn; for scatters, samples.
    pub x: Option<String>,
    /// Samples; for lines over an axis, an expression.
    pub y: String,
    #[serde(default)]
    pub x_label: String,
    #[serde(default)]
    pub y_label: String,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub log: String,
    /// For lines over an axis: the paper's values.
    pub paper: Option<String>,
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Axis, D::Error> {
        let list = |names: Vec<String>| Axis(names.into_iter().map(|name| (name, Setting::default())).collect());
        let expected = "a list of names, or a table of names with what each means";
        from.deserialize_any(ListOrTable { expected, list, table: Axis })
    }
}

impl<'de> Deserialize<'de> for Loads {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Loads, D::Error> {
        let expected = "a load such as { x11perf = \"noop\", clients = 12 }, or a list of them";
        from.deserialize_any(ListOrTable { expected, list: Loads, table: |load| Loads(vec![load]) })
    }
}

/// Makes a value of a list or of a table. Unlike those of an untagged enum, its errors name the mistake and its place.
struct ListOrTable<L, T, V> {
    expected: &'static str,
    list: fn(L) -> V,
    table: fn(T) -> V,
}

impl<'de, L: Deserialize<'de>, T: Deserialize<'de>, V> Visitor<'de> for ListOrTable<L, T, V> {
    type Value = V;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V, A::Error> {
        L::deserialize(SeqAccessDeserializer::new(list)).map(self.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<V, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(self.table)
    }
}

fn one() -> String {
    "1".to_owned()
}

/// Accepts a number, or a text that expands to a number.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::String(text) => Ok(text),
        _ => Err(D::Error::custom("a count is a number, or an axis in braces such as \"{clients}\"")),
    }
}
