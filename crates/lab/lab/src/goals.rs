// SPDX-License-Identifier: MIT
//! The goals as data: `lab/goals.toml` lists the goal of each verdict, since when it applies, and why.
//!
//! Experiments name a goal by its key, so a goal changes only in the ledger. Tests check that every key is known and
//! used, and that each change has a date and a reason.

use crate::study::Goal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../../lab/goals.toml");

/// Goals by experiment and name. The file is part of the program, and a test reads it.
static LEDGER: LazyLock<BTreeMap<String, BTreeMap<String, Entry>>> =
    LazyLock::new(|| toml::from_str(TEXT).expect("lab/goals.toml is sound"));

/// A goal's entry. Only the goal is used at run time; the other fields are for readers and for tests of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), allow(dead_code))]
struct Entry {
    goal: Goal,
    unit: String,
    changed: toml::value::Datetime,
    reason: String,
    #[serde(default)]
    change: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), allow(dead_code))]
struct Change {
    date: toml::value::Datetime,
    from: Goal,
    to: Goal,
    reason: String,
}

/// The goal with a key such as `demo.fair_above_idle`, if the ledger has it.
pub(crate) fn find(key: &str) -> Option<Goal> {
    let (experiment, name) = key.split_once('.')?;
    Some(LEDGER.get(experiment)?.get(name)?.goal)
}

#[cfg(test)]
mod tests;
