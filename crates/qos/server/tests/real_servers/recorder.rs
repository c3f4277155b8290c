// SPDX-License-Identifier: MIT
//! Tests with RECORD: a recorder sees every request while xqos runs.

use crate::fixture::{Fixture, SOON, entry, policies, served, wait_for};
use crate::survival::policy;
use crate::wire::{Wire, opcode};
use std::time::{Duration, Instant};
use xqos_abi::ByteOrder;
use xqos_core::PolicyKind;

/// Under each policy, a recorder sees each request once, whether it started before or after the policy was set.
#[test]
fn a_recorder_sees_every_request_under_every_policy() {
    let (mut fixture, control) = served();
    for kind in policies() {
        for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
            control.set_policy(policy(PolicyKind::Fair)).unwrap();
            let mut client = fixture.wire(order);
            let recorder = Recorder::start(&fixture);
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded before any change");
            control.set_policy(policy(kind)).unwrap();
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded before the policy was set");
            recorder.end();
            client.sync();
            let recorder = Recorder::start(&fixture);
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded since the policy was set");
            control.set_policy(policy(PolicyKind::Fair)).unwrap();
            assert_eq!(recorder.seen_of(&mut client), 100, "{kind:?} {order:?}: recorded after the next policy");
            client.set_sync_priority(0, 9).unwrap();
            assert_eq!((client.sync_priority(0), entry(&control, client.base).sync_priority), (9, 9));
            // The recorder disconnects with its context enabled.
            drop(recorder);
            client.sync();
        }
    }
    fixture.assert_armed();
}

/// Records one core request and all extension requests of some clients.
pub struct Recorder {
    control: x11rb::rust_connection::RustConnection,
    context: u32,
    seen: std::sync::Arc<std::sync::atomic::AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Recorder {
    /// Records NoOperation of all clients except its own two connections.
    pub fn start(fixture: &Fixture) -> Recorder {
        const ALL_CLIENTS: u32 = 3;
        Recorder::start_of(fixture, ALL_CLIENTS, opcode::NO_OPERATION)
    }

    /// Records the requests with this opcode of these clients.
    pub fn start_of(fixture: &Fixture, clients: u32, opcode: u8) -> Recorder {
        use std::sync::atomic::Ordering::SeqCst;
        use x11rb::connection::Connection;
        use x11rb::protocol::record::{ConnectionExt, ExtRange, Range, Range8, Range16};
        const FROM_CLIENT: u8 = 1;
        const START_OF_DATA: u8 = 4;
        let (control, data) = (fixture.connect().unwrap(), fixture.connect().unwrap());
        let context = control.generate_id().unwrap();
        let range = Range {
            core_requests: Range8 { first: opcode, last: opcode },
            ext_requests: ExtRange {
                major: Range8 { first: 128, last: 255 },
                minor: Range16 { first: 0, last: u16::MAX },
            },
            ..Range::default()
        };
        control.record_create_context(context, 0, &[clients], &[range]).unwrap().check().unwrap();
        let seen = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let enabled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (count, is_enabled) = (std::sync::Arc::clone(&seen), std::sync::Arc::clone(&enabled));
        let thread = std::thread::spawn(move || {
            let replies = data.record_enable_context(context).unwrap();
            for reply in replies.map_while(Result::ok) {
                match reply.category {
                    START_OF_DATA => is_enabled.store(true, SeqCst),
                    FROM_CLIENT => {
                        count.fetch_add(requests_in(&reply.data, opcode), SeqCst);
                    }
                    _ => {}
                }
            }
        });
        wait_for("the recorder runs", SOON, || enabled.load(SeqCst));
        Recorder { control, context, seen, thread }
    }

    /// How many requests with the opcode were recorded.
    pub fn seen(&self) -> u64 {
        self.seen.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Sends a hundred NoOperation requests from the client. Returns how many of them were recorded.
    pub fn seen_of(&self, client: &mut Wire) -> u64 {
        use std::sync::atomic::Ordering::SeqCst;
        let before = self.seen.load(SeqCst);
        let request = client.message(opcode::NO_OPERATION, 0).finish();
        (0..100).for_each(|_| client.send(&request));
        client.sync();
        let end = Instant::now() + SOON;
        while self.seen.load(SeqCst) < before + 100 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen.load(SeqCst) - before
    }

    pub fn end(self) {
        use x11rb::protocol::record::ConnectionExt;
        self.control.record_disable_context(self.context).unwrap().check().unwrap();
        self.thread.join().unwrap();
    }
}

/// How many of these requests have this opcode.
fn requests_in(data: &[u8], opcode: u8) -> u64 {
    let (mut rest, mut count) = (data, 0);
    while let &[major, _, low, high, ..] = rest {
        count += u64::from(major == opcode);
        // The lengths are in the byte order of the client. NoOperation has one word in both.
        let words = if opcode == opcode::NO_OPERATION { 1 } else { u16::from_ne_bytes([low, high]) };
        rest = rest.get(4 * usize::from(words.max(1))..).unwrap_or_default();
    }
    count
}
