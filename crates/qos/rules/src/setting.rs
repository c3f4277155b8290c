// SPDX-License-Identifier: MIT
//! The settings of a rule; each type holds only valid values.
//!
//! Numbers use the types of the command line ([`values`](crate::values), `xqos_text::quantity`). Every value is
//! printed in the form in which it is read, so users can copy it into a file. A later rule can undo a setting with
//! `reserve = "none"`, `max = "100%"`, `weight = 1` or `group = "none"`.

use crate::values::{Cap, Priority, Slice, Weight};
use std::fmt;
use std::str::FromStr;
use xqos_core::setting::MAX_UTILIZATION;
use xqos_core::{ReservationKind, named};
use xqos_text::mistake::clean;
use xqos_text::quantity::Reservation;

/// Maximum length of the name of a group or a rule.
const NAME_LENGTH: usize = 64;
/// Maximum that any server promises. The remaining 5 % is left for input and new connections.
const MAX_PROMISED_PERCENT: u32 = MAX_UTILIZATION.most / 10_000;

macro_rules! settings {
    ($($(#[$meta:meta])* $item:ident $name:literal $read:ident $type:ty;)*) => {
        named! {
            /// The kinds of settings, in the order in which they are shown.
            SettingKind { $($item $name),* }
        }

        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Setting {
            $($(#[$meta])* $item($type)),*
        }

        impl Setting {
            pub fn kind(&self) -> SettingKind {
                match self { $(Setting::$item(_) => SettingKind::$item),* }
            }

            /// The value as text, without its key.
            pub fn value(&self) -> String {
                match self { $(Setting::$item(value) => value.to_string()),* }
            }

            /// Returns true if the value is quoted in a file.
            fn is_text(&self) -> bool {
                match self { $(Setting::$item(_) => stringify!($read) == "text"),* }
            }

            /// Parses the value of a key; the error says what to write instead.
            pub fn read(kind: SettingKind, value: &Value<'_>) -> Result<Setting, String> {
                Ok(match kind { $(SettingKind::$item => Setting::$item(value.$read()?)),* })
            }
        }
    };
}

settings! {
    Reserve "reserve" text Reserve;
    /// Makes a reservation hard.
    Hard "hard" switch bool;
    /// What a client with a soft reservation gets after its budget is used up.
    Soft "soft" text SoftRule;
    Max "max" text Cap;
    Weight "weight" number Weight;
    Priority "priority" number Priority;
    /// Longest slice of the client.
    Slice "slice" text Slice;
    /// Raises the priority of the client's program while it redraws.
    Cpu "cpu" switch bool;
    /// Makes the client wait for the owners of windows that it uncovers.
    Pace "pace" switch bool;
    Group "group" text GroupChoice;
    /// Ignores the client: no other setting is applied.
    Ignore "ignore" switch bool;
}

/// The setting as written in a file: `weight = 2`.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = (self.kind().name(), self.value());
        if self.is_text() { write!(out, "{key} = \"{value}\"") } else { write!(out, "{key} = {value}") }
    }
}

/// A value of a TOML file before it is interpreted.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Text(&'a str),
    Number(&'a str),
    Switch(bool),
    Other(&'static str),
}

impl Value<'_> {
    fn number<T: FromStr<Err = String>>(&self) -> Result<T, String> {
        self.text()
    }

    fn text<T: FromStr<Err = String>>(&self) -> Result<T, String> {
        match self {
            Value::Text(text) | Value::Number(text) => text.parse(),
            // Parse the word as text, to get the error that says what to write.
            Value::Switch(on) => on.to_string().parse(),
            Value::Other(kind) => kind.parse(),
        }
    }

    fn switch(&self) -> Result<bool, String> {
        match self {
            Value::Switch(on) => Ok(*on),
            _ => Err("write true or false, without quotes".to_owned()),
        }
    }
}

named! {
    /// What a client with a soft reservation gets after its budget is used up.
    SoftRule {
        BestEffort "best-effort",
        Paper "paper",
    }
}

impl SoftRule {
    pub fn kind(self) -> ReservationKind {
        match self {
            SoftRule::BestEffort => ReservationKind::Soft,
            SoftRule::Paper => ReservationKind::SoftPaper,
        }
    }

    /// `None` for a hard reservation.
    pub fn of(kind: ReservationKind) -> Option<SoftRule> {
        Self::ALL.into_iter().find(|rule| rule.kind() == kind)
    }
}

impl FromStr for SoftRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("'{text}' is not a rule for soft reservations: write best-effort or paper");
        SoftRule::from_name(text).ok_or_else(wanted)
    }
}

