// SPDX-License-Identifier: MIT
//! Tests that timed messages become the right script.

use super::*;
use crate::observe::Ending;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Feeds messages to a recorder; times are in microseconds.
#[derive(Default)]
struct Wire {
    recorder: ScriptRecorder,
    sequence: [u64; 4],
}

impl Wire {
    fn new(remedy: Option<Remedy>) -> Wire {
        Wire { recorder: ScriptRecorder::with_remedy(remedy), sequence: [0; 4] }
    }

    fn open(&mut self, id: u32, at_us: u64, started_midstream: bool) {
        let (client, server) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:6000".parse().unwrap());
        self.recorder.opened(ConnectionId(id), &Opened { at_ns: at_us * US, client, server, started_midstream });
    }

    fn say(&mut self, id: u32, kind: Kind, name: &str, at_us: u64, bytes: &[u8]) {
        let has_reply = kind == Kind::Request && !matches!(name, "CreateWindow" | "MapWindow" | "PutImage");
        if kind == Kind::Request {
            self.sequence[id as usize] += 1;
        }
        let message = Message {
            kind,
            sequence: self.sequence[id as usize],
            name,
            major: 1,
            minor: 0,
            has_reply,
            offset: 0,
            length: bytes.len() as u64,
            first_ns: at_us * US,
            last_ns: at_us * US,
            is_little_endian: true,
            bytes,
        };
        self.recorder.message(ConnectionId(id), &message);
    }

    fn shake(&mut self, direction: Direction, at_us: u64, is_control: bool) {
        let (at_ns, window) = (at_us * US, 1 << 16);
        let (offset, length, acknowledged, is_retransmission) = (0, 0, 0, false);
        let packet = Packet { direction, at_ns, offset, length, acknowledged, window, is_retransmission, is_control };
        self.recorder.packet(ConnectionId(0), &packet);
    }

    fn greet(&mut self, id: u32, at_us: u64) {
        self.say(id, Kind::Setup, "Setup", at_us, &[0; 12]);
        self.say(id, Kind::SetupReply, "SetupReply", at_us + 100, &[0; 100]);
    }

    fn script(self) -> Script {
        self.recorder.script().unwrap()
    }
}

fn thoughts(script: &Script) -> Vec<(u64, Option<(usize, bool)>)> {
    let told = |step: &Step| (step.think_ns / US, step.after.map(|after| (after.index, after.is_reply)));
    script.steps.iter().map(told).collect()
}

#[test]
fn waits_thinking_and_service_times_are_distinguished() {
    let mut wire = Wire::new(None);
    wire.open(0, 0, false);
    wire.greet(0, 50);
    wire.say(0, Kind::Request, "InternAtom", 1_150, &[0; 20]);
    wire.say(0, Kind::Reply, "InternAtom", 1_400, &[0; 32]);
    wire.say(0, Kind::Request, "CreateWindow", 31_400, &[0; 40]);
    wire.say(0, Kind::Request, "MapWindow", 31_400, &[0; 8]);
    wire.say(0, Kind::Event, "Expose", 31_700, &[0; 32]);
    wire.say(0, Kind::Request, "PutImage", 32_700, &[0; 400]);
    let script = wire.script();
    assert_eq!(
        thoughts(&script),
        [
            (0, None),
            (50, None),
            (1_000, Some((0, true))),
            (30_000, Some((1, true))),
            // An event woke the program.
            (1_000, Some((2, false))),
        ]
    );
    assert_eq!(script.steps[3].action, StepAction::Send(48), "requests of one packet are one step");
    let services: Vec<_> = script.messages[0].iter().map(|it| (it.cause, it.service_ns / US, it.bytes)).collect();
    assert_eq!(services, [(12, 100, 100), (32, 250, 32), (80, 300, 32)]);
}

#[test]
fn a_second_connection_continues_the_same_thread_of_control() {
    let mut wire = Wire::new(None);
    wire.open(0, 0, false);
    wire.greet(0, 50);
    wire.open(1, 2_150, false);
    wire.greet(1, 2_200);
    wire.say(0, Kind::Request, "InternAtom", 2_800, &[0; 20]);
    let script = wire.script();
    assert_eq!(script.steps[2].after, Some(Awaited { connection: 0, index: 0, is_reply: true }));
    assert_eq!((script.steps[2].think_ns / US, script.steps[2].action), (2_000, StepAction::Open));
    let last = script.steps.last().unwrap();
    assert_eq!((last.connection, last.after.unwrap().connection, last.think_ns / US), (0, 1, 500));
}

#[test]
fn two_seconds_of_silence_after_a_window_end_the_start() {
    let mut wire = Wire::new(None);
    wire.open(0, 0, false);
    wire.greet(0, 50);
    wire.say(0, Kind::Request, "InternAtom", 5_000_000, &[0; 20]);
    wire.say(0, Kind::Request, "MapWindow", 5_100_000, &[0; 8]);
    wire.say(0, Kind::Request, "InternAtom", 7_000_000, &[0; 20]);
    wire.say(0, Kind::Request, "InternAtom", 9_000_001, &[0; 20]);
    wire.recorder.ended(ConnectionId(0), 10_000 * MS, Ending::Finished);
    assert_eq!(wire.script().steps.len(), 5);
}

