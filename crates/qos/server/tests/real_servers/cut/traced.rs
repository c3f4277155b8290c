// SPDX-License-Identifier: MIT
//! Tests the records of cut requests in a trace of level `requests`.

use super::sheet::{LONG, Sheet, begin, start};
use super::world::message;
use crate::wire::{Wire, opcode};
use std::collections::BTreeSet;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::ClientId;

/// All entries that are in the trace now.
fn events(reader: &mut RingReader) -> Vec<Entry> {
    let next = || match reader.read() {
        Next::Record(words) => Some(Event::decode(words).expect("a record").what),
        Next::Lost(records) => panic!("{records} records of the trace were overwritten"),
        Next::Nothing | Next::Ended => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn fifty_rests_are_pending_among_many_clients() {
    const CLIENTS: usize = 2000;
    const OWNERS: usize = 60;
    const PARTS: usize = 150;
    let Some((_turn, mut fixture)) = start(|setup| setup.max_clients = 2048) else { return };
    let control = fixture.control().unwrap();
    let mut wires: Vec<Wire> = (0..CLIENTS).map(|_| fixture.native()).collect();
    let sheets: Vec<Sheet> = wires[..OWNERS].iter_mut().map(Sheet::new).collect();
    let mut holder = fixture.native();
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut reader = control.start_trace(Level::Requests, 1 << 18).unwrap();
        holder.set_grab(true);
        for (wire, sheet) in wires.iter_mut().zip(&sheets) {
            wire.send(&sheet.invert(wire, PARTS));
        }
        for wire in &mut wires {
            wire.send(&message(opcode::GET_INPUT_FOCUS, 0).finish());
        }
        holder.set_grab(false);
        assert!(wires.iter_mut().all(|wire| wire.answer().expect("a reply").is_ok()));
        control.stop_trace().unwrap();
        let (mut pending, mut most) = (BTreeSet::new(), 0);
        for event in events(&mut reader) {
            match event {
                Entry::Cut { client, .. } => _ = pending.insert(client),
                Entry::Request { client, .. } => _ = pending.remove(&client),
                _ => {}
            }
            most = most.max(pending.len());
        }
        assert!(most >= 50 && pending.is_empty(), "{most} rests at the same time, {pending:?} are left");
        kept.push((control.server_info().unwrap().memory_bytes, fixture.private_kb()));
    }
    assert_eq!(kept[0].0, kept[4].0, "{kept:?}");
    // The server allocates buffers in the first rounds.
    assert!(kept[4].1 < kept[2].1 + 100, "{kept:?}");
    for (wire, sheet) in wires.iter_mut().zip(&sheets) {
        sheet.assert_inverted(wire, &[PARTS; 5]);
    }
    fixture.assert_armed();
}

#[test]
fn a_trace_has_each_cut_request_once() {
    const TURNS: u32 = 5;
    const PARTS: u32 = 40;
    let Some((_turn, fixture)) = start(|_| {}) else { return };
    let control = fixture.control().unwrap();
    let (mut owner, mut other) = (fixture.native(), fixture.native());
    let sheet = Sheet::new(&mut owner);
    let mut reader = control.start_trace(Level::Requests, 1 << 18).unwrap();
    owner.send_many(&sheet.invert(&owner, PARTS as usize).repeat(TURNS as usize), TURNS as u16);
    owner.sync();
    begin(&control, &mut owner, &sheet);
    other.tell(&sheet.invert(&other, 1)).unwrap();
    control.release(owner.base).unwrap();
    owner.sync();
    control.stop_trace().unwrap();
    let events = events(&mut reader);
    let id = |wire: &Wire| {
        let of = |event: &Entry| match *event {
            Entry::Identity { client, base, .. } => (base == wire.base).then_some(client),
            _ => None,
        };
        events.iter().find_map(of).expect("it is in the trace")
    };
    let (owner, other): (ClientId, ClientId) = (id(&owner), id(&other));
    let fills = |of: ClientId| {
        let fills = events.iter().filter_map(move |event| match *event {
            Entry::Request { client, request: 70, bytes, .. } if client == of => Some((bytes - 12) / 8),
            _ => None,
        });
        fills.collect::<Vec<_>>()
    };
    assert_eq!(fills(owner), [vec![PARTS; TURNS as usize], vec![LONG as u32]].concat());
    assert_eq!(fills(other), [1]);
    let cuts = events.iter().filter_map(|event| match *event {
        Entry::Cut { client, request: 70, done, parts } if client == owner => Some((done, parts)),
        _ => None,
    });
    let cuts: Vec<(u32, u32)> = cuts.collect();
    let each = (0..TURNS).flat_map(|_| (1..PARTS).map(|done| (done, PARTS)));
    let of_long = (cuts.len() as u32).saturating_sub(TURNS * (PARTS - 1));
    assert!((1..LONG as u32).contains(&of_long), "the long request was cut {of_long} times");
    assert_eq!(cuts, each.chain((1..=of_long).map(|done| (done, LONG as u32))).collect::<Vec<_>>());
    let finished = |event: &&Entry| match **event {
        Entry::Finished { client, request: 70, by, .. } => client == owner && by == other,
        _ => false,
    };
    assert_eq!(events.iter().filter(finished).count(), 1);
}
