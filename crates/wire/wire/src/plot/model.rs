// SPDX-License-Identifier: MIT
//! An observer that stores the parts of a capture that are drawn, in packed form.

use super::activity::{DirectionActivity, of_connection};
use super::rows::Rows;
use super::texts::Texts;
use super::track::{Track, Window};
use crate::analysis::names::NameTable;
use crate::analysis::spans::Spans;
use crate::analysis::states::States;
use crate::analysis::waits::Waits;
use crate::observe::{ConnectionId, Ending, Kind, Message, MissingBytes, Observer, Opened, Packet};
use crate::x11::message_name::Filter;
use std::collections::BTreeMap;

/// Maximum number of messages of all connections, about ten bytes each.
pub const MAX_MESSAGES: u64 = 8_000_000;
/// Maximum number of packets and gaps. A packet takes about ten bytes in total over both directions.
pub const MAX_PACKETS: u64 = 8_000_000;
/// Maximum number of connections. A desktop opens a few hundred in a day.
const MAX_CONNECTIONS: usize = 4_096;
/// Longest capture, 52 days. A later time means a damaged capture.
const MAX_NS: u64 = 1 << 52;

#[derive(Clone, Debug)]
pub struct Choice {
    /// Number of the only connection to keep, counted from 1 by first appearance.
    pub connection: Option<u32>,
    /// Time since the first connection's start.
    pub window: Window,
    /// The messages to keep. Packets stay.
    pub filter: Filter,
    /// Keep the fields of messages as text.
    pub with_fields: bool,
}

impl Default for Choice {
    fn default() -> Choice {
        let window = Window { from_ns: 0, to_ns: u64::MAX };
        Choice { connection: None, window, filter: Filter::default(), with_fields: false }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub connections: u64,
    pub messages: u64,
    pub packets: u64,
    pub fields: u64,
}

impl LeftOut {
    pub fn counts(&self) -> [(&'static str, u64); 4] {
        let LeftOut { connections, messages, packets, fields } = *self;
        [("connections", connections), ("messages", messages), ("packets", packets), ("fields of messages", fields)]
    }
}

#[derive(Debug)]
pub struct Connection {
    pub number: u32,
    pub opened: Opened,
    pub opened_ns: u64,
    pub ended_ns: u64,
    pub ending: Ending,
    /// Indexed by [direction](crate::observe::Direction).
    pub tracks: [Track; 2],
    /// Round trips that the client waited for: start, duration, name, and 1 + the index of its
    /// [reason](crate::analysis::avoidable::Reason::ALL), or 0.
    pub trips: Rows<4>,
    pub activity: [DirectionActivity; 2],
    states: States,
    waits: Waits,
}

impl Connection {
    fn new(number: u32, opened: &Opened, opened_ns: u64) -> Connection {
        Connection {
            number,
            opened: *opened,
            opened_ns,
            ended_ns: opened_ns,
            ending: Ending::Open,
            tracks: <[Track; 2]>::default(),
            trips: Rows::default(),
            activity: Default::default(),
            states: States::new(opened.started_midstream),
            waits: Waits::default(),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.tracks.iter().map(|track| track.bytes).sum()
    }

    /// True if the kept time contains no packet or message of the connection.
    pub fn is_empty(&self) -> bool {
        self.tracks.iter().all(|track| track.packets.is_empty() && track.messages.is_empty())
    }

    pub fn has_no_message(&self) -> bool {
        self.tracks.iter().all(|track| track.messages.is_empty())
    }

    fn end(&mut self, at_ns: u64, began_ns: u64, window: &Window) {
        self.states.end(at_ns);
        self.waits.end();
        self.activity = of_connection(&self.states, self.waits.spans.list(), began_ns, window);
        // Free the states, which grow with the connection.
        self.states = States::default();
        self.waits.spans = Spans::default();
        self.tracks.iter_mut().for_each(|track| track.begin_steps(window));
    }
}

#[derive(Debug, Default)]
pub struct Plot {
    pub choice: Choice,
    /// Nanoseconds since 1970.
    pub began_ns: u64,
    /// Time from the start to the last packet.
    pub ended_ns: u64,
    pub names: NameTable,
    pub texts: Texts,
    pub connections: BTreeMap<ConnectionId, Connection>,
    pub left_out: LeftOut,
    has_begun: bool,
    messages: u64,
    packets: u64,
}

impl Plot {
    pub fn new(choice: Choice) -> Plot {
        Plot { choice, ..Plot::default() }
    }