/// A reservation, or how to determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// Measure the client's demand.
    Auto,
    Fixed(Reservation),
    /// No reservation; undoes an earlier rule.
    Nothing,
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Reserve::Auto),
            "none" => Ok(Reserve::Nothing),
            _ if text.contains('/') => admissible(text.parse()?).map(Reserve::Fixed),
            _ => Err(format!("'{text}' is not a reservation: write \"auto\", \"none\" or \"3ms/10ms\"")),
        }
    }
}

/// Refuses a reservation that no server would admit.
fn admissible(reservation: Reservation) -> Result<Reservation, String> {
    let (budget, period) = (u64::from(reservation.budget.0), u64::from(reservation.period.0));
    match budget * 100 > period * u64::from(MAX_PROMISED_PERCENT) {
        true => Err(format!(
            "{reservation} is more than {MAX_PROMISED_PERCENT} %, the maximum that a server promises: ask for less"
        )),
        false => Ok(reservation),
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::Auto => out.write_str("auto"),
            Reserve::Nothing => out.write_str("none"),
            Reserve::Fixed(reservation) => out.write_str(&reservation.typed()),
        }
    }
}

/// Which clients share an account with a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupChoice {
    /// Connections of the same application.
    App,
    /// Connections of the same user.
    User,
    Named(String),
    /// No group; undoes an earlier rule.
    Nobody,
}

impl FromStr for GroupChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "app" => Ok(GroupChoice::App),
            "user" => Ok(GroupChoice::User),
            "none" => Ok(GroupChoice::Nobody),
            _ => name(text).map(GroupChoice::Named),
        }
    }
}

impl fmt::Display for GroupChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            GroupChoice::App => "app",
            GroupChoice::User => "user",
            GroupChoice::Nobody => "none",
            GroupChoice::Named(name) => name,
        })
    }
}

/// Accepts a name that is safe in messages, in the protocol and on a command line.
pub fn name(text: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match (1..=NAME_LENGTH).contains(&text.len()) && text.bytes().all(is_fit) {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("'{}' is not a valid name: write 1 to {NAME_LENGTH} letters, digits and . _ -", clean(text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_as_they_are_parsed() {
        for text in ["auto", "none", "10ms/40ms", "0.5ms/16ms"] {
            assert_eq!(text.parse::<Reserve>().unwrap().to_string(), text);
        }
        for text in ["20%", "1%", "1.5%", "100%", "99.9999%"] {
            assert_eq!(text.parse::<Cap>().unwrap().to_string(), text);
        }
        for text in ["app", "user", "none", "players"] {
            assert_eq!(text.parse::<GroupChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_values_are_refused_with_a_correction() {
        for (text, words) in [("", "\"auto\""), ("10", "\"auto\""), ("40ms/10ms", "longer than"), ("1/2", "no unit")] {
            assert!(text.parse::<Reserve>().unwrap_err().contains(words), "{text}");
        }
        for text in ["", "20", "0%", "0.9999%", "101%", "-1%", "1e1%", "%", "99999999999999%"] {
            assert!(text.parse::<Cap>().unwrap_err().contains("\"20%\""), "{text}");
        }
        assert!("9.6ms/10ms".parse::<Reserve>().unwrap_err().contains("more than 95 %"));
        assert!("9.5ms/10ms".parse::<Reserve>().is_ok());
        assert!("0.00015%".parse::<Cap>().unwrap_err().contains("finer"));
        for text in ["", "1.5", "1001", "-1001", "x"] {
            assert!(text.parse::<Priority>().unwrap_err().contains("-1000 to 1000"), "{text}");
        }
        for text in ["", "a b", "ä", &"x".repeat(65)] {
            assert!(text.parse::<GroupChoice>().unwrap_err().contains("is not a valid name"), "{text}");
        }
    }
}
