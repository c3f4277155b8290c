// SPDX-License-Identifier: MIT
//! Facts about a client that rules match.
//!
//! Any fact may be unknown. For example, the class is unknown until the first window exists, another user's program is
//! hidden, and a remote client has no program path. An unknown fact matches no pattern, and an exclusion that needs it
//! prevents the rule from matching, so a rule never acts on a guess.

use std::borrow::Cow;
use xqos_core::named;
use xqos_text::mistake::clean;

/// Only this many bytes of a fact are used, because a client can report text of any length.
pub const MAX_FACT: usize = 4096;

named! {
    /// A key of a match, in the order of evaluation.
    Key {
        Exe "exe",
        Name "name",
        Class "class",
        User "user",
        Unit "unit",
        Cgroup "cgroup",
        Host "host",
        Local "local",
        State "state",
    }
}

named! {
    /// State of a client's windows.
    State {
        /// One of the client's windows is the active window.
        Active "active",
        /// One of the client's windows covers a screen.
        Fullscreen "fullscreen",
        /// All windows of the client are iconified.
        Iconic "iconic",
        /// Nobody is viewing the display.
        Unwatched "unwatched",
    }
}

/// States of a client; each may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States([Option<bool>; 4]);

impl States {
    /// Creates known states: these hold, and all others do not.
    pub fn only(holding: &[State]) -> States {
        let mut states = States::default();
        for state in State::ALL {
            states.set(state, holding.contains(&state));
        }
        states
    }

    pub fn set(&mut self, state: State, holds: bool) {
        self.0[state as usize] = Some(holds);
    }

    pub fn get(self, state: State) -> Option<bool> {
        self.0[state as usize]
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// Full path of its program.
    pub exe: Option<String>,
    /// Its name in `xqos list`.
    pub name: Option<String>,
    /// Instance and class names of its windows (WM_CLASS).
    pub class: Option<Vec<String>>,
    /// Name and number of its user.
    pub user: Option<Vec<String>>,
    /// The part of its control group that names the application.
    pub unit: Option<String>,
    /// Full path of its control group.
    pub cgroup: Option<String>,
    /// Remote host that it connects from.
    pub host: Option<String>,
    pub local: Option<bool>,
    pub states: States,
}

impl ClientFacts {
    /// The texts that a key's patterns are matched against; `None` if unknown, or if the key takes no patterns.
    pub fn texts(&self, key: Key) -> Option<&[String]> {
        match key {
            Key::Exe => self.exe.as_ref().map(std::slice::from_ref),
            Key::Name => self.name.as_ref().map(std::slice::from_ref),
            Key::Class => self.class.as_deref(),
            Key::User => self.user.as_deref(),
            Key::Unit => self.unit.as_ref().map(std::slice::from_ref),
            Key::Cgroup => self.cgroup.as_ref().map(std::slice::from_ref),
            Key::Host => self.host.as_ref().map(std::slice::from_ref),
            Key::Local | Key::State => None,
        }
    }

    /// A fact as text, to explain why a rule did not match.
    pub fn describe(&self, key: Key) -> Option<String> {
        match key {
            Key::Local => self.local.map(|local| local.to_string()),
            Key::State => self.describe_states(),
            _ => self.texts(key).map(|texts| match texts {
                [] => "none".to_owned(),
                texts => texts.iter().map(|text| clean(text)).collect::<Vec<_>>().join(" and "),
            }),
        }
    }

    fn describe_states(&self) -> Option<String> {
        if State::ALL.iter().all(|&state| self.states.get(state).is_none()) {
            return None;
        }
        let of = |wanted: Option<bool>| {
            let states = State::ALL.into_iter().filter(move |&state| self.states.get(state) == wanted);
            states.map(State::name).collect::<Vec<_>>()
        };
        let holding = match of(Some(true)) {
            holding if holding.is_empty() => format!("none of {}", of(Some(false)).join(", ")),
            holding => holding.join(" and "),
        };
        let unknown = of(None);
        Some(if unknown.is_empty() { holding } else { format!("{holding} (not known: {})", unknown.join(", ")) })
    }
}

/// The unit of a control group: the last part that names an application (`app-*.scope` or `.service`, as desktops
/// create them), or else the last part.
pub fn unit_of(cgroup: &str) -> Option<&str> {
    let mut parts = cgroup.rsplit('/').filter(|part| !part.is_empty());
    let last = parts.clone().next();
    let is_app = |part: &&str| part.starts_with("app-") && (part.ends_with(".scope") || part.ends_with(".service"));
    parts.find(is_app).or(last)
}

/// The first [`MAX_FACT`] bytes of a fact, cut between characters.
pub fn bounded(fact: &str) -> Cow<'_, str> {
    if fact.len() <= MAX_FACT {
        return Cow::Borrowed(fact);
    }
    let end = (0..=MAX_FACT).rev().find(|&at| fact.is_char_boundary(at)).unwrap_or(0);
    Cow::Owned(fact[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_desktops_application_scope() {
        let slice = "/user.slice/user-1000.slice/user@1000.service/app.slice";
        for (cgroup, unit) in [
            (format!("{slice}/app-gnome-mpv-123.scope"), "app-gnome-mpv-123.scope"),
            (format!("{slice}/app-org.kde.konsole@1.service/tab(7).scope"), "app-org.kde.konsole@1.service"),
            ("/user.slice/session-2.scope".to_owned(), "session-2.scope"),
            ("/app-x/y".to_owned(), "y"),
        ] {
            assert_eq!(unit_of(&cgroup), Some(unit), "{cgroup}");
        }
        assert_eq!((unit_of("/"), unit_of("")), (None, None));
    }

    #[test]
    fn facts_are_cut_between_characters() {
        assert_eq!(bounded("mpv"), "mpv");
        let long = "a".to_owned() + &"ä".repeat(4000);
        assert_eq!(bounded(&long).len(), 4095);
    }

    #[test]
    fn facts_are_described() {
        let facts = ClientFacts {
            class: Some(vec!["gl".into(), "mpv".into()]),
            states: States::only(&[State::Active, State::Fullscreen]),
            ..ClientFacts::default()
        };
        assert_eq!(facts.describe(Key::Class).as_deref(), Some("gl and mpv"));
        assert_eq!(facts.describe(Key::State).as_deref(), Some("active and fullscreen"));
        assert_eq!((facts.describe(Key::Exe), facts.describe(Key::Local)), (None, None));
        let mut states = States::default();
        states.set(State::Fullscreen, false);
        let facts = ClientFacts { states, ..facts };
        assert_eq!(
            facts.describe(Key::State).as_deref(),
            Some("none of fullscreen (not known: active, iconic, unwatched)")
        );
    }
}