    /// The time that is drawn: the chosen part, limited to the capture.
    pub fn window(&self) -> Window {
        let window = self.choice.window;
        Window {
            from_ns: window.from_ns.min(self.ended_ns),
            to_ns: window.to_ns.min(self.ended_ns).max(window.from_ns),
        }
    }

    pub fn busiest(&self) -> Option<&Connection> {
        self.connections.values().rev().max_by_key(|connection| connection.bytes())
    }

    fn since(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.began_ns).min(MAX_NS)
    }

    fn takes_packet(&mut self, at_ns: u64) -> bool {
        self.choice.window.contains(at_ns) && has_room(&mut self.packets, MAX_PACKETS, &mut self.left_out.packets)
    }

    fn takes_message(&mut self, at_ns: u64) -> bool {
        self.choice.window.contains(at_ns) && has_room(&mut self.messages, MAX_MESSAGES, &mut self.left_out.messages)
    }
}

/// Counts one more item as kept if there is room, otherwise as left out.
fn has_room(count: &mut u64, most: u64, left_out: &mut u64) -> bool {
    let has_room = *count < most;
    *(if has_room { count } else { left_out }) += 1;
    has_room
}

impl Observer for Plot {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.began_ns = opened.at_ns;
        }
        let number = id.0.saturating_add(1);
        if self.choice.connection.is_some_and(|chosen| chosen != number) {
            return;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.left_out.connections += 1;
            return;
        }
        self.connections.insert(id, Connection::new(number, opened, self.since(opened.at_ns)));
    }

    fn packet(&mut self, id: ConnectionId, packet: &Packet) {
        if !self.connections.contains_key(&id) {
            return;
        }
        let (at_ns, window) = (self.since(packet.at_ns), self.choice.window);
        self.ended_ns = self.ended_ns.max(at_ns);
        let is_taken = self.takes_packet(at_ns);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.states.packet(packet);
        connection.ended_ns = connection.ended_ns.max(at_ns);
        let (own, other) = packet.direction.own_and_other(&mut connection.tracks);
        if is_taken {
            own.packet(at_ns, packet);
        }
        // Packets before the window determine the first step.
        if is_taken || at_ns < window.from_ns {
            other.acknowledged(at_ns, packet, &window);
        }
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        if !self.connections.contains_key(&id) {
            return;
        }
        let times = [message.first_ns, message.last_ns].map(|at_ns| self.since(at_ns));
        let is_wanted = self.choice.filter.takes(message.kind, message.name);
        let is_taken = is_wanted && self.takes_message(times[1]);
        let text = if is_taken && self.choice.with_fields { self.texts.number(message) } else { 0 };
        let name = self.names.id(message.name);
        let (began_ns, window) = (self.began_ns, self.choice.window);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some(wait) = connection.waits.message(message, name, &mut self.names) {
            let since = |at_ns: u64| at_ns.saturating_sub(began_ns).min(MAX_NS);
            let (from_ns, to_ns) = (since(wait.from_ns), since(wait.to_ns));
            let is_wanted = self.choice.filter.takes(Kind::Request, self.names.name(wait.name));
            if is_wanted && window.contains(to_ns) {
                let reason = wait.avoidable.map_or(0, |reason| reason as u64 + 1);
                connection.trips.push([from_ns, to_ns.saturating_sub(from_ns), u64::from(wait.name.0), reason]);
            }
        }
        if is_taken {
            let track = &mut connection.tracks[message.kind.direction() as usize];
            track.message(times, message, u64::from(name.0), text);
        }
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        let at_ns = self.since(gap.at_ns);
        let Some(connection) = self.connections.get(&id) else { return };
        // The snap length cut off these bytes, but packet and message are drawn in full length.
        if connection.tracks[gap.direction as usize].is_cut_off(gap) {
            return;
        }
        let is_taken = self.takes_packet(at_ns);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !gap.is_within_message {
            connection.waits.gap();
        }
        if is_taken {
            connection.tracks[gap.direction as usize].gap(at_ns, gap);
        }
    }

    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {
        let (since_ns, began_ns, window) = (self.since(at_ns), self.began_ns, self.choice.window);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended_ns = connection.ended_ns.max(since_ns);
            connection.ending = ending;
            connection.end(at_ns, began_ns, &window);
        }
        self.left_out.fields = self.texts.left_out;
    }
}
