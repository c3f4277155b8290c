// SPDX-License-Identifier: MIT
//! Watches the messages of a session for the events that start and stop a recording.
//!
//! Most events are in one message. Drags, names of windows and waits also need earlier messages: a button press without
//! a release, the properties of a window, requests without an answer.

use super::{SeenEvents, Start, Stop, TriggerEvent, TriggerSettings};
use crate::observe::{ConnectionId, Ending, Kind, Message, Observer};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of windows whose names are remembered, and of unanswered requests of a connection.
const MAX_WINDOWS: usize = 4096;
const MAX_UNANSWERED: usize = 65_536;
/// Predefined atoms.
const WM_NAME: u32 = 39;
const WM_CLASS: u32 = 67;

/// Observes a session for trigger events.
#[derive(Debug)]
pub struct EventWatcher {
    /// The events that start and that stop the recording.
    wanted: [Option<TriggerEvent>; 2],
    signal: Arc<AtomicBool>,
    seen: SeenEvents,
    history: History,
}

#[derive(Debug, Default)]
struct History {
    /// WM_NAME, and both parts of WM_CLASS.
    names: HashMap<(ConnectionId, u32), [Vec<String>; 2]>,
    pressed: HashSet<ConnectionId>,
    unanswered: HashMap<ConnectionId, VecDeque<Unanswered>>,
}

#[derive(Clone, Copy, Debug)]
struct Unanswered {
    sequence: u64,
    at_ns: u64,
    /// Whether its wait was reported as start and as stop event.
    is_reported: [bool; 2],
}

impl EventWatcher {
    pub fn new(settings: &TriggerSettings) -> EventWatcher {
        let start = if let Start::On(event) = &settings.start { Some(event.clone()) } else { None };
        let stop = if let Some(Stop::On(event)) = &settings.stop { Some(event.clone()) } else { None };
        let signal = Arc::clone(&settings.signal);
        EventWatcher { wanted: [start, stop], signal, seen: SeenEvents::default(), history: History::default() }
    }

    pub fn take(&mut self) -> SeenEvents {
        std::mem::take(&mut self.seen)
    }

    /// Looks for events that no message contains: long waits and signals.
    pub fn advance_to(&mut self, now_ns: u64) {
        let is_signalled = self.signal.swap(false, Ordering::Relaxed);
        for (index, event) in self.wanted.iter().enumerate() {
            let is_seen = match event {
                Some(TriggerEvent::Signal) => is_signalled,
                Some(TriggerEvent::Wait { ns }) => self.history.has_long_wait(index, now_ns, *ns),
                _ => false,
            };
            *(if index == 0 { &mut self.seen.start } else { &mut self.seen.stop }) |= is_seen;
        }
    }
}

impl Observer for EventWatcher {
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let EventWatcher { wanted, seen, history, .. } = self;
        seen.message = true;
        for (event, seen) in wanted.iter().zip([&mut seen.start, &mut seen.stop]) {
            *seen |= event.as_ref().is_some_and(|event| history.take(event, id, message));
        }
    }

    fn ended(&mut self, id: ConnectionId, _: u64, _: Ending) {
        self.history.pressed.remove(&id);
        self.history.unanswered.remove(&id);
    }
}

/// The name of an input event, without the prefixes of XInput 1 and 2.
fn input<'a>(message: &Message<'a>) -> &'a str {
    let name = message.name;
    let name = name.strip_prefix("XInputExtension::").map_or(name, |name| name.strip_prefix("Device").unwrap_or(name));
    if message.kind == Kind::Event { name } else { "" }
}

impl History {
    /// Takes a message, and returns whether it is the event.
    fn take(&mut self, event: &TriggerEvent, id: ConnectionId, message: &Message<'_>) -> bool {
        let is_request = |name| message.kind == Kind::Request && message.name == name;
        match event {
            TriggerEvent::Key => input(message) == "KeyPress",
            TriggerEvent::Button => input(message) == "ButtonPress",
            TriggerEvent::Drag => self.is_drag(id, message),
            TriggerEvent::Window(None) => is_request("MapWindow"),
            TriggerEvent::Window(Some(name)) if is_request("MapWindow") => self.has_name(id, message, name),
            TriggerEvent::Window(Some(_)) => {
                let _ = self.learn_name(id, message);
                false
            }
            TriggerEvent::Selection => is_request("SetSelectionOwner") || is_request("ConvertSelection"),
            TriggerEvent::Message(name) => name.matches(message.kind, message.name),
            TriggerEvent::Wait { .. } => {
                self.learn_wait(id, message);
                false
            }
            TriggerEvent::Signal => false,
        }
    }

    fn is_drag(&mut self, id: ConnectionId, message: &Message<'_>) -> bool {
        match input(message) {
            "ButtonPress" => _ = self.pressed.insert(id),
            "ButtonRelease" => _ = self.pressed.remove(&id),
            "MotionNotify" | "Motion" => return self.pressed.contains(&id),
            _ => {}
        }
        false
    }

    fn has_name(&self, id: ConnectionId, message: &Message<'_>, wanted: &str) -> bool {
        let names = message.word(4).and_then(|window| self.names.get(&(id, window)));
        names.into_iter().flatten().flatten().any(|name| name.eq_ignore_ascii_case(wanted))
    }

    /// Remembers the text of WM_NAME or WM_CLASS.
    fn learn_name(&mut self, id: ConnectionId, message: &Message<'_>) -> Option<()> {
        if message.kind != Kind::Request || message.name != "ChangeProperty" || message.bytes.get(16) != Some(&8) {
            return None;
        }
        let (window, property, length) = (message.word(4)?, message.word(8)?, message.word(20)? as usize);
        let place = [WM_NAME, WM_CLASS].iter().position(|&known| known == property)?;
        let text = message.bytes.get(24..)?;
        let text = String::from_utf8_lossy(&text[..text.len().min(length)]);
        if self.names.len() >= MAX_WINDOWS && !self.names.contains_key(&(id, window)) {
            self.names.clear();
        }
        let names = text.split('\0').filter(|name| !name.is_empty());
        self.names.entry((id, window)).or_default()[place] = names.map(str::to_owned).collect();
        Some(())
    }

    fn learn_wait(&mut self, id: ConnectionId, message: &Message<'_>) {
        let unanswered = self.unanswered.entry(id).or_default();
        let sequence = message.sequence;
        match message.kind {
            Kind::Request if message.has_reply && unanswered.len() < MAX_UNANSWERED => {
                unanswered.push_back(Unanswered { sequence, at_ns: message.last_ns, is_reported: [false; 2] });
            }
            // The server answers in order.
            Kind::Reply | Kind::Error => {
                while unanswered.front().is_some_and(|first| first.sequence <= sequence) {
                    unanswered.pop_front();
                }
            }
            _ => {}
        }
    }

    fn has_long_wait(&mut self, index: usize, now_ns: u64, ns: u64) -> bool {
        let firsts = self.unanswered.values_mut().filter_map(VecDeque::front_mut);
        let long = firsts.filter(|first| !first.is_reported[index] && now_ns.saturating_sub(first.at_ns) > ns);
        long.map(|first| first.is_reported[index] = true).count() > 0
    }
}

#[cfg(test)]
mod tests;
