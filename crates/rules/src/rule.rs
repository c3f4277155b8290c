// SPDX-License-Identifier: MIT
//! A rule: whom it is about, what it sets, and where it stands.
//!
//! Only valid rules exist: they are made by [`read`](crate::read) alone.

use crate::facts::{Key, State};
use crate::pattern::Pattern;
use crate::setting::Setting;
use std::fmt;
use std::sync::Arc;

/// Where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// One rule of a file.
#[derive(Clone, Debug)]
pub struct Rule {
    pub id: String,
    pub place: Place,
    pub matcher: Matcher,
    /// At most one of a kind.
    pub settings: Vec<Setting>,
}

/// Whom a rule is about.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    /// All of them have to hold; at most one of a key, in the keys' order.
    pub conditions: Vec<Condition>,
    /// None of them may hold; each is conditions that hold together.
    pub exclusions: Vec<Vec<Condition>>,
}

impl Matcher {
    /// Whether it depends on this state of a client.
    pub fn asks_for(&self, state: State) -> bool {
        let all = self.conditions.iter().chain(self.exclusions.iter().flatten());
        all.into_iter().any(|condition| matches!(condition, Condition::State(states) if states.contains(&state)))
    }
}

/// One key of a match with what it may be: any of a list.
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

/// What it may be: `"*/mpv" or "*/vlc"`.
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

/// What may be promised at most, to whom rules speak of; in millionths of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// To reservations that are found by measurement, together.
    pub auto: Option<u32>,
    /// To the clients of one user, together.
    pub per_user: Option<u32>,
}

impl Limits {
    /// Those of a later file go before.
    pub fn overridden_by(self, later: Limits) -> Limits {
        Limits { auto: later.auto.or(self.auto), per_user: later.per_user.or(self.per_user) }
    }
}
