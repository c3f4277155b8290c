// SPDX-License-Identifier: MIT
//! Shows a trace of a million records in a real Chromium, and tests drawing, mouse, keyboard, markers and statistics.

#[path = "../../../../web/chromium.rs"]
mod chromium;

use xqos_abi::trace::{Entry, Event, Reason};
use xqos_core::{ClientId, Fact, Mode, Service, Time};
use xqos_trace::export::page;
use xqos_trace::file::Header;
use xqos_trace::names::Names;

const US: u64 = 1_000;
const CLIENTS: u16 = 10;
const RECORDS: usize = 1_000_000;
const POLY_LINE: u32 = 65;

/// Ten clients take turns of a millisecond. Each sends requests at the end of the previous slice and waits 0.2 ms.
fn events() -> Vec<Event> {
    let mut events = Vec::with_capacity(RECORDS);
    let mut add = |at: u64, what| events.push(Event { at: Time(at * US), what });
    for id in 1..=CLIENTS {
        let (client, mut bytes) = (ClientId(id), *b"client0\0\0\0\0\0\0\0\0\0");
        bytes[6] += id as u8 - 1;
        add(0, Entry::Fact(Fact::Connected { client, descriptor: u32::from(id) }));
        add(0, Entry::Identity { client, pid: 100 + u32::from(id), base: u32::from(id) << 20, uid: 0 });
        add(0, Entry::Name { client, part: 0, bytes });
    }
    for turn in 0..(RECORDS as u64 - 3 * u64::from(CLIENTS)) / 3 {
        let (client, at) = (ClientId(1 + (turn % u64::from(CLIENTS)) as u16), 1000 * turn);
        let (until, requests, bytes) = (Time::NEVER, 3, 0);
        let (mode, reason) = (Mode::Reserved, Reason::Alone);
        add(at, Entry::Fact(Fact::Arrived { client }));
        add(at + 200, Entry::Dispatch { client: Some(client), mode, reason, until, requests, bytes });
        let service = Service::new(client, Time((at + 200) * US), Time((at + 999) * US));
        add(at + 999, Entry::Fact(Fact::Served(Service { requests, last_request: POLY_LINE, ..service })));
    }
    events
}

