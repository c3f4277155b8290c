// SPDX-License-Identifier: MIT
//! What is known about a client: the facts that rules look at.
//!
//! Each fact may be unknown: a class comes with the first window, the program of another user's process is hidden, a remote
//! client has none. An unknown fact matches no pattern, and excludes nobody either, so that a rule never acts on a guess.

use std::borrow::Cow;
use std::fmt;
use xqos_cli::named;

/// Bytes of a fact that count; what a client says of itself may be of any length.
pub const MAX_FACT: usize = 4096;

named! {
    /// A key of a match; in this order they are looked at.
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

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

named! {
    /// What a client's windows are like.
    State {
        /// One of them is the window that is worked in.
        Active "active",
        /// One of them covers a screen.
        Fullscreen "fullscreen",
        /// All of them are icons.
        Iconic "iconic",
        /// Nobody looks at the display.
        Unwatched "unwatched",
    }
}

/// The states of a client, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States([Option<bool>; 4]);

impl States {
    /// All states are known: these hold, the others do not.
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

/// What is known about one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// The whole path of its program.
    pub exe: Option<String>,
    /// As `xqos list` shows it.
    pub name: Option<String>,
    /// Instances and classes of its windows (WM_CLASS).
    pub class: Option<Vec<String>>,
    /// Name and number of its user.
    pub user: Option<Vec<String>>,
    /// The application's part of its control group.
    pub unit: Option<String>,
    /// The whole path of its control group.
    pub cgroup: Option<String>,
    /// Where it runs, if elsewhere.
    pub host: Option<String>,
    pub local: Option<bool>,
    pub states: States,
}

impl ClientFacts {
    /// The texts that a key's patterns are held against; `None`: not known, or not a key of texts.
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

    /// A fact in words, for whoever asks why a rule did not match.
    pub fn shown(&self, key: Key) -> Option<String> {
        match key {
            Key::Local => self.local.map(|local| local.to_string()),
            Key::State => self.states_shown(),
            _ => self.texts(key).map(|texts| match texts {
                [] => "none".to_owned(),
                texts => texts.iter().map(|text| crate::mistake::shown(text)).collect::<Vec<_>>().join(" and "),
            }),
        }
    }

    fn states_shown(&self) -> Option<String> {
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

/// The unit of a control group: its last application (`app-*.scope` or `.service`, as desktops name them), else its last
/// part.
pub fn unit_of(cgroup: &str) -> Option<&str> {
    let mut parts = cgroup.rsplit('/').filter(|part| !part.is_empty());
    let last = parts.clone().next();
    let is_app = |part: &&str| part.starts_with("app-") && (part.ends_with(".scope") || part.ends_with(".service"));
    parts.find(is_app).or(last)
}

/// The part of a fact that counts.
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
    fn the_unit_is_the_application_that_the_desktop_named() {
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
    fn facts_are_cut_between_letters() {
        assert_eq!(bounded("mpv"), "mpv");
        let long = "a".to_owned() + &"ä".repeat(4000);
        assert_eq!(bounded(&long).len(), 4095);
    }

    #[test]
    fn facts_are_told_in_words() {
        let facts = ClientFacts {
            class: Some(vec!["gl".into(), "mpv".into()]),
            states: States::only(&[State::Active, State::Fullscreen]),
            ..ClientFacts::default()
        };
        assert_eq!(facts.shown(Key::Class).as_deref(), Some("gl and mpv"));
        assert_eq!(facts.shown(Key::State).as_deref(), Some("active and fullscreen"));
        assert_eq!((facts.shown(Key::Exe), facts.shown(Key::Local)), (None, None));
        let mut states = States::default();
        states.set(State::Fullscreen, false);
        let facts = ClientFacts { states, ..facts };
        assert_eq!(
            facts.shown(Key::State).as_deref(),
            Some("none of fullscreen (not known: active, iconic, unwatched)")
        );
    }
}
