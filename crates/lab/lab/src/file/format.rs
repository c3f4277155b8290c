// SPDX-License-Identifier: MIT
//! The format of an experiment file. docs/experiments/format.md explains each field with an example.

use indexmap::IndexMap;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub about: String,
    pub title: String,
    pub question: String,
    /// See [`Experiment::is_exact`](super::Experiment::is_exact).
    #[serde(default)]
    pub exact: bool,
    pub answer: Option<Answer>,
    #[serde(default)]
    pub server: IndexMap<String, ServerText>,
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
    pub figures: BTreeMap<String, (String, String)>,
}

/// The values of an axis: plain names that other texts use in braces, or names with settings.
#[derive(Clone, Debug)]
pub(super) struct Axis(pub IndexMap<String, Setting>);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerText {
    pub kind: Option<String>,
    pub xqos: bool,
    pub host: Option<String>,
    pub clients: Option<u32>,
    pub screen: Option<(u32, u32)>,
    pub reservable: Option<f64>,
    pub options: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

macro_rules! settings {
    ($($name:ident: $kind:ty,)*) => {
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Setting {
            $(pub $name: Option<$kind>,)*
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
    title: String,
    server: String,
    policy: String,
    slice: String,
    cut: String,
    maximum_slice: String,
    groups: String,
    measure: String,
    load: Loads,
    clients: usize,
    period: String,
    priority: i32,
    nice: String,
    reserve: String,
    processor: String,
    loan: bool,
    unasked: bool,
    trace: String,
    time: String,
    time_quick: String,
    warm_up: String,
    managers: String,
    desk: Vec<String>,
    count: usize,
    count_quick: usize,
    before: usize,
    after: usize,
    pacing: String,
    boost: String,
    one_processor: bool,
    framedrop: bool,
    command: Vec<String>,
    prints: Vec<String>,
    once: bool,
    together: usize,
    hidden: bool,
    quick: bool,
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
    pub flood: Option<String>,
    pub long: Option<String>,
    pub silent: bool,
    pub fill: Option<String>,
    pub command: Vec<String>,
    #[serde(deserialize_with = "count")]
    pub clients: Option<String>,
    pub name: Option<String>,
    pub side_by_side: bool,
    pub run: Option<String>,
    pub reserve: Option<String>,
    pub weight: Option<f64>,
    pub priority: Option<i32>,
    pub group: Option<String>,
    pub cap: Option<f64>,
    pub group_reserve: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Order {
    pub outside: Vec<String>,
    pub new_servers: Option<String>,
    pub without: Vec<BTreeMap<String, Vec<String>>>,
    pub keep_loads: bool,
    pub turns: Option<u32>,
    pub fixed_turns: Option<u32>,
    pub most_turns: Option<u32>,
    pub most_steal: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    #[serde(default)]
    pub key: String,
    pub title: String,
    #[serde(default)]
    pub each: Vec<String>,
    pub rows: Vec<String>,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    pub columns: Vec<Column>,
    #[serde(default)]
    pub pooled: bool,
}

/// Heading, expression, and format: `median`, `spread`, `percent`, `least` or `greatest`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Column(pub String, pub String, #[serde(default)] pub Option<String>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verdict {
    pub key: String,
    pub what: String,
    #[serde(default)]
    pub unit: String,
    pub value: String,
    #[serde(default)]
    pub each: Vec<String>,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub across: Vec<String>,
    pub by: Option<String>,
    #[serde(default)]
    pub pooled: bool,
    pub goal: Option<crate::study::Goal>,
    pub goal_of: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chart {
    pub title: String,
    #[serde(default)]
    pub each: Vec<String>,
    pub kind: String,
    pub of: String,
    #[serde(default)]
    pub groups: Vec<String>,
    pub x: Option<String>,
    pub y: String,
    #[serde(default)]
    pub x_label: String,
    #[serde(default)]
    pub y_label: String,
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub log: String,
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

/// Reads a value from a list or a table. Unlike an untagged enum, it reports the mistake and its place.
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

/// Accepts a number, or a text that expands to a number.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::Integer(number) => Ok(Some(number.to_string())),
        toml::Value::String(text) => Ok(Some(text)),
        _ => Err(D::Error::custom("a count is a number, or an axis in braces such as \"{clients}\"")),
    }
}
