// SPDX-License-Identifier: MIT
//! What a rule sets, each a type that only valid values have.
//!
//! Reservations and weights are those of the command line (`xqos_cli::quantity`). Every value can be written as it is read,
//! so that what is shown may be copied into a file. A setting can be taken back by a later rule: `reserve = "none"`,
//! `max = "100%"`, `weight = 1`, `group = "none"`.

use std::fmt;
use std::str::FromStr;
use xqos_cli::named;
use xqos_cli::number::{decimal, scaled};
use xqos_cli::quantity::{Reservation, Slice, SoftRule, Weight};

/// Letters of a name that a rule gives: a group's, or its own.
const NAME_LENGTH: usize = 64;
/// A smaller cap would look like a hang, and nobody is stopped by rules; the extension takes none either.
const MIN_CAP_PPM: u32 = 10_000;
/// No server promises more: 5 % are left to input and new connections.
const MAX_PROMISED_PERCENT: u64 = 95;
/// What the extension takes.
const PRIORITIES: std::ops::RangeInclusive<i32> = -1000..=1000;

macro_rules! settings {
    ($($(#[$meta:meta])* $item:ident $name:literal $read:ident $type:ty;)*) => {
        named! {
            /// Which settings there are; in this order they are shown.
            SettingKind { $($item $name),* }
        }

        /// One thing that a rule sets.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Setting {
            $($(#[$meta])* $item($type)),*
        }

        impl Setting {
            pub fn kind(&self) -> SettingKind {
                match self { $(Setting::$item(_) => SettingKind::$item),* }
            }

            /// Its value alone.
            pub fn value(&self) -> String {
                match self { $(Setting::$item(value) => value.to_string()),* }
            }

            /// Whether a file has its value in quotes.
            fn is_text(&self) -> bool {
                match self { $(Setting::$item(_) => stringify!($read) == "text"),* }
            }

            /// Reads the value of a key; the error says what to write instead.
            pub fn read(kind: SettingKind, value: &Value<'_>) -> Result<Setting, String> {
                Ok(match kind { $(SettingKind::$item => Setting::$item(value.$read()?)),* })
            }
        }
    };
}

settings! {
    Reserve "reserve" text Reserve;
    /// Whether a reservation is hard.
    Hard "hard" switch bool;
    /// What a soft one gives beyond its budget.
    Soft "soft" text SoftRule;
    Max "max" text Cap;
    Weight "weight" number Weight;
    Priority "priority" number Priority;
    /// Its longest slice.
    Slice "slice" text Slice;
    /// Whether its program may have the processor while it redraws.
    Cpu "cpu" switch bool;
    /// Whether it waits for those that it uncovers.
    Pace "pace" switch bool;
    Group "group" text Group;
    /// Leaves the client alone, whatever else is set.
    Ignore "ignore" switch bool;
}

/// As a file has it: `weight = 2`.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, value) = (self.kind().name(), self.value());
        if self.is_text() { write!(out, "{key} = \"{value}\"") } else { write!(out, "{key} = {value}") }
    }
}

/// A value as a file has it, before it means something.
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
            // As text it is refused with what to write.
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

/// A reservation, or how to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// By measurement.
    Auto,
    Fixed(Reservation),
    /// None, also where an earlier rule says otherwise.
    Nothing,
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Reserve::Auto),
            "none" => Ok(Reserve::Nothing),
            _ if text.contains('/') => promised(text.parse()?).map(Reserve::Fixed),
            _ => Err(format!("'{text}' is no reservation: write \"auto\", \"none\", or budget/period as \"3ms/10ms\"")),
        }
    }
}

/// A reservation that some server may admit.
fn promised(reservation: Reservation) -> Result<Reservation, String> {
    let (budget, period) = (u64::from(reservation.budget.0), u64::from(reservation.period.0));
    match budget * 100 > period * MAX_PROMISED_PERCENT {
        true => Err(format!(
            "{reservation} is more than {MAX_PROMISED_PERCENT} %, the most that a server promises: ask for less"
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

/// The most that a client gets of the server, in millionths; all of it is no cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub u32);

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("'{text}' is no share: write a percentage from 1 to 100, as \"20%\"");
        let (mantissa, tenth) = text.strip_suffix('%').and_then(|number| scaled(number.trim())).ok_or_else(wanted)?;
        // A percent is 10,000 millionths.
        let scaled = mantissa * 10_000;
        if scaled % tenth != 0 {
            return Err(format!("{text} is finer than 0.0001%, the step of shares"));
        }
        match u32::try_from(scaled / tenth) {
            Ok(ppm @ MIN_CAP_PPM..=1_000_000) => Ok(Cap(ppm)),
            _ => Err(wanted()),
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", decimal(self.0.into(), 4))
    }
}

/// A priority of policy `fixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(pub i32);

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let priority = text.parse().ok().filter(|priority| PRIORITIES.contains(priority));
        priority
            .map(Priority)
            .ok_or_else(|| format!("'{text}' is no priority: write a whole number from -1000 to 1000"))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// With whom a client shares one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// With the connections of the same application.
    App,
    /// With those of the same user.
    User,
    Named(String),
    /// With nobody, also where an earlier rule says otherwise.
    Nobody,
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "app" => Ok(Group::App),
            "user" => Ok(Group::User),
            "none" => Ok(Group::Nobody),
            _ => name(text).map(Group::Named),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Group::App => "app",
            Group::User => "user",
            Group::Nobody => "none",
            Group::Named(name) => name,
        })
    }
}

/// A name that can stand in messages, in the protocol and on a command line.
pub fn name(text: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match (1..=NAME_LENGTH).contains(&text.len()) && text.bytes().all(is_fit) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{}' is no name: write 1 to {NAME_LENGTH} letters, digits and . _ -",
            crate::mistake::shown(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_they_are_read() {
        for text in ["auto", "none", "10ms/40ms", "0.5ms/16ms"] {
            assert_eq!(text.parse::<Reserve>().unwrap().to_string(), text);
        }
        for text in ["20%", "1%", "1.5%", "100%", "99.9999%"] {
            assert_eq!(text.parse::<Cap>().unwrap().to_string(), text);
        }
        for text in ["app", "user", "none", "players"] {
            assert_eq!(text.parse::<Group>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
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
            assert!(text.parse::<Group>().unwrap_err().contains("is no name"), "{text}");
        }
    }
}
