// SPDX-License-Identifier: MIT
//! A rule: which clients it matches, what it sets, and its location in a file.
//!
//! Only [`read`](crate::read) creates rules, so every rule is valid.

use crate::facts::{Key, State};
use crate::pattern::Pattern;
use crate::setting::Setting;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLocation {
    pub file: Arc<str>,
    pub line: usize,
}

impl fmt::Display for RuleLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub id: String,
    pub place: RuleLocation,
    pub matcher: Matcher,
    /// At most one setting of each kind.
    pub settings: Vec<Setting>,
}

#[derive(Clone, Debug, Default)]
pub struct Matcher {
    /// Conditions that must all hold: at most one for each key, in the order of the keys.
    pub conditions: Vec<Condition>,
    /// Exclusions, none of which may apply. An exclusion applies if all its conditions hold.
    pub exclusions: Vec<Vec<Condition>>,
}

impl Matcher {
    pub fn depends_on(&self, state: State) -> bool {
        let all = self.conditions.iter().chain(self.exclusions.iter().flatten());
        all.into_iter().any(|condition| matches!(condition, Condition::State(states) if states.contains(&state)))
    }
}

/// One key of a match with its allowed values, one of which must match.
#[derive(Clone, Debug)]
pub enum Condition {
    Text(Key, Vec<Pattern>),
    Local(bool),
    State(Vec<State>),
}

impl Condition {
    pub fn key(&self) -> Key {
        match self {
            Condition::Text(key, _) => *key,
            Condition::Local(_) => Key::Local,
            Condition::State(_) => Key::State,
        }
    }
}

/// The allowed values: `"*/mpv" or "*/vlc"`.
impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Text(_, patterns) => any_of(out, patterns),
            Condition::Local(local) => write!(out, "{local}"),
            Condition::State(states) => any_of(out, &states.iter().map(|state| state.name()).collect::<Vec<_>>()),
        }
    }
}

fn any_of(out: &mut fmt::Formatter<'_>, words: &[impl fmt::Display]) -> fmt::Result {
    for (at, word) in words.iter().enumerate() {
        write!(out, "{}{word}", if at == 0 { "" } else { " or " })?;
    }
    Ok(())
}

/// Limits on reservations, as shares of the server in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For all measured reservations together.
    pub auto: Option<u32>,
    /// For all clients of one user together.
    pub per_user: Option<u32>,
}

impl Limits {
    /// Combines two files' limits. Values of the later file take precedence.
    pub fn overridden_by(self, later: Limits) -> Limits {
        Limits { auto: later.auto.or(self.auto), per_user: later.per_user.or(self.per_user) }
    }
}
