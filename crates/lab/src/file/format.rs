// SPDX-License-Identifier: MIT
//! What the file of an experiment may say, word for word: docs/experiments/format.md explains each with an example.

use indexmap::IndexMap;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

/// A whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    /// One line, for the list of experiments.
    pub about: String,
    pub title: String,
    pub question: String,
    #[serde(default)]
    pub answer: Option<Answer>,
    #[serde(default)]
    pub server: IndexMap<String, ServerText>,
    /// What holds in each case, unless an axis says otherwise.
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

/// A sentence with figures in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub text: String,
    /// By the names that stand in braces in the text: the value, and its unit.
    pub figures: BTreeMap<String, (String, String)>,
}

/// The values of an axis: names alone, which stand in braces in other texts, or what each name means.
#[derive(Clone, Debug)]
pub(super) struct Axis(pub IndexMap<String, Setting>);

/// How a server is started.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerText {
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub xqos: bool,
    /// dix or libc.
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub clients: Option<u32>,
    #[serde(default)]
    pub screen: Option<(u32, u32)>,
    /// The most that may be reserved, of 1.
    #[serde(default)]
    pub reservable: Option<f64>,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// What holds in a case.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Setting {
            $($(#[$doc])* #[serde(default)] pub $name: Option<$kind>,)*
        }

        impl Setting {
            /// With what `other` says, where it says something.
            pub fn with(&self, other: &Setting) -> Setting {
                Setting { $($name: other.$name.clone().or_else(|| self.$name.clone()),)* }
            }
        }
    };
}

settings! {
    /// In tables, instead of the value's name.
    title: String,
    /// One of `[server]`, or `stock` or `xqos`, two Xvfb.
    server: String,
    policy: String,
    /// The maximum slice; with `smart` also the timer interval.
    slice: String,
    /// The maximum to which `smart` lets the slices of a client alone grow.
    maximum_slice: String,
    /// Which clients are one group: `none`, `app` (as it comes) or `user`.
    groups: String,
    measure: String,
    load: Loads,
    /// Of each load, instead of what that says.
    clients: usize,
    /// Budget and period of the measuring client; `auto` where measurement is to find them.
    reserve: String,
    /// The same of a processor, with a loan for the server.
    processor: String,
    /// `xqos boost` lends the server a priority while it works for a client with a reservation.
    loan: bool,
    /// The server is not asked for its counts, because that takes a second client.
    unasked: bool,
    /// Of a trace that is read meanwhile.
    trace: String,
    time: String,
    time_quick: String,
    warm_up: String,
    /// Who places and draws windows: `openbox`, `picom` or `picom_gl` with openbox, `xfwm4`, or `none`.
    managers: String,
    /// Programs of a desktop: `player`, `terminal`, `page`, `animation`, `list`.
    desk: Vec<String>,
    /// How many motions, frames or runs, in place of a time.
    count: usize,
    count_quick: usize,
    /// The load comes in the middle: after so many frames or activations without it, a quarter where it is to be quick.
    before: usize,
    /// So many more when it is gone.
    after: usize,
    /// Who uncovers others waits for them, this long at most.
    pacing: String,
    /// For so long at most `xqos boost` gives a processor to who is exposed.
    boost: String,
    /// The server and all programs have the first processor, and who measures the last one.
    one_processor: bool,
    /// mpv may leave out frames that are late.
    framedrop: bool,
    /// The program that is measured, and what it prints.
    command: Vec<String>,
    prints: Vec<String>,
    /// Not shown in tables and charts.
    hidden: bool,
    /// Measured also where it is to be quick.
    quick: bool,
    /// Figures of papers by the name that an expression gives them.
    published: BTreeMap<String, String>,
}

/// One load or several.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads(pub Vec<LoadText>);

/// Clients that keep the server busy; exactly one of the first five says which.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadText {
    #[serde(default)]
    pub x11perf: Option<String>,
    /// Requests of this length, `cheap` ones, or those of a plaid, without a pause.
    #[serde(default)]
    pub flood: Option<String>,
    /// Connected and silent.
    #[serde(default)]
    pub silent: bool,
    /// How much of the time the server is to be busy, percent.
    #[serde(default)]
    pub fill: Option<String>,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default = "one", deserialize_with = "count")]
    pub clients: String,
    /// What expressions call it; usually what it is.
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub side_by_side: bool,
    /// A run of x11perf; shorter ones are counted more finely.
    #[serde(default)]
    pub run: Option<String>,
    /// What each of its clients gets.
    #[serde(default)]
    pub reserve: Option<String>,
    #[serde(default)]
    pub weight: Option<f64>,
    /// All of its clients in one group, and what that gets.
    #[serde(default)]
    pub group: Option<String>,
    #[serde(default)]
    pub cap: Option<f64>,
    #[serde(default)]
    pub group_reserve: Option<String>,
}