/// A script that operates the page. It sets attributes of the root element, and adds a 1 to `said` for each expected
/// result and a 0 for each unexpected result.
const SCRIPT: &str = "
    const root = document.documentElement.dataset, said = [], note = is => { draw(); said.push(is ? 1 : 0); };
    const press = key => { dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true })); draw(); };
    // There is no real pointer to capture.
    canvas.setPointerCapture = () => {};
    const box = canvas.getBoundingClientRect();
    const point = (kind, px, py, more) => canvas.dispatchEvent(new PointerEvent(kind, { clientX: box.left + px, clientY: box.top + py, ...more }));
    const wheel = (deltaY, more) => canvas.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + 400, clientY: box.top + 60, deltaY, cancelable: true, ...more }));
    const table = row => [...document.querySelectorAll('#stats tr')[row].children].map(one => one.textContent);
    root.lanes = lanes.map(lane => lane.name).join();
    root.slices = lanes.reduce((sum, lane) => sum + lane.slices.begins.length, 0);
    root.all = table(1)[1];

    // Long names and large figures must leave every column visible.
    const named = lanes.map(lane => lane.name), end = document.querySelector('aside').clientWidth;
    lanes.forEach(lane => { lane.name = 'gnome-settings-daemon-of-a-long-name (4123456)'; }); describe();
    const large = ['100.0 %', '920.7 ms', '920.7 ms', '1,119,828,634', '920.7 ms'];
    document.querySelectorAll('#stats td:not(:first-child)').forEach((cell, i) => { cell.textContent = large[i % large.length]; });
    const edges = [...document.querySelectorAll('#stats tr > :last-child')].map(cell => cell.getBoundingClientRect().right);
    const [name] = document.querySelectorAll('#stats td'), { left } = document.querySelector('aside').getBoundingClientRect();
    const seen = [edges.every(edge => edge <= left + end), name.offsetWidth > 80];
    lanes.forEach((lane, i) => { lane.name = named[i]; }); describe();
    seen.forEach(note);

    // A slice of the third lane: coloured where the client was served, and not after it.
    timeline.show(100 * 1e6, 110 * 1e6); draw();
    const scale = devicePixelRatio || 1, colour = (t, lane) => [...pen.getImageData(x(t) * scale, (TOP + LANE * lane + 25) * scale, 1, 1).data].join();
    note(colour(102.5e6, 2) !== colour(103.5e6, 2) && colour(103.5e6, 3) === colour(102.5e6, 2));
    root.near = table(1)[1] + table(1)[4];
    // Each lane shows the client's own turn, and nothing half a round later.
    root.drawn = lanes.filter((_, i) => colour((100.5 + i) * 1e6, i) !== colour((100.5 + (i + 5) % 10) * 1e6, i)).length;

    // Labels of the axis and of the lanes, and the client that the tooltip names.
    const written = () => { const all = [], write = pen.fillText; pen.fillText = text => all.push(text); draw(); pen.fillText = write; return all; };
    const find = document.getElementById('find'), look = text => { find.value = text; find.dispatchEvent(new Event('input')); draw(); };
    look('Client3'); root.found = written().filter(text => text.startsWith('client')).join() + ' ' + table(1)[0] + ' ' + document.querySelectorAll('#stats tr').length;
    find.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true })); note(timeline.a === null); look('');
    timeline.zoom(0.5, 102e6);
    root.ends = [timeline.from, timeline.to].map(Math.round).join();
    root.axis = written().filter(text => text.endsWith(' s')).join();
    root.names = written().filter(text => text.startsWith('client')).length;
    const tips = lanes.map((lane, i) => { point('pointermove', x(103e6), TOP + LANE * i + 20); return tip.textContent.split('\\n'); });
    note(tips.every((lines, i) => lines[0] === lanes[i].name && lines[1] === '0.103000 s'));
    timeline.show(100 * 1e6, 110 * 1e6); draw();

    const under = timeAt(400), before = timeline.length;
    wheel(300); note(timeline.length > before && Math.abs(timeAt(400) - under) < 1000);
    const first = timeline.from; wheel(100, { shiftKey: true }); note(timeline.from > first);
    const second = timeline.from; point('pointerdown', 500, 60); point('pointermove', 400, 60); point('pointerup', 400, 60); note(timeline.from > second && timeline.a === null);
    timeline.show(100 * 1e6, 110 * 1e6); draw();
    for (const [at, shiftKey] of [[101e6, false], [104e6, true]]) for (const kind of ['pointerdown', 'pointerup']) point(kind, x(at), 60, { shiftKey });
    note(Math.abs(timeline.a - 101e6) < 1e5 && Math.abs(timeline.b - 104e6) < 1e5);
    root.between = document.getElementById('what').textContent.slice(0, 9);
    root.served = [1, 2, 3, 4].map(row => Math.round(parseFloat(table(row)[1]))).join();
    document.getElementById('span').click(); note(Math.abs(timeline.length - 3e6) < 1e5);
    point('pointermove', x(102.5e6), TOP + LANE * 2 + 20); note(!tip.hidden && tip.textContent.includes('client2') && tip.textContent.includes('PolyLine'));
    press('Escape'); note(timeline.a === null && timeline.b === null);
    press('0'); note(timeline.from === 0 && timeline.to === timeline.end);
    press('+'); press('+'); const zoomed = timeline.length; note(zoomed < timeline.end / 2);
    press('End'); note(timeline.to === timeline.end); press('Home'); note(timeline.from === 0);
    press('ArrowRight'); press('PageDown'); note(timeline.from > zoomed); press('-'); note(timeline.length > zoomed);
    press('a'); press('b'); note(timeline.a === timeline.b);
    document.querySelector('#waits button').click(); note(timeline.b > timeline.a && timeline.from <= timeline.a && timeline.to >= timeline.b);
    for (let turn = 0; turn < 40; turn++) { timeline.zoom(0.7); draw(); } note(timeline.length === timeline.min);
    root.said = said.join('');";

