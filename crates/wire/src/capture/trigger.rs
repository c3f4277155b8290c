// SPDX-License-Identifier: MIT
//! Decides which part of a capture is kept, from a start event to a stop event.
//!
//! | state | until | kept |
//! |---|---|---|
//! | waiting | the start event | the last seconds, in memory |
//! | running | the stop event | everything |
//! | over | the end of the capture | nothing |
//!
//! The time is taken from the packets; while there are none, the caller provides it.

use crate::observe::{ConnectionId, Kind, Message, Observer};
use std::cell::RefCell;
use std::rc::Rc;

/// A user or client event that can start or stop a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    /// KeyPress, from the core protocol or XInput.
    Key,
    /// MapWindow. MapSubwindows does not count: it maps children of a window that is not visible yet.
    FirstWindow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    On(TriggerEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    On(TriggerEvent),
    /// No X message arrives within this time after the last one.
    Quiet {
        ns: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub start: Start,
    pub stop: Option<Stop>,
    /// Length of the time before the start event that is also kept.
    pub before_ns: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { start: Start::Now, stop: None, before_ns: 0 }
    }
}

impl Settings {
    pub fn needs_messages(&self) -> bool {
        self.start != Start::Now || self.stop.is_some()
    }
}

/// Events seen since the last [`EventWatcher::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenEvents {
    pub key: bool,
    pub window: bool,
    pub message: bool,
}

impl SeenEvents {
    fn has(self, event: TriggerEvent) -> bool {
        match event {
            TriggerEvent::Key => self.key,
            TriggerEvent::FirstWindow => self.window,
        }
    }
}

/// Observes a session for trigger events. Clones share what they have seen.
#[derive(Clone, Debug, Default)]
pub struct EventWatcher(Rc<RefCell<SeenEvents>>);

impl EventWatcher {
    pub fn take(&self) -> SeenEvents {
        self.0.take()
    }
}

impl Observer for EventWatcher {
    fn message(&mut self, _: ConnectionId, message: &Message<'_>) {
        let mut seen = self.0.borrow_mut();
        seen.message = true;
        match (message.kind, message.name) {
            (Kind::Event, "KeyPress" | "XInputExtension::KeyPress" | "XInputExtension::DeviceKeyPress") => {
                seen.key = true;
            }
            (Kind::Request, "MapWindow") => seen.window = true,
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

    /// Advances the time: before each packet, and regularly while there are none.
    pub fn advance_to(&mut self, now_ns: u64) {
        let Some(Stop::Quiet { ns }) = self.settings.stop else { return };
        let silence_ns = self.last_message_ns.map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        if self.state == State::Running && silence_ns >= ns {
            self.state = State::Over;
        }
    }

    /// Takes the events in a packet. The packet is part of the recording that these events start or stop.
    pub fn observe(&mut self, at_ns: u64, seen: SeenEvents) {
        if seen.message {
            self.last_message_ns = Some(at_ns);
        }
        self.state = match (self.state, self.settings.start, self.settings.stop) {
            (State::Waiting, Start::On(event), _) if seen.has(event) => State::Running,
            (State::Running, _, Some(Stop::On(event))) if seen.has(event) => State::Over,
            (state, _, _) => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: SeenEvents = SeenEvents { key: false, window: false, message: false };
    const MESSAGE: SeenEvents = SeenEvents { message: true, ..NOTHING };
    const KEY: SeenEvents = SeenEvents { key: true, ..MESSAGE };
    const WINDOW: SeenEvents = SeenEvents { window: true, ..MESSAGE };

    fn trigger(start: Start, stop: Option<Stop>) -> Trigger {
        Trigger::new(Settings { start, stop, before_ns: 0 })
    }

    #[test]
    fn a_recording_runs_from_the_first_window_to_the_next_key() {
        let mut trigger = trigger(Start::On(TriggerEvent::FirstWindow), Some(Stop::On(TriggerEvent::Key)));
        for (seen, state) in [
            (KEY, State::Waiting),
            (MESSAGE, State::Waiting),
            (WINDOW, State::Running),
            (WINDOW, State::Running),
            (KEY, State::Over),
            (WINDOW, State::Over),
        ] {
            trigger.observe(1, seen);
            assert_eq!(trigger.state(), state, "{seen:?}");
        }
    }

    #[test]
    fn quiet_is_counted_from_the_last_message_and_not_before_the_first() {
        let mut trigger = trigger(Start::Now, Some(Stop::Quiet { ns: 100 }));
        trigger.advance_to(5000);
        assert_eq!(trigger.state(), State::Running, "nobody has said anything yet");
        trigger.observe(5000, MESSAGE);
        trigger.observe(5050, NOTHING);
        trigger.advance_to(5099);
        trigger.observe(5099, MESSAGE);
        trigger.advance_to(5198);
        assert_eq!(trigger.state(), State::Running);
        trigger.advance_to(5199);
        assert_eq!(trigger.state(), State::Over);
    }
}
