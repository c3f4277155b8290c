//! What `xqos cap` is told: times, ports, and the events to start and stop on.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use xqos_cli::quantity::Micros;
use xqos_text::time;
use xqos_wire::capture::trigger::{Occasion, Start, Stop};

/// How long to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match time::read_ns(text)? {
            0 => Err(format!("{text} is no time at all: it has to be above 0")),
            ns => Ok(Time(Duration::from_nanos(ns))),
        }
    }
}

/// One port, or the first and the last of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub RangeInclusive<u16>);

impl Ports {
    /// The port, where there is one only: whatever goes there is X.
    pub fn only(&self) -> Option<u16> {
        (self.0.start() == self.0.end()).then_some(*self.0.start())
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Ports(first..=last)),
            _ => Err(format!("'{text}' is no port: write one such as 6010, or the first and last such as 6000-6063")),
        }
    }
}

/// What begins the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartOn(pub Start);

impl FromStr for StartOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, occasion(text)) {
            ("now", _) => Ok(StartOn(Start::Now)),
            (_, Some(occasion)) => Ok(StartOn(Start::On(occasion))),
            _ => Err(format!("'{text}' is nothing to start on: write now, key or first-window")),
        }
    }
}

/// What ends the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopOn(pub Stop);

impl FromStr for StopOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(time) = text.strip_prefix("quiet=") {
            return time.parse::<Micros>().map(|time| StopOn(Stop::Quiet { ns: u64::from(time.0) * 1000 }));
        }
        let wanted = || format!("'{text}' is nothing to stop on: write key, first-window or quiet=2s");
        occasion(text).map(|occasion| StopOn(Stop::On(occasion))).ok_or_else(wanted)
    }
}

fn occasion(text: &str) -> Option<Occasion> {
    match text {
        "key" => Some(Occasion::Key),
        "first-window" => Some(Occasion::FirstWindow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text: &str| text.parse::<Time>().map(|time| time.0.as_millis());
        assert_eq!((ms("500ms"), ms("1.5s"), ms("2min"), ms("1h")), (Ok(500), Ok(1500), Ok(120_000), Ok(3_600_000)));
        for (text, words) in [
            ("", "such as 3ms"),
            ("5", "write 5ms"),
            ("s", "such as 3ms"),
            ("-1s", "such as 3ms"),
            ("0s", "above 0"),
            ("1day", "use us, ms, s, min or h"),
            ("99999999999999999999h", "such as 3ms"),
        ] {
            assert!(ms(text).is_err_and(|error| error.contains(words)), "{text}");
        }
    }

    #[test]
    fn ports_are_one_or_a_range() {
        assert_eq!("6010".parse(), Ok(Ports(6010..=6010)));
        assert_eq!("6000-6063".parse(), Ok(Ports(6000..=6063)));
        for text in ["", "0", "x", "6063-6000", "6000-", "65536"] {
            assert!(text.parse::<Ports>().is_err_and(|error| error.contains("such as 6010")), "{text}");
        }
    }

    #[test]
    fn events_are_named() {
        assert_eq!("key".parse(), Ok(StartOn(Start::On(Occasion::Key))));
        assert_eq!("quiet=2s".parse(), Ok(StopOn(Stop::Quiet { ns: 2_000_000_000 })));
        assert!("now".parse::<StopOn>().is_err_and(|error| error.contains("quiet=2s")));
        assert!("quiet=2".parse::<StopOn>().is_err_and(|error| error.contains("unit")));
        assert!("quiet".parse::<StartOn>().is_err_and(|error| error.contains("first-window")));
    }
}
