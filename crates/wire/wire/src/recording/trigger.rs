// SPDX-License-Identifier: MIT
//! Decides which part of a capture is kept, from a start event to a stop event.
//!
//! | state | until | kept |
//! |---|---|---|
//! | waiting | the start event | the last seconds, in memory |
//! | running | the stop event | everything |
//! | over | the end of the capture, or with `repeat` the next start event | nothing |
//!
//! The time is taken from the packets; while there are none, the caller provides it.

mod watcher;

pub use watcher::EventWatcher;

use crate::x11::message_name::MessageName;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    /// A key press, from the core protocol or XInput.
    Key,
    Button,
    /// The pointer moves while a button is pressed.
    Drag,
    /// MapWindow of a window with this WM_NAME or WM_CLASS. MapSubwindows does not count: it maps children of a window
    /// that is not visible yet.
    Window(Option<String>),
    /// A program takes a selection, or asks for its contents.
    Selection,
    Message(MessageName),
    /// A request has no answer after this time.
    Wait {
        ns: u64,
    },
    /// [`TriggerSettings::signal`] was set.
    Signal,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    #[default]
    Now,
    On(TriggerEvent),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    On(TriggerEvent),
    /// No X message arrives within this time after the last one.
    Quiet {
        ns: u64,
    },
    /// This time has passed since the start.
    After {
        ns: u64,
    },
}

#[derive(Clone, Debug, Default)]
pub struct TriggerSettings {
    pub start: Start,
    pub stop: Option<Stop>,
    /// Length of the time before the start event that is also kept.
    pub before_ns: u64,
    /// Wait for the start event again after the stop event.
    pub repeat: bool,
    /// The caller sets this when it has received a signal.
    pub signal: Arc<AtomicBool>,
}

impl TriggerSettings {
    pub fn needs_messages(&self) -> bool {
        self.start != Start::Now || self.stop.is_some()
    }

    pub fn needs_signal(&self) -> bool {
        self.start == Start::On(TriggerEvent::Signal) || self.stop == Some(Stop::On(TriggerEvent::Signal))
    }

    /// True if a file may begin in the middle of a connection.
    pub fn can_join(&self) -> bool {
        self.start != Start::Now || self.repeat
    }
}

/// Events since the last [`EventWatcher::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenEvents {
    pub start: bool,
    pub stop: bool,
    pub message: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerState {
    Waiting,
    Running,
    Over,
}

#[derive(Clone, Debug)]
pub struct Trigger {
    settings: TriggerSettings,
    pub state: TriggerState,
    pub has_started: bool,
    started_ns: Option<u64>,
    last_message_ns: Option<u64>,
}

impl Trigger {
    pub fn new(settings: TriggerSettings) -> Trigger {
        let has_started = settings.start == Start::Now;
        let state = if has_started { TriggerState::Running } else { TriggerState::Waiting };
        Trigger { settings, state, has_started, started_ns: None, last_message_ns: None }
    }

    /// After the stop event, waits for the start event again if `repeat` is set. Returns whether it is set.
    pub fn restart(&mut self) -> bool {
        let is_wanted = self.settings.repeat && self.state == TriggerState::Over;
        if is_wanted {
            let has_started = self.has_started;
            *self = Trigger { has_started, ..Trigger::new(self.settings.clone()) };
        }
        is_wanted
    }