#[test]
fn without_a_window_the_first_silence_ends_the_start() {
    let mut wire = Wire::new(None);
    wire.open(0, 0, false);
    wire.greet(0, 50);
    wire.say(0, Kind::Request, "InternAtom", 1_000, &[0; 20]);
    wire.say(0, Kind::Reply, "InternAtom", 1_300, &[0; 32]);
    wire.open(1, 3_000_000, false);
    wire.greet(1, 3_000_100);
    wire.say(0, Kind::Request, "InternAtom", 9_000_000, &[0; 20]);
    let script = wire.script();
    let lengths: Vec<usize> = script.messages.iter().map(Vec::len).collect();
    assert_eq!((script.steps.len(), lengths), (3, vec![2]), "one connection with a setup and a reply");
}

#[test]
fn a_connection_after_the_silence_is_not_part_of_the_start() {
    let mut wire = Wire::new(None);
    wire.open(0, 0, false);
    wire.greet(0, 50);
    wire.say(0, Kind::Request, "MapWindow", 1_000, &[0; 8]);
    wire.open(1, 3_001_000, false);
    wire.greet(1, 3_001_100);
    assert_eq!(wire.script().steps.len(), 3);
}

#[test]
fn an_error_of_a_request_without_a_reply_is_not_a_round_trip() {
    for (name, is_reply) in [("PutImage", false), ("InternAtom", true)] {
        let mut wire = Wire::new(None);
        wire.open(0, 0, false);
        wire.greet(0, 50);
        wire.say(0, Kind::Request, name, 10_000, &[0; 20]);
        wire.say(0, Kind::Error, "Value", 10_300, &[0; 32]);
        wire.say(0, Kind::Request, "MapWindow", 10_400, &[0; 8]);
        assert_eq!(thoughts(&wire.script())[3].1, Some((1, is_reply)), "{name}");
    }
}

#[test]
fn requests_that_a_proxy_answers_cost_no_wait() {
    for (proxy, bytes) in [(Remedy::Strict, 4), (Remedy::Lbx, 0)] {
        let mut wire = Wire::new(Some(proxy));
        wire.open(0, 0, false);
        wire.greet(0, 50);
        let mut atom = [0; 32];
        atom[8] = 7;
        wire.say(0, Kind::Request, "InternAtom", 1_150, &[0; 20]);
        wire.say(0, Kind::Reply, "InternAtom", 1_400, &atom);
        wire.say(0, Kind::Request, "GetInputFocus", 1_600, &[0; 4]);
        wire.say(0, Kind::Reply, "GetInputFocus", 1_700, &[0; 32]);
        wire.say(0, Kind::Request, "MapWindow", 1_800, &[0; 8]);
        let script = wire.script();
        assert_eq!(script.steps[2].action, StepAction::Send(bytes), "{proxy:?}");
        assert_eq!(script.messages[0].len(), 2, "the greeting and the focus");
        let after: Vec<_> = script.steps.iter().map(|step| step.after.map(|after| after.index)).collect();
        assert_eq!(after, [None, None, Some(0), Some(0), Some(1)], "the atom needs no later message");
    }
}

#[test]
fn the_duration_of_a_handshake_does_not_change_the_script() {
    let start = |syns: &[u64], accepted: u64| {
        let mut wire = Wire::new(None);
        wire.open(0, syns[0], false);
        syns.iter().for_each(|&at_us| wire.shake(Direction::Requests, at_us, true));
        wire.shake(Direction::Replies, accepted, true);
        wire.shake(Direction::Requests, accepted + 10, false);
        wire.say(0, Kind::Setup, "Setup", accepted + 300, &[0; 12]);
        wire.say(0, Kind::SetupReply, "SetupReply", accepted + 300 + (accepted - syns[syns.len() - 1]) + 50, &[0; 100]);
        let script = wire.script();
        (thoughts(&script), script.messages)
    };
    let fast = start(&[0], 200);
    assert_eq!(fast.0, [(0, None), (290, None)]);
    assert_eq!(fast.1[0].iter().map(|message| message.service_ns).collect::<Vec<_>>(), [50 * US]);
    assert_eq!(start(&[0], 100_000), fast, "over 50 ms one way");
    assert_eq!(start(&[0, 1_000_000, 3_000_000], 3_100_000), fast, "with two of three lost");
}

#[test]
fn the_number_of_recorded_connections_is_bounded() {
    let mut wire = Wire::new(None);
    (0..5_000_u32).for_each(|id| wire.open(id, u64::from(id), false));
    assert_eq!(wire.script().messages.len(), MAX_CONNECTIONS);
}

#[test]
fn an_incomplete_start_gives_no_script() {
    let mut joined = Wire::new(None);
    joined.open(0, 0, true);
    assert_eq!(joined.recorder.script(), None);
    let mut torn = Wire::new(None);
    torn.open(0, 0, false);
    torn.greet(0, 50);
    let gap =
        MissingBytes { direction: Direction::Replies, at_ns: MS, offset: 100, length: 10, is_within_message: false };
    torn.recorder.gap(ConnectionId(0), &gap);
    assert_eq!(torn.recorder.script(), None);
    assert_eq!(ScriptRecorder::default().script(), None);
}