#[test]
fn chromium_shows_and_operates_a_page_of_a_million_records() {
    let events = events();
    assert!(events.len() > RECORDS - 10);
    let page =
        page::render(&Header::default(), events.into_iter(), &Names::default(), page::Additions::default()).unwrap();
    let Some(seen) = chromium::run_script(page.as_bytes(), SCRIPT) else { return };
    let root = chromium::root(&seen);
    let names: Vec<String> = (0..CLIENTS).map(|n| format!("client{n}")).collect();
    for (name, expected) in [
        ("slices", "333323"),
        ("all", "8.0 %"),
        ("near", "8.0 %3"),
        ("between", "A to B: 3"),
        ("served", "27,27,27,0"),
        ("drawn", "10"),
        ("ends", "101000000,106000000"),
        ("axis", "0.101 s,0.102 s,0.103 s,0.104 s,0.105 s"),
        ("names", "10"),
        ("found", "client3 (104) client3 (104) 2"),
        ("said", "111111111111111111111"),
    ] {
        assert!(root.contains(&format!("data-{name}=\"{expected}\"")), "{name}: {root}");
    }
    assert!(names.iter().all(|name| root.contains(name.as_str())), "{root}");
}

#[test]
fn chromium_shows_an_explanation_and_the_wait_that_it_explains() {
    let events: Vec<Event> = events().into_iter().take(3000).collect();
    let [from, to] = [1000, 2000].map(|at| events[at].at);
    let text = "mpv waited for\nx11perf.\n\nWhat to do:\n\nEnd <it>:\n    kill 4\n".to_owned();
    let explanation = Some(page::Explanation { text, span: Some((from, to)) });
    let additions = page::Additions { explanation, ..page::Additions::default() };
    let page = page::render(&Header::default(), events.into_iter(), &Names::default(), additions).unwrap();
    let script = "
        const root = document.documentElement.dataset, all = [...document.querySelectorAll('#explanation > *')];
        root.blocks = all.map(one => one.localName + ' ' + one.textContent).join(';');
        root.shown = timeline.a > timeline.from && timeline.b < timeline.to && timeline.b > timeline.a;";
    let Some(seen) = chromium::run_script(page.as_bytes(), script) else { return };
    let root = chromium::root(&seen);
    let blocks = "data-blocks=\"p mpv waited for x11perf.;p What to do:;p End &lt;it&gt;:;code kill 4\"";
    assert!(root.replace("<it>", "&lt;it&gt;").contains(blocks) && root.contains("data-shown=\"true\""), "{root}");
}

/// Browsers leave a canvas blank if it is too tall.
#[test]
fn chromium_shows_the_busiest_of_thousands_of_clients_and_finds_the_others() {
    const ALL: u64 = 3000;
    let mut events = Vec::new();
    for turn in 1..=ALL {
        let (client, begin) = (ClientId(1), turn * 10_000 * US);
        let mut add = |at: u64, what| events.push(Event { at: Time(begin + at * US), what });
        add(0, Entry::Fact(Fact::Connected { client, descriptor: 4 }));
        add(0, Entry::Identity { client, pid: 10_000 + turn as u32, base: 1 << 20, uid: 0 });
        add(0, Entry::Fact(Fact::Arrived { client }));
        let service = Service::new(client, Time(begin), Time(begin + turn * US));
        add(turn, Entry::Fact(Fact::Served(Service { requests: 1, last_request: POLY_LINE, ..service })));
        add(turn, Entry::Fact(Fact::Disconnected { client }));
    }
    let header = Header::default();
    let page = page::render(&header, events.into_iter(), &Names::default(), page::Additions::default()).unwrap();
    let script = "
        const root = document.documentElement.dataset, scale = devicePixelRatio || 1;
        const isDrawn = () => { const last = shown.at(-1); return pen.getImageData(0, 0, canvas.width, (last.top + LANE) * scale).data.some(part => part > 0 && part < 255); };
        root.drawn = isDrawn() && canvas.height <= TALLEST;
        root.last = shown.at(-1).name; root.what = document.getElementById('what').textContent;
        const find = document.getElementById('find'); find.value = 'pid 10001'; find.dispatchEvent(new Event('input')); draw();
        root.found = shown.map(lane => lane.name).join() + ' ' + isDrawn() + ' ' + document.getElementById('what').textContent;";
    let Some(seen) = chromium::run_script(page.as_bytes(), script) else { return };
    let root = chromium::root(&seen);
    for expected in [
        "drawn=\"true\"",
        "last=\"pid 13000\"",
        "of 3,000 clients: find the others by name",
        "found=\"pid 10001 true Visible: 29.99 s\"",
    ] {
        assert!(root.contains(expected), "{expected}: {root}");
    }
}