    /// Advances the time: before each packet, and regularly while there are none.
    pub fn advance_to(&mut self, now_ns: u64) {
        if self.state == TriggerState::Running {
            self.started_ns.get_or_insert(now_ns);
        }
        let (since_ns, ns) = match self.settings.stop {
            Some(Stop::Quiet { ns }) => (self.last_message_ns, ns),
            Some(Stop::After { ns }) => (self.started_ns, ns),
            _ => return,
        };
        let is_late = since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= ns);
        if self.state == TriggerState::Running && is_late {
            self.state = TriggerState::Over;
        }
    }

    /// Takes the events in a packet. The packet is part of the recording that these events start or stop.
    pub fn observe(&mut self, at_ns: u64, seen: SeenEvents) {
        // Silence before the start does not count.
        if seen.message || self.state == TriggerState::Waiting {
            self.last_message_ns = seen.message.then_some(at_ns);
        }
        self.state = match (self.state, &self.settings.stop) {
            (TriggerState::Waiting, _) if seen.start => TriggerState::Running,
            (TriggerState::Running, Some(Stop::On(_))) if seen.stop => TriggerState::Over,
            (state, _) => state,
        };
        if self.state == TriggerState::Running {
            self.has_started = true;
            self.started_ns.get_or_insert(at_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: SeenEvents = SeenEvents { start: false, stop: false, message: false };
    const MESSAGE: SeenEvents = SeenEvents { message: true, ..NOTHING };
    const START: SeenEvents = SeenEvents { start: true, ..MESSAGE };
    const STOP: SeenEvents = SeenEvents { stop: true, ..MESSAGE };
    const WINDOW: TriggerEvent = TriggerEvent::Window(None);

    fn trigger(start: Start, stop: Stop, repeat: bool) -> Trigger {
        Trigger::new(TriggerSettings { start, stop: Some(stop), repeat, ..TriggerSettings::default() })
    }

    #[test]
    fn a_recording_runs_from_the_first_start_event_to_the_next_stop_event() {
        let mut trigger = trigger(Start::On(WINDOW), Stop::On(TriggerEvent::Key), false);
        assert!(!trigger.has_started);
        for (seen, state) in [
            (STOP, TriggerState::Waiting),
            (MESSAGE, TriggerState::Waiting),
            (START, TriggerState::Running),
            (START, TriggerState::Running),
            (STOP, TriggerState::Over),
            (START, TriggerState::Over),
        ] {
            trigger.observe(1, seen);
            assert_eq!(trigger.state, state, "{seen:?}");
        }
        assert!(trigger.has_started && !trigger.restart() && trigger.state == TriggerState::Over);
    }

    #[test]
    fn a_repeated_recording_waits_for_its_start_event_again() {
        let mut trigger = trigger(Start::On(WINDOW), Stop::Quiet { ns: 100 }, true);
        for at_ns in [1000, 2000, 3000] {
            assert_eq!(trigger.state, TriggerState::Waiting);
            trigger.observe(at_ns, START);
            trigger.advance_to(at_ns + 99);
            assert!(trigger.state == TriggerState::Running && !trigger.restart());
            trigger.advance_to(at_ns + 100);
            assert!(trigger.state == TriggerState::Over && trigger.restart());
        }
    }

    #[test]
    fn quiet_is_counted_from_the_last_message_and_not_before_the_first() {
        let mut trigger = trigger(Start::Now, Stop::Quiet { ns: 100 }, true);
        trigger.advance_to(5000);
        assert_eq!(trigger.state, TriggerState::Running, "no message has arrived yet");
        trigger.observe(5000, MESSAGE);
        trigger.observe(5050, NOTHING);
        trigger.advance_to(5099);
        trigger.observe(5099, MESSAGE);
        trigger.advance_to(5198);
        assert_eq!(trigger.state, TriggerState::Running);
        trigger.advance_to(5199);
        assert!(trigger.state == TriggerState::Over && trigger.restart());
        trigger.advance_to(9000);
        assert_eq!(trigger.state, TriggerState::Running, "the silence before the new start does not count");
    }

    #[test]
    fn silence_before_a_signal_does_not_count() {
        let mut trigger = trigger(Start::On(TriggerEvent::Signal), Stop::Quiet { ns: 100 }, false);
        trigger.observe(1000, MESSAGE);
        trigger.observe(5000, SeenEvents { start: true, ..NOTHING });
        trigger.advance_to(5500);
        assert_eq!(trigger.state, TriggerState::Running, "no message has arrived since the signal");
        trigger.observe(6000, MESSAGE);
        trigger.advance_to(6099);
        assert_eq!(trigger.state, TriggerState::Running);
        trigger.advance_to(6100);
        assert_eq!(trigger.state, TriggerState::Over);
    }

    #[test]
    fn the_time_limit_is_counted_from_the_start() {
        let mut trigger = trigger(Start::On(WINDOW), Stop::After { ns: 100 }, false);
        trigger.observe(1000, MESSAGE);
        trigger.advance_to(2000);
        trigger.observe(2000, START);
        trigger.observe(2050, START);
        trigger.advance_to(2099);
        assert_eq!(trigger.state, TriggerState::Running);
        trigger.advance_to(2100);
        assert_eq!(trigger.state, TriggerState::Over);
    }

    #[test]
    fn time_passes_without_packets() {
        let mut trigger = trigger(Start::Now, Stop::After { ns: 100 }, true);
        for from_ns in [1000, 2000] {
            trigger.advance_to(from_ns);
            trigger.advance_to(from_ns + 99);
            assert_eq!(trigger.state, TriggerState::Running);
            trigger.advance_to(from_ns + 100);
            assert!(trigger.state == TriggerState::Over && trigger.restart());
        }
    }
}
