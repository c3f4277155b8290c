// SPDX-License-Identifier: MIT
//! Published figures as data: `lab/papers` has a file for each paper, with its figures and where it states them.
//!
//! Experiments and documents name a figure by its key, such as `packard-2000.echo_old`, and contain no values. Tests
//! check that each figure is used and has a source.

use crate::study::figure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXTS: [(&str, &str); 4] = [
    ("packard-2000", include_str!("../../../../lab/papers/packard-2000.toml")),
    ("packard-gettys-2003", include_str!("../../../../lab/papers/packard-gettys-2003.toml")),
    ("shatrov-2005", include_str!("../../../../lab/papers/shatrov-2005.toml")),
    ("manica-2008", include_str!("../../../../lab/papers/manica-2008.toml")),
];

/// Papers by file name. The files are part of the program.
static PAPERS: LazyLock<BTreeMap<&str, Paper>> = LazyLock::new(|| {
    let read = |text| toml::from_str(text).unwrap_or_else(|error| panic!("lab/papers: {error}"));
    TEXTS.into_iter().map(|(name, text)| (name, read(text))).collect()
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), allow(dead_code))]
struct Paper {
    title: String,
    authors: String,
    published: String,
    figures: BTreeMap<String, Figure>,
}

/// All fields except the numbers are for readers and tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), allow(dead_code))]
struct Figure {
    source: String,
    what: String,
    /// How the figure is derived, if the paper does not state it.
    #[serde(default)]
    derived: Option<String>,
    value: Number,
    #[serde(default)]
    deviation: Option<Number>,
    unit: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    One(f64),
    Rows(Vec<Vec<f64>>),
}

/// The single figure with a key such as `packard-2000.echo_old`, if one of the files has it.
pub(crate) fn value(key: &str) -> Option<f64> {
    match find(key)?.value {
        Number::One(one) => Some(one),
        Number::Rows(_) => None,
    }
}

pub(crate) fn cell(key: &str, row: usize, column: usize) -> Option<f64> {
    match &find(key)?.value {
        Number::One(_) => None,
        Number::Rows(rows) => rows.get(row)?.get(column).copied(),
    }
}

fn find(key: &str) -> Option<&'static Figure> {
    let (paper, figure) = key.split_once('.')?;
    PAPERS.get(paper)?.figures.get(figure)
}

/// A figure with its deviation and unit, as documents show it. A table is shown as its least and its greatest value.
pub(crate) fn text(key: &str) -> Option<String> {
    let found = find(key)?;
    let number = match (&found.value, &found.deviation) {
        (Number::One(one), Some(Number::One(deviation))) => format!("{} ({})", figure(*one), figure(*deviation)),
        (Number::One(one), _) => figure(*one),
        (Number::Rows(rows), _) => {
            let all = || rows.iter().flatten().copied();
            format!("{} .. {}", figure(all().fold(f64::MAX, f64::min)), figure(all().fold(f64::MIN, f64::max)))
        }
    };
    let unit = if found.unit.is_empty() { String::new() } else { format!(" {}", found.unit) };
    let mark = if found.derived.is_some() { " (derived)" } else { "" };
    Some(number + &unit + mark)
}

#[cfg(test)]
mod tests;
