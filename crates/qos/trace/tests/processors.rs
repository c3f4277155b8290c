// SPDX-License-Identifier: MIT
//! Shows a trace with records of the kernel in a real Chromium: the lanes of two processors above that of a client.

#[path = "../../../../web/chromium.rs"]
mod chromium;

use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::{ClientId, Fact, Service, Time};
use xqos_trace::export::page;
use xqos_trace::file::Header;
use xqos_trace::names::Names;

const MS: u64 = 1_000_000;
const SERVER: u32 = 9;
const MPV: u32 = 101;
const VO: u32 = 555;

fn name(text: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Processor 0 runs the server and a thread of mpv; processor 1 runs make. A request of mpv is cut.
fn events() -> Vec<Event> {
    let (client, cpu, still_runnable, is_soft) = (ClientId(1), 0, false, false);
    let served = Service { requests: 2, ..Service::new(client, Time(20 * MS), Time(30 * MS)) };
    let events = [
        (0, Entry::Begin { level: Level::Slices, server_pid: SERVER, words: 0 }),
        (0, Entry::Fact(Fact::Connected { client, descriptor: 4 })),
        (0, Entry::Identity { client, pid: MPV, base: 1 << 20, uid: 0 }),
        (0, Entry::Name { client, part: 0, bytes: name("mpv") }),
        (5, Entry::ThreadName { thread: SERVER, bytes: name("Xvfb") }),
        (5, Entry::ThreadName { thread: MPV, bytes: name("mpv") }),
        (5, Entry::ThreadName { thread: VO, bytes: name("vo") }),
        (5, Entry::Thread { thread: VO, process: MPV }),
        (5, Entry::InterruptName { number: 1, is_soft, bytes: name("i8042") }),
        (5, Entry::InterruptName { number: 2, is_soft: true, bytes: name("RCU") }),
        (10, Entry::Interrupt { cpu, number: 1, is_soft, ns: 2 * MS }),
        // A hard interrupt within a soft one, which is recorded later.
        (34, Entry::Interrupt { cpu: 1, number: 1, is_soft, ns: MS }),
        (38, Entry::Interrupt { cpu: 1, number: 2, is_soft: true, ns: 8 * MS }),
        (12, Entry::Wakeup { cpu, thread: VO }),
        (15, Entry::Fact(Fact::Arrived { client })),
        (20, Entry::Switch { cpu, from: 0, to: SERVER, still_runnable }),
        (24, Entry::Cut { client, request: 70, done: 1, parts: 4 }),
        (26, Entry::Finished { client, request: 70, by: client, ns: MS }),
        (30, Entry::Fact(Fact::Served(served))),
        (30, Entry::Switch { cpu, from: SERVER, to: VO, still_runnable }),
        (40, Entry::Switch { cpu: 1, from: 77, to: 0, still_runnable }),
        (50, Entry::End),
    ];
    events.into_iter().map(|(at, what)| Event { at: Time(at * MS), what }).collect()
}

const SCRIPT: &str = "
    const root = document.documentElement.dataset, scale = devicePixelRatio || 1, ms = 1e6;
    const colour = (t, y) => [...pen.getImageData(x(t * ms) * scale, y * scale, 1, 1).data].slice(0, 3).join();
    const wanted = name => { pen.fillStyle = colours[name]; pen.fillRect(0, 0, 1, 1); const seen = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).join(); draw(); return seen; };
    const tip = (t, y) => {
      const box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x(t * ms), clientY: box.top + y }));
      return document.getElementById('tip').textContent.split('\\n').slice(2).join('; ');
    };
    const [one, two] = [TOP + 11, TOP + PROCESSOR + 11], lane = CLIENTS + 30;
    root.names = processors.map(one => one.name).concat(lanes.map(one => one.name)).join();
    root.legend = !document.getElementById('processors').hidden;
    const is = (t, y, name) => colour(t, y) === wanted(name) ? 1 : 0;
    root.said = [is(25, one, 'served'), is(45, one, 'burst'), is(15, one, 'paper'), is(35, two, 'line'), is(45, two, 'paper'),
      is(9, TOP + 4, 'interrupt'), is(12, TOP + 30, 'wakeup'), is(22, lane, 'served'), is(25.5, lane, 'cut'),
      is(24, CLIENTS + 14, 'cut')].join('');
    root.run = tip(45, one); root.interrupt = tip(9, one); root.woken = tip(12, one); root.other = tip(35, two);
    root.nested = tip(33.5, two); root.soft = tip(37, two);
    root.cut = tip(24, lane).includes('its request is cut here'); root.rest = tip(25.5, lane).includes('for another client: 1.000 ms');";

#[test]
fn chromium_shows_processors_and_cuts_on_the_time_axis_of_the_clients() {
    let page =
        page::render(&Header::default(), events().into_iter(), &Names::default(), page::Additions::default()).unwrap();
    let Some(seen) = chromium::run_script(page.as_bytes(), SCRIPT) else { return };
    let root = chromium::root(&seen);
    for (attribute, expected) in [
        ("names", "processor 0,processor 1,mpv (101)"),
        ("legend", "true"),
        ("said", "1111111111"),
        ("run", "mpv: vo (555) for 20.00 ms"),
        ("interrupt", "idle; interrupt i8042 (1), 2.000 ms"),
        ("woken", "idle; wakes mpv: vo (555)"),
        ("other", "thread 77 for 40.00 ms; interrupt soft: RCU, 8.000 ms"),
        ("nested", "thread 77 for 40.00 ms; interrupt i8042 (1), 1.000 ms; interrupt soft: RCU, 8.000 ms"),
        ("soft", "thread 77 for 40.00 ms; interrupt soft: RCU, 8.000 ms"),
        ("cut", "true"),
        ("rest", "true"),
    ] {
        assert!(root.contains(&format!("data-{attribute}=\"{expected}\"")), "{attribute}: {root}");
    }
}
