// SPDX-License-Identifier: MIT
//! Published figures as data: `lab/papers` has a file for each paper, with its figures and where it states them.
//!
//! Experiments and documents name a figure by its key, [`Published`], and contain no values. Tests check that each
//! figure is used and has a source.

use crate::study::figure;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXTS: [(&str, &str); 4] = [
    ("packard-2000", include_str!("../../../lab/papers/packard-2000.toml")),
    ("packard-gettys-2003", include_str!("../../../lab/papers/packard-gettys-2003.toml")),
    ("shatrov-2005", include_str!("../../../lab/papers/shatrov-2005.toml")),
    ("manica-2008", include_str!("../../../lab/papers/manica-2008.toml")),
];

/// Papers by file name. The files are part of the program.
static PAPERS: LazyLock<BTreeMap<&str, Paper>> = LazyLock::new(|| {
    let read = |text| toml::from_str(text).unwrap_or_else(|error| panic!("lab/papers: {error}"));
    TEXTS.into_iter().map(|(name, text)| (name, read(text))).collect()
});

/// Paper and figure, as in `packard-2000.echo_old`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(pub &'static str);

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

/// A cell of a table.
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
    Some(number + &unit + found.mark())
}

impl Figure {
    /// Marks a value that the paper does not state.
    fn mark(&self) -> &'static str {
        if self.derived.is_some() { " (derived)" } else { "" }
    }
}

impl Published {
    pub fn value(self) -> f64 {
        self.one(Some(&self.figure().value))
    }

    /// The figure as shown in tables. A value that the paper does not state is marked.
    pub fn text(self) -> String {
        figure(self.value()) + self.figure().mark()
    }

    /// The standard deviation.
    pub fn deviation(self) -> f64 {
        self.one(self.figure().deviation.as_ref())
    }

    /// Value and deviation in a cell of a table; `None` outside it.
    pub fn cell(self, row: usize, column: usize) -> Option<(f64, f64)> {
        let of = |number: Option<&Number>| match number {
            Some(Number::Rows(rows)) => rows.get(row)?.get(column).copied(),
            _ => panic!("{} is not a table", self.0),
        };
        Some((of(Some(&self.figure().value))?, of(self.figure().deviation.as_ref())?))
    }

    fn one(self, number: Option<&Number>) -> f64 {
        match number {
            Some(Number::One(one)) => *one,
            _ => panic!("{} is not a single number", self.0),
        }
    }

    /// An unknown name is a mistake in the program.
    fn figure(self) -> &'static Figure {
        find(self.0).unwrap_or_else(|| panic!("lab/papers has no {}", self.0))
    }
}

#[cfg(test)]
mod tests;
