// SPDX-License-Identifier: MIT
//! Start-up: what happened until the first window was visible, and until the client was quiet.
//!
//! The window is visible at its first Expose, or at its first MapWindow if the client does not select Expose. The
//! client is quiet after its last message before [`QUIET_NS`] of silence in both directions. Silence before the first
//! window does not count: a program that computes for a long time before its first window has not started yet.

use super::names::NameId;
use super::round_trip::{Wait, WaitTotal};
use crate::observe::{Kind, Message};
use std::collections::BTreeMap;

/// Silence that ends the start-up. A blinking cursor or a clock sends more often.
pub const QUIET_NS: u64 = 2_000_000_000;

/// Totals up to a point in time.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    pub until_ns: u64,
    pub requests: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    pub waits: BTreeMap<NameId, WaitTotal>,
}

impl Phase {
    pub fn round_trips(&self) -> u64 {
        self.waits.values().map(|total| total.count).sum()
    }

    pub fn avoidable(&self) -> u64 {
        self.waits.values().map(WaitTotal::avoidable_count).sum()
    }

    pub fn waited_ns(&self) -> u64 {
        self.waits.values().map(|total| total.ns).sum()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Startup {
    so_far: Phase,
    mapped: Option<Phase>,
    exposed: Option<Phase>,
    quiet: Option<Phase>,
}

impl Startup {
    /// Takes a message. If it completes or reveals a wait, call [`Startup::waited`] first.
    pub fn message(&mut self, message: &Message<'_>) {
        let last_ns = self.so_far.until_ns;
        if self.quiet.is_none() && last_ns > 0 && message.first_ns.saturating_sub(last_ns) >= QUIET_NS {
            self.quiet = Some(self.so_far.clone());
        }
        self.so_far.until_ns = message.last_ns.max(last_ns);
        self.so_far.requests += u64::from(message.kind == Kind::Request);
        self.so_far.bytes = self.so_far.bytes.saturating_add(message.length);
        let first = match (message.kind, message.name) {
            (Kind::Request, "MapWindow" | "MapSubwindows") => &mut self.mapped,
            (Kind::Event, "Expose") => &mut self.exposed,
            _ => return,
        };
        if first.is_none() {
            *first = Some(self.so_far.clone());
            self.quiet = None;
        }
    }

    pub fn waited(&mut self, wait: &Wait) {
        self.so_far.waits.entry(wait.name).or_default().add(wait);
    }

    pub fn window(&self) -> Option<&Phase> {
        self.exposed.as_ref().or(self.mapped.as_ref())
    }

    /// Totals up to the silence that ends the start-up, or up to the last message if there was no such silence.
    pub fn quiet(&self) -> &Phase {
        self.quiet.as_ref().unwrap_or(&self.so_far)
    }

    /// True if the silence that ends the start-up occurred before `end_ns`.
    pub fn is_quiet(&self, end_ns: u64) -> bool {
        self.quiet.is_some() || end_ns.saturating_sub(self.so_far.until_ns) >= QUIET_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Spec, make};

    const SECOND: u64 = 1_000_000_000;

    fn startup(messages: &[(Kind, &str, u64)]) -> Startup {
        let mut startup = Startup::default();
        for &(kind, name, at_ns) in messages {
            startup.message(&make(&Spec { kind, name, at_ns, ..Spec::default() }));
        }
        startup
    }

    #[test]
    fn the_window_is_visible_when_exposed() {
        let both = startup(&[(Kind::Request, "MapWindow", SECOND), (Kind::Event, "Expose", SECOND + 5)]);
        assert_eq!(both.window().map(|phase| phase.until_ns), Some(SECOND + 5));
        let mapped = startup(&[(Kind::Request, "MapWindow", SECOND), (Kind::Request, "NoOperation", SECOND + 5)]);
        assert_eq!(mapped.window().map(|phase| (phase.until_ns, phase.requests)), Some((SECOND, 1)));
        assert!(startup(&[(Kind::Request, "InternAtom", SECOND)]).window().is_none());
    }

    #[test]
    fn two_seconds_of_silence_end_the_start_phase() {
        let messages = [
            (Kind::Request, "InternAtom", SECOND),
            (Kind::Request, "InternAtom", 2 * SECOND),
            (Kind::Event, "KeyPress", 5 * SECOND),
        ];
        let startup = startup(&messages);
        assert_eq!((startup.quiet().until_ns, startup.quiet().requests), (2 * SECOND, 2));
        assert!(startup.is_quiet(5 * SECOND));
    }

    #[test]
    fn silence_before_the_first_window_does_not_end_the_start() {
        let startup = startup(&[
            (Kind::Request, "InternAtom", SECOND),
            (Kind::Request, "MapWindow", 9 * SECOND),
            (Kind::Event, "Expose", 10 * SECOND),
            (Kind::Event, "KeyPress", 20 * SECOND),
        ]);
        assert_eq!(startup.quiet().until_ns, 10 * SECOND);
    }

    #[test]
    fn a_capture_that_ends_early_was_not_quiet() {
        let startup = startup(&[(Kind::Request, "InternAtom", SECOND)]);
        assert!(!startup.is_quiet(2 * SECOND) && startup.is_quiet(3 * SECOND));
        assert_eq!(startup.quiet().until_ns, SECOND);
    }
}