/// Which follows what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    /// Axes around the turns: all turns of one value before the next one, with new servers.
    #[serde(default)]
    pub outside: Vec<String>,
    /// New servers for each `turn`, `case`, or so many turns: `12 turns`; `server`: for each turn, and one at a time.
    #[serde(default)]
    pub new_servers: Option<String>,
    /// Cases that there are not: all whose values are among these.
    #[serde(default)]
    pub without: Vec<BTreeMap<String, Vec<String>>>,
    /// Loads go on from turn to turn, and are stopped while another case is measured.
    #[serde(default)]
    pub keep_loads: bool,
    /// So many turns for each that is asked for.
    #[serde(default)]
    pub turns: Option<u32>,
    /// So many turns in all, whatever is asked for.
    #[serde(default)]
    pub fixed_turns: Option<u32>,
    #[serde(default)]
    pub most_turns: Option<u32>,
    /// A part of the processors: where the machine's host takes more, the case is measured again, at most three times.
    #[serde(default)]
    pub most_steal: Option<f64>,
}

/// A table has a row for each value of some axes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Documents refer to it by `EXPERIMENT.KEY`, with the names of the values of `each` in brackets.
    #[serde(default)]
    pub key: String,
    pub title: String,
    /// A table for each value of these axes.
    #[serde(default)]
    pub each: Vec<String>,
    pub rows: Vec<String>,
    /// Only these values of axes.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    pub columns: Vec<Column>,
    /// Samples of all turns are taken together; else each turn gives a value, and their median is shown.
    #[serde(default)]
    pub pooled: bool,
}

/// Head, expression, and how it is shown: `median`, `spread`, `percent`, `least` or `greatest`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Column(pub String, pub String, #[serde(default)] pub Option<String>);

/// What is held against a goal, or only told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    /// By which documents and lab/goals.toml refer to it, after the experiment's name and a dot; an axis in braces is the
    /// name of its value.
    pub key: String,
    pub what: String,
    #[serde(default)]
    pub unit: String,
    pub value: String,
    #[serde(default)]
    pub each: Vec<String>,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    /// One value for all values of these axes: see `by`.
    #[serde(default)]
    pub across: Vec<String>,
    /// `largest`, `least` or `geometric mean`.
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default)]
    pub goal: Option<crate::study::Goal>,
    /// The key of its goal in lab/goals.toml, where that is not its own.
    #[serde(default)]
    pub goal_of: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chart {
    pub title: String,
    /// Of lines and scatters: a chart for each value of these axes.
    #[serde(default)]
    pub each: Vec<String>,
    /// `ranges`, `lines`, `scatter` or `lanes`.
    pub kind: String,
    /// A line, a range or a panel for each value of this axis.
    pub of: String,
    /// Ranges in groups, by these axes.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Of lines: an axis of numbers, or samples of the first turn; of scatters: samples.
    #[serde(default)]
    pub x: Option<String>,
    /// Samples; of lines over an axis, an expression.
    pub y: String,
    #[serde(default)]
    pub x_label: String,
    #[serde(default)]
    pub y_label: String,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub log: String,
    /// Of lines over an axis: the same as a paper has it.
    #[serde(default)]
    pub paper: Option<String>,
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Axis, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Axis;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of names, or a table of names with what each means")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Axis, A::Error> {
                let names = Vec::<String>::deserialize(SeqAccessDeserializer::new(names))?;
                Ok(Axis(names.into_iter().map(|name| (name, Setting::default())).collect()))
            }

            fn visit_map<A: MapAccess<'de>>(self, settings: A) -> Result<Axis, A::Error> {
                Ok(Axis(IndexMap::deserialize(MapAccessDeserializer::new(settings))?))
            }
        }
        from.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Loads {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Loads, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Loads;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a load such as { x11perf = \"noop\", clients = 12 }, or a list of them")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, loads: A) -> Result<Loads, A::Error> {
                Ok(Loads(Deserialize::deserialize(SeqAccessDeserializer::new(loads))?))
            }

            fn visit_map<A: MapAccess<'de>>(self, load: A) -> Result<Loads, A::Error> {
                Ok(Loads(vec![Deserialize::deserialize(MapAccessDeserializer::new(load))?]))
            }
        }
        from.deserialize_any(Either)
    }
}

fn one() -> String {
    "1".to_owned()
}

/// A number, or a text that becomes one.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::String(text) => Ok(text),
        _ => Err(D::Error::custom("a count is a number, or an axis in braces such as \"{clients}\"")),
    }
}
