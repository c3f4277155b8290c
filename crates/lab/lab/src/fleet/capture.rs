// SPDX-License-Identifier: MIT
//! The traffic of a session's programs, as a capture: atoms are queried one by one, then each burst has a round trip.

use super::session::{PROGRAMS, SimulatedSession, Turn};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use xqos_sim::Dice;
use xqos_wire::capture::CaptureWriter;
use xqos_wire::capture::conversation::Conversation;
use xqos_wire::observe::Direction;

/// Round trip of a query at the start, on a local network.
const ROUND_TRIP_NS: u64 = 400_000;
const STEP_NS: u64 = 600_000;
const FIRST_PORT: u16 = 40_000;
const DISPLAY_0: u16 = 6000;

const INTERN_ATOM: u8 = 16;
const QUERY_POINTER: u8 = 38;
/// XSync sends this request and waits for its reply.
const GET_INPUT_FOCUS: u8 = 43;

struct TimedBytes {
    at_ns: u64,
    place: usize,
    way: Direction,
    bytes: Vec<u8>,
}

struct ClientTraffic {
    place: usize,
    sequence: u16,
    sent: Vec<TimedBytes>,
}

pub(super) fn write(file: &Path, session: &SimulatedSession, turns: &[Turn]) -> Result<()> {
    let failed = || format!("cannot write {}", file.display());
    let mut sent: Vec<_> = (0..session.programs.len()).flat_map(|place| traffic(session, place, turns).sent).collect();
    // The sort is stable, so a query stays before an answer with the same time.
    sent.sort_by_key(|message| message.at_ns);
    let out = BufWriter::new(File::create(file).with_context(failed)?);
    packets(out, session, &sent).with_context(failed)
}

fn packets(out: impl Write, session: &SimulatedSession, sent: &[TimedBytes]) -> std::io::Result<()> {
    let mut writer = CaptureWriter::new(out, concat!("xqos ", env!("CARGO_PKG_VERSION")))?;
    let server = DISPLAY_0 + session.display;
    let mut conversations: Vec<Option<Conversation>> = session.programs.iter().map(|_| None).collect();
    for TimedBytes { at_ns, place, way, bytes } in sent {
        let conversation = match &mut conversations[*place] {
            Some(conversation) => conversation,
            none => {
                let conversation = none.insert(Conversation::new(FIRST_PORT + *place as u16, server));
                writer.write(&conversation.open(Direction::Requests, *at_ns))?;
                writer.write(&conversation.open(Direction::Replies, *at_ns))?;
                writer.write(&conversation.acknowledge(Direction::Replies, *at_ns, true))?;
                conversation
            }
        };
        writer.write(&conversation.data(*way, *at_ns, bytes))?;
        writer.write(&conversation.acknowledge(*way, *at_ns, true))?;
    }
    Ok(())
}

fn traffic(session: &SimulatedSession, place: usize, turns: &[Turn]) -> ClientTraffic {
    let program = &PROGRAMS[session.programs[place]];
    let mut traffic = ClientTraffic { place, sequence: 0, sent: Vec::new() };
    let own = || turns.iter().filter(|turn| turn.place == place);
    let Some(first) = own().next() else { return traffic };
    let mut at_ns = first.asked_unix_ns - (u64::from(program.atoms) + 2) * STEP_NS;
    let mut setup = vec![b'l', 0, 11, 0];
    setup.resize(12, 0);
    let mut welcome = vec![1, 0, 11, 0, 0, 0, 100, 0];
    welcome.resize(8 + 400, 0);
    traffic.send(at_ns, Direction::Requests, setup);
    traffic.send(at_ns + ROUND_TRIP_NS, Direction::Replies, welcome);
    for atom in 0..program.atoms {
        at_ns += STEP_NS;
        let name = format!("_ATOM_{atom:06}");
        let length = (name.len() as u16).to_le_bytes();
        let request = [&[INTERN_ATOM, 0, 5, 0, length[0], length[1], 0, 0], name.as_bytes()].concat();
        traffic.ask(request, (at_ns, at_ns + ROUND_TRIP_NS), atom);
    }
    let mut dice = Dice::new(place as u64);
    for (number, turn) in (0..).zip(own()) {
        let is_sync = dice.below(100) < program.syncs;
        let request = if is_sync { vec![GET_INPUT_FOCUS, 0, 1, 0] } else { vec![QUERY_POINTER, 0, 2, 0, 1, 0, 0, 0] };
        // All requests are different, so none could be answered from a cache.
        traffic.ask(request, (turn.asked_unix_ns, turn.done_unix_ns.max(turn.asked_unix_ns + 1)), number);
    }
    traffic
}

impl ClientTraffic {
    fn send(&mut self, at_ns: u64, way: Direction, bytes: Vec<u8>) {
        self.sent.push(TimedBytes { at_ns, place: self.place, way, bytes });
    }

    fn ask(&mut self, request: Vec<u8>, (asked_ns, answered_ns): (u64, u64), answer: u32) {
        self.sequence = self.sequence.wrapping_add(1);
        let mut reply = vec![1, 0];
        reply.extend(self.sequence.to_le_bytes());
        reply.extend([0; 4]);
        reply.extend(answer.to_le_bytes());
        reply.resize(32, 0);
        self.send(asked_ns, Direction::Requests, request);
        self.send(answered_ns, Direction::Replies, reply);
    }
}
