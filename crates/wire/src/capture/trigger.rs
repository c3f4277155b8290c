// SPDX-License-Identifier: MIT
//! Decides which part of a capture is kept, from a start event to a stop event.
//!
//! | state | until | kept |
//! |---|---|---|
//! | waiting | the start event | the last seconds, in memory |
//! | running | the stop event | everything |
//! | over | never | nothing |
//!
//! Time comes from the packets, or from the caller while there are none.

use crate::observe::{ConnectionId, Kind, Message, Observer};
use std::cell::RefCell;
use std::rc::Rc;

/// A user or client event that can start or stop a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// KeyPress, from the core protocol or XInput.
    Key,
    /// MapWindow. MapSubwindows does not count: it maps children of a window that is not visible yet.
    FirstWindow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    On(Occasion),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    On(Occasion),
    /// No X message for this long after the last one.
    Quiet {
        ns: u64,
    },
}

/// When to start and stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub start: Start,
    pub stop: Option<Stop>,
    /// Time before the start that is kept.
    pub before_ns: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { start: Start::Now, stop: None, before_ns: 0 }
    }
}

impl Settings {
    /// True if messages must be decoded.
    pub fn needs_messages(&self) -> bool {
        self.start != Start::Now || self.stop.is_some()
    }
}

/// Events seen since the last [`Lookout::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    pub key: bool,
    pub window: bool,
    pub message: bool,
}

impl Signs {
    fn has(self, occasion: Occasion) -> bool {
        match occasion {
            Occasion::Key => self.key,
            Occasion::FirstWindow => self.window,
        }
    }
}

/// Observes a session for trigger events. Clones share what they have seen.
#[derive(Clone, Debug, Default)]
pub struct Lookout(Rc<RefCell<Signs>>);

impl Lookout {
    pub fn take(&self) -> Signs {
        self.0.take()
    }
}

impl Observer for Lookout {
    fn message(&mut self, _: ConnectionId, message: &Message<'_>) {
        let mut signs = self.0.borrow_mut();
        signs.message = true;
        match (message.kind, message.name) {
            (Kind::Event, "KeyPress" | "XInputExtension::KeyPress" | "XInputExtension::DeviceKeyPress") => {
                signs.key = true;
            }
            (Kind::Request, "MapWindow") => signs.window = true,
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Running,
    Over,
}

/// State machine of the recording.
#[derive(Clone, Debug)]
pub struct Trigger {
    settings: Settings,
    state: State,
    last_message_ns: Option<u64>,
}

impl Trigger {
    pub fn new(settings: Settings) -> Trigger {
        let state = if settings.start == Start::Now { State::Running } else { State::Waiting };
        Trigger { settings, state, last_message_ns: None }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Time has passed: before a packet with this time, or without one.
    pub fn pass(&mut self, now_ns: u64) {
        let Some(Stop::Quiet { ns }) = self.settings.stop else { return };
        let silence_ns = self.last_message_ns.map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        if self.state == State::Running && silence_ns >= ns {
            self.state = State::Over;
        }
    }

    /// A packet contained these events. The packet is part of the recording that it starts or stops.
    pub fn see(&mut self, at_ns: u64, signs: Signs) {
        if signs.message {
            self.last_message_ns = Some(at_ns);
        }
        self.state = match (self.state, self.settings.start, self.settings.stop) {
            (State::Waiting, Start::On(occasion), _) if signs.has(occasion) => State::Running,
            (State::Running, _, Some(Stop::On(occasion))) if signs.has(occasion) => State::Over,
            (state, _, _) => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Signs = Signs { key: false, window: false, message: false };
    const MESSAGE: Signs = Signs { message: true, ..NOTHING };
    const KEY: Signs = Signs { key: true, ..MESSAGE };
    const WINDOW: Signs = Signs { window: true, ..MESSAGE };

    fn trigger(start: Start, stop: Option<Stop>) -> Trigger {
        Trigger::new(Settings { start, stop, before_ns: 0 })
    }

    #[test]
    fn from_the_first_window_to_the_next_key() {
        let mut trigger = trigger(Start::On(Occasion::FirstWindow), Some(Stop::On(Occasion::Key)));
        for (signs, state) in [
            (KEY, State::Waiting),
            (MESSAGE, State::Waiting),
            (WINDOW, State::Running),
            (WINDOW, State::Running),
            (KEY, State::Over),
            (WINDOW, State::Over),
        ] {
            trigger.see(1, signs);
            assert_eq!(trigger.state(), state, "{signs:?}");
        }
    }

    #[test]
    fn quiet_is_counted_from_the_last_message_and_not_before_the_first() {
        let mut trigger = trigger(Start::Now, Some(Stop::Quiet { ns: 100 }));
        trigger.pass(5000);
        assert_eq!(trigger.state(), State::Running, "nobody has said anything yet");
        trigger.see(5000, MESSAGE);
        trigger.see(5050, NOTHING);
        trigger.pass(5099);
        trigger.see(5099, MESSAGE);
        trigger.pass(5198);
        assert_eq!(trigger.state(), State::Running);
        trigger.pass(5199);
        assert_eq!(trigger.state(), State::Over);
    }
}
