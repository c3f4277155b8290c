// SPDX-License-Identifier: MIT
//! Shows a trace with a million messages of a capture in a real Chromium: rows for both directions, and which slice
//! executed a request.

#[path = "../../../../web/chromium.rs"]
mod chromium;

use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service, Time};
use xqos_trace::export::page;
use xqos_trace::file::Header;
use xqos_trace::names::Names;
use xqos_trace::wire::{Message, Wire, WireConnection};

const US: u64 = 1_000;
/// The number of requests; each has a reply.
const REQUESTS: u64 = 500_000;
const OF_A_SLICE: u64 = 100;
/// A request is sent every 10 us. A slice begins 50 us after its last request was sent, and takes 200 us.
const EVERY: u64 = 10;

fn sent(sequence: u64) -> Time {
    Time((1000 + sequence * EVERY) * US)
}

/// The beginning and the end of the slice that executes a request.
fn slice(sequence: u64) -> (Time, Time) {
    let last = sequence.div_ceil(OF_A_SLICE) * OF_A_SLICE;
    let begin = sent(last).0 + 50 * US;
    (Time(begin), Time(begin + 200 * US))
}

fn events() -> Vec<Event> {
    let client = ClientId(2);
    let mut events = vec![
        Event { at: Time(0), what: Entry::Fact(Fact::Connected { client: ClientId(1), descriptor: 4 }) },
        Event { at: Time(500 * US), what: Entry::Fact(Fact::Connected { client, descriptor: 5 }) },
        Event { at: Time(500 * US), what: Entry::Identity { client, pid: 9, base: 0x40_0000, uid: 0 } },
    ];
    for first in (1..=REQUESTS).step_by(OF_A_SLICE as usize) {
        let (start, end) = slice(first);
        events.push(Event { at: start, what: Entry::Fact(Fact::Arrived { client }) });
        let requests = OF_A_SLICE as u32;
        let served = Service { requests, last_request: 16, ..Service::new(client, start, end) };
        events.push(Event { at: end, what: Entry::Fact(Fact::Served(served)) });
    }
    events
}

fn wire() -> Wire {
    let message = |sequence, is_request| {
        let at = if is_request { sent(sequence) } else { Time(slice(sequence).1.0 + 30 * US) };
        Message { at, is_request, sequence, bytes: 20, name: u32::from(!is_request) }
    };
    let mut messages: Vec<Message> =
        (1..=REQUESTS).flat_map(|sequence| [message(sequence, true), message(sequence, false)]).collect();
    messages.sort_by_key(|message| message.at);
    let known = WireConnection { name: "emacs".to_owned(), accepted: Some((0x40_0000, Time(600 * US))), messages };
    let unknown =
        WireConnection { name: "10.0.0.1:4000 (connection 2)".to_owned(), accepted: None, messages: Vec::new() };
    Wire { connections: vec![known, unknown], names: vec!["InternAtom".to_owned(), "InternAtom reply".to_owned()] }
}

const SCRIPT: &str = "
    const root = document.documentElement.dataset, us = 1e3;
    const tip = (t, y) => {
      const box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x(t), clientY: box.top + y }));
      return document.getElementById('tip').textContent.split('\\n').slice(2).join('; ');
    };
    const [lane, other] = lanes, strip = lane.top + LANE;
    root.names = lanes.map(one => one.name).join('; ');
    root.counts = lane.wire.directions.map(one => one.times.length).join();
    root.whole = [lane, other].map(one => one.wire.isWhole).join();
    draw();
    timeline.show(5000 * us, 8000 * us); draw();
    // Request 500 is sent at 6 ms; its slice is from 6.05 to 6.25 ms, and its reply is sent at 6.28 ms.
    root.request = tip(6000 * us, strip + 4); root.reply = tip(6280 * us, strip + 15);
    root.slice = tip(6100 * us, lane.top + 20).includes('served 200.0');
    root.apart = other.top - lane.top === LANE + WIRE && other.top + LANE + WIRE < height;
    root.legend = !document.getElementById('wire').hidden;";

#[test]
fn chromium_shows_a_million_messages_with_the_slices_that_executed_them() {
    let additions = page::Additions { wire: wire(), ..page::Additions::default() };
    let page = page::render(&Header::default(), events().into_iter(), &Names::default(), additions).unwrap();
    let Some(seen) = chromium::run_script(page.as_bytes(), SCRIPT) else { return };
    let root = chromium::root(&seen);
    for (attribute, expected) in [
        ("names", "pid 9 emacs; 10.0.0.1:4000 (connection 2)"),
        ("counts", "500000,500000"),
        ("whole", "true,false"),
        ("request", "to the server: InternAtom, 20 bytes, request 500; its slice began 50.00 µs later"),
        (
            "reply",
            "from the server: InternAtom reply, 20 bytes, request 401; the slice of its request ended 30.00 µs earlier",
        ),
        ("slice", "true"),
        ("apart", "true"),
        ("legend", "true"),
    ] {
        assert!(root.contains(&format!("data-{attribute}=\"{expected}\"")), "{attribute}: {root}");
    }
}
