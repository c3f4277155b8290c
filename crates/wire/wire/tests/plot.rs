// SPDX-License-Identifier: MIT
//! Tests plots of synthetic and real captures: the model keeps what observers receive, and each output format is valid.

#[path = "../../../../web/chromium.rs"]
mod chromium;
mod packets;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packets::*;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use xqos_wire::capture::CaptureReader;
use xqos_wire::observe::{ConnectionId, Direction, Kind, Message, Observer, Packet};
use xqos_wire::plot::model::{Choice, Plot};
use xqos_wire::plot::track::{Bar, MessageMark, Step, Track, Window};
use xqos_wire::plot::{page, svg, xpl};
use xqos_wire::session::Session;

const L: Order = Order::Little;
const GET_INPUT_FOCUS: u8 = 43;
const PUT_IMAGE: u8 = 72;

/// Messages as observers receive them: kind, offset, length, sequence number, time of the last byte.
#[derive(Debug, Default)]
struct Places(Vec<(ConnectionId, Kind, u64, u64, u64, u64)>);

impl Observer for Places {
    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        self.0.push((id, message.kind, message.offset, message.length, message.sequence, message.last_ns));
    }
}

fn plotted<'p>(packets: impl IntoIterator<Item = &'p Captured>, choice: Choice) -> (Plot, Places) {
    let (mut plot, mut places) = (Plot::new(choice), Places::default());
    let mut session = Session::new(vec![&mut plot, &mut places]);
    packets.into_iter().for_each(|packet| session.packet(&packet.record()));
    session.finish();
    (plot, places)
}

fn whole(talk: &Talk) -> Plot {
    plotted(&talk.packets, Choice { with_fields: true, ..Choice::default() }).0
}

/// Plots a captured real program.
fn captured(name: &str, choice: Choice) -> (Plot, Places) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(format!("{name}.pcapng.zst"));
    let packed = File::open(path).expect("the capture is committed");
    let mut reader = CaptureReader::new(zstd::Decoder::new(packed).unwrap()).unwrap();
    let (mut plot, mut places) = (Plot::new(choice), Places::default());
    let mut session = Session::new(vec![&mut plot, &mut places]);
    while let Some(record) = reader.next() {
        session.packet(&record);
    }
    session.finish();
    (plot, places)
}

fn tracks(plot: &Plot) -> impl Iterator<Item = &Track> {
    plot.connections.values().flat_map(|connection| &connection.tracks)
}

/// Drawing requests, with a lost packet that is retransmitted later and two packets that are captured out of order.
fn troubled() -> Talk {
    let mut talk = Talk::new();
    talk.window_scale = Some(3);
    talk.open_x(L).client(&request(L, GET_INPUT_FOCUS, 0, 1)).server(&reply(L, 1, 0, 0));
    (0..6).for_each(|_| _ = talk.client(&request(L, PUT_IMAGE, 2, 300)));
    let count = talk.packets.len();
    let mut lost = talk.packets.remove(count - 4);
    talk.packets.swap(count - 3, count - 2);
    // The receiver repeats its last acknowledgement, which covers the data before the lost packet.
    let acknowledged = talk.next[0];
    talk.next[0] = acknowledged.wrapping_sub(4 * 1200);
    (0..3).for_each(|_| _ = talk.send(Direction::Replies, ACK, &[]));
    talk.next[0] = acknowledged;
    talk.at_ns += STEP_NS;
    lost.at_ns = talk.at_ns;
    talk.packets.push(lost);
    talk.client(&request(L, GET_INPUT_FOCUS, 0, 1)).server(&reply(L, 8, 0, 4)).close();
    talk
}

#[test]
fn a_picture_of_one_moment_after_a_month_has_an_axis() {
    const MONTH_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;
    let mut talk = Talk::new();
    talk.open_x(L);
    let began_ns = talk.packets[0].at_ns;
    talk.at_ns = began_ns + MONTH_NS - STEP_NS;
    talk.client(&request(L, GET_INPUT_FOCUS, 0, 1));
    let last_ns = talk.packets.last().unwrap().at_ns - began_ns;
    let window = Window { from_ns: last_ns, to_ns: u64::MAX };
    let (plot, _) = plotted(&talk.packets, Choice { window, ..Choice::default() });
    let mut out = Vec::new();
    svg::write(&plot, plot.busiest().unwrap(), "late", &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("2592000"));
}

#[test]
fn a_filter_keeps_its_messages_and_all_packets() {
    let whole = captured("gtk3-demo", Choice::default()).0;
    let filter = "message=CreateWindow,Expose".parse().unwrap();
    let some = captured("gtk3-demo", Choice { filter, ..Choice::default() }).0;
    let names: Vec<&str> = some.names.iter().collect();
    assert_eq!(some.connections.len(), whole.connections.len());
    let pairs = some.connections.values().zip(whole.connections.values());
    for (some, whole) in pairs.flat_map(|(some, whole)| some.tracks.iter().zip(&whole.tracks)) {
        assert_eq!(some.bars().collect::<Vec<_>>(), whole.bars().collect::<Vec<_>>());
        let is_wanted = |mark: &MessageMark| ["CreateWindow", "Expose"].contains(&names[mark.name as usize]);
        assert_eq!(some.marks().collect::<Vec<_>>(), whole.marks().filter(is_wanted).collect::<Vec<_>>());
    }
}

#[test]
fn the_model_keeps_every_message_position() {
    let check = |(plot, places): (Plot, Places)| {
        let began_ns = plot.began_ns;
        let mut kept: Vec<(ConnectionId, Kind, u64, u64, u64, u64)> = Vec::new();
        for (&id, connection) in &plot.connections {
            let marks = connection.tracks.iter().flat_map(Track::marks);
            kept.extend(marks.map(|it| (id, it.kind, it.offset, it.length, it.sequence, it.last_ns + began_ns)));
        }
        let mut observed = places.0;
        let key = |it: &(ConnectionId, Kind, u64, u64, u64, u64)| {
            (it.0, it.1 as u8 % 3 != 0 && it.1 != Kind::Request, it.1 as u8, it.2)
        };
        kept.sort_by_key(key);
        observed.sort_by_key(key);
        assert!(observed.len() > 8);
        assert_eq!(kept, observed);
    };
    check(plotted(&troubled().packets, Choice::default()));
    for name in ["xterm", "gtk3-demo", "emacs"] {
        check(captured(name, Choice::default()));
    }
}

/// Checks that the acknowledgement steps are plausible.
fn check_stairs(track: &Track, name: &str) {
    let steps: Vec<Step> = track.steps().collect();
    assert!(!steps.is_empty(), "{name}");
    for pair in steps.windows(2) {
        assert!(pair[0].at_ns <= pair[1].at_ns && pair[0].acknowledged <= pair[1].acknowledged, "{name}: {pair:?}");
        assert!(pair[0] != pair[1], "{name}: each step changes a value");
    }
    assert!(steps.iter().all(|step| step.edge >= step.acknowledged), "{name}");
    let sent = track.bars().map(|bar| bar.offset + bar.length).max().unwrap_or(0);
    assert!(steps.iter().all(|step| step.acknowledged <= sent), "{name}: only sent bytes are acknowledged");
}

#[test]
fn acknowledgement_steps_rise_and_enclose_the_packets() {
    for (name, plot) in [("troubled", whole(&troubled())), ("qt5", captured("qt5", Choice::default()).0)] {
        for track in tracks(&plot) {
            check_stairs(track, name);
        }
    }
    let plot = whole(&troubled());
    let requests = &plot.connections[&ConnectionId(0)].tracks[0];
    // Windows of SYN and ACK: unscaled, then 1000 << 3. The repeated acknowledgements make one step.
    let edges: Vec<(u64, u64)> =
        requests.steps().map(|step| (step.acknowledged, step.edge - step.acknowledged)).collect();
    let (setup, image) = (48, 1200);
    let before_lost = setup + 4 + 2 * image;
    let end = setup + 4 + 6 * image + 4;
    let expected = [(0, 1000), (setup, 8000), (setup + 4, 8000), (before_lost, 8000), (end, 8000)];
    assert_eq!(edges, expected);
}

fn sent_again() -> Talk {
    let mut talk = Talk::new();
    talk.open_x(L).client(&request(L, PUT_IMAGE, 2, 100));
    let mut again = talk.packets.last().unwrap().clone();
    again.at_ns += 2 * STEP_NS;
    talk.packets.push(again);
    talk
}

#[test]
fn retransmissions_are_marked_and_counted_once() {
    let plot = whole(&sent_again());
    let track = &plot.connections[&ConnectionId(0)].tracks[0];
    let bars: Vec<Bar> = track.bars().filter(|bar| bar.length > 0).collect();
    assert_eq!(
        bars.iter().map(|bar| (bar.offset, bar.length, bar.is_retransmission)).collect::<Vec<_>>(),
        [(0, 48, false), (48, 400, false), (48, 400, true)]
    );
    assert_eq!((track.bytes, track.messages.count), (448, 2));
}

#[test]
fn a_time_window_keeps_its_own_items_and_the_state_before() {
    let all = whole(&troubled());
    let [middle, end] = [all.ended_ns / 2, all.ended_ns];
    let choice = Choice { window: Window { from_ns: middle, to_ns: end }, ..Choice::default() };
    let part = plotted(&troubled().packets, choice).0;
    for (whole, part) in tracks(&all).zip(tracks(&part)) {
        let expected: Vec<MessageMark> =
            whole.marks().filter(|mark| mark.last_ns >= middle).map(|it| MessageMark { text: 0, ..it }).collect();
        assert_eq!(part.marks().collect::<Vec<_>>(), expected);
        let first = part.steps().next().unwrap();
        let before = whole.steps().take_while(|step| step.at_ns <= middle).last().unwrap();
        assert_eq!((first.acknowledged, first.edge), (before.acknowledged, before.edge));
    }
    let none = plotted(&troubled().packets, Choice { connection: Some(2), ..Choice::default() }).0;
    assert!(none.connections.is_empty());
}

/// Decodes the page's bytes as its script does.
struct Unpacked {
    facts: serde_json::Value,
    bytes: Vec<u8>,
    place: usize,
}

impl Unpacked {
    fn of(page: &str) -> Unpacked {
        let between = |from: &str| page.split_once(from).unwrap().1.split_once("</script>").unwrap().0;
        let facts = serde_json::from_str(between("id=\"data-facts\">")).unwrap();
        let packed = STANDARD.decode(between("id=\"data-bytes\">")).unwrap();
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        Unpacked { facts, bytes, place: 0 }
    }

    fn column(&mut self, count: u64) -> Vec<i64> {
        let mut last = 0;
        let mut next = || {
            let (mut value, mut shift) = (0_u64, 0);
            loop {
                let byte = self.bytes[self.place];
                self.place += 1;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        (0..count)
            .map(|_| {
                let folded = next();
                last += if folded % 2 == 1 { -(folded.div_ceil(2) as i64) } else { (folded / 2) as i64 };
                last
            })
            .collect()
    }
}

#[test]
fn the_page_contains_the_whole_model() {
    let plot = captured("gtk3-demo", Choice { with_fields: true, ..Choice::default() }).0;
    let mut out = Vec::new();
    page::write(&plot, "gtk3-demo", &mut out).unwrap();
    let mut page = Unpacked::of(std::str::from_utf8(&out).unwrap());
    let texts_bytes = page.facts["texts_bytes"].as_u64().unwrap() as usize;
    let texts: Vec<String> =
        String::from_utf8(page.bytes[..texts_bytes].to_vec()).unwrap().split('\n').map(str::to_owned).collect();
    page.place = texts_bytes;
    assert!(texts.contains(&"only_if_exists false\tname_len 12\tname \"WM_PROTOCOLS\"".to_owned()), "{texts:#?}");
    let facts = page.facts["connections"].as_array().unwrap().clone();
    assert_eq!(facts.len(), plot.connections.len());
    for (facts, connection) in facts.iter().zip(plot.connections.values()) {
        for (counts, track) in facts["rows"].as_array().unwrap().iter().zip(&connection.tracks) {
            let counts: Vec<u64> = counts.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
            let columns: Vec<Vec<Vec<i64>>> = [4, 3, 7, 3, 2, 2, 2]
                .iter()
                .zip(counts)
                .map(|(&columns, count)| (0..columns).map(|_| page.column(count)).collect())
                .collect();
            let starts: Vec<i64> = track.bars().map(|bar| bar.offset as i64).collect();
            assert_eq!(columns[0][1], starts);
            let lengths: Vec<i64> = track.marks().map(|mark| mark.length as i64).collect();
            assert_eq!(columns[2][3], lengths);
            let edges: Vec<i64> = track.steps().map(|step| step.edge as i64).collect();
            assert_eq!(columns[1][2], edges);
            assert!(columns[2][6].iter().all(|&text| (1..=texts.len() as i64).contains(&text)), "all have fields");
        }
        (0..4).for_each(|_| _ = page.column(facts["trips"].as_u64().unwrap()));
    }
    assert_eq!(page.place, page.bytes.len(), "nothing is left over");
}

#[test]
fn the_page_is_self_contained_and_escapes_all_text() {
    let mut talk = Talk::new();
    talk.open_x(L).client(&query_extension(L, "</script><b>")).server(&extension_reply(L, 1, [140, 0, 0]));
    talk.client(&request(L, 140, 1, 2));
    let plot = whole(&talk);
    let mut out = Vec::new();
    page::write(&plot, "</script><b>", &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert_eq!(page.matches("</script>").count(), 3, "two of data, and the script's own end");
    for elsewhere in ["http:", "https:", "src=", "@import", "url(", "/*STYLE*/", "/*FACTS*/", "/*BYTES*/", "/*SCRIPT*/"]
    {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    for written in [picture(&plot), for_xplot(&plot)] {
        assert!(!written.contains("<b>") || written.starts_with("timeval"), "{written}");
    }
    check_xml(&picture(&plot));
    check_xpl(&for_xplot(&plot));
}

fn picture(plot: &Plot) -> String {
    let mut out = Vec::new();
    svg::write(plot, plot.busiest().unwrap(), "<'&\">", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn for_xplot(plot: &Plot) -> String {
    let mut out = Vec::new();
    xpl::write(plot, plot.busiest().unwrap(), "two\nlines", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Checks that elements are nested correctly and that every ampersand is escaped.
fn check_xml(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('<') {
        let bare = before
            .split('&')
            .skip(1)
            .find(|it| !["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|name| it.starts_with(name)));
        assert_eq!(bare, None);
        let (tag, behind) = behind.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('\'').count() % 2, 0, "{tag}");
        rest = behind;
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name), "the end tag matches the open element"),
            (false, true) => {}
            (false, false) => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert_eq!(rest.trim(), "");
}

#[test]
fn a_picture_is_well_formed_and_has_the_names() {
    for name in ["xterm", "gtk3-demo", "qt5", "emacs", "x11perf"] {
        let svg = picture(&captured(name, Choice::default()).0);
        check_xml(&svg);
        assert!(svg.len() < 300_000, "{name}: {}", svg.len());
        for word in ["prefers-color-scheme: dark", "class='packet'", "class='acknowledged'", "Requests"] {
            assert!(svg.contains(word), "{name}: '{word}' is missing");
        }
        assert!(svg.matches("class='name'").count() >= 3, "{name} has names");
    }
    let svg = picture(&whole(&troubled()));
    assert!(svg.matches(">PutImage<").count() >= 4 && svg.contains(">GetInputFocus<"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

/// Checks the lines against xplot's format (its demo.0 has all commands): two axis types, then commands with a fixed
/// count of numbers, some with a text on the next line. A colour on its own line applies to later commands.
fn check_xpl(text: &str) {
    let mut lines = text.lines();
    let mut is_at_axes = true;
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let (command, arguments) = words.split_first().unwrap();
        if std::mem::take(&mut is_at_axes) {
            assert_eq!(line, "timeval double");
            continue;
        }
        let expected = match *command {
            "line" | "dline" => 4,
            "uarrow" | "darrow" | "utick" | "dtick" | "htick" | "vtick" | "rtext" | "btext" => 2,
            "title" | "xlabel" | "ylabel" | "go" | "new_plotter" => 0,
            "white" | "green" | "red" | "blue" | "yellow" | "purple" | "orange" => 0,
            other => panic!("xplot does not know '{other}' in '{line}'"),
        };
        assert_eq!(arguments.len(), expected, "{line}");
        arguments.iter().for_each(|number| assert!(number.parse::<f64>().unwrap() >= 0.0, "{line}"));
        match *command {
            "title" | "xlabel" | "ylabel" | "rtext" | "btext" => assert!(lines.next().is_some(), "{line} has a text"),
            "new_plotter" => is_at_axes = true,
            "go" => assert_eq!(lines.next(), None, "go is the end"),
            _ => {}
        }
    }
}

#[test]
fn every_line_is_valid_for_xplot() {
    for plot in [whole(&troubled()), captured("xterm", Choice::default()).0] {
        let text = for_xplot(&plot);
        check_xpl(&text);
        let one = plot.busiest().unwrap();
        let messages: usize = one.tracks.iter().map(|track| track.messages.count).sum();
        assert_eq!(text.matches("\nuarrow ").count(), messages, "one arrow per message");
        assert_eq!(text.matches("\nnew_plotter\n").count(), 1);
    }
    assert!(for_xplot(&whole(&sent_again())).contains("\nred\n"), "retransmissions are red");
}

#[test]
fn the_page_works_in_chromium() {
    let plot = captured("gtk3-demo", Choice { with_fields: true, ..Choice::default() }).0;
    let mut page = Vec::new();
    page::write(&plot, "gtk3-demo", &mut page).unwrap();
    let look = "
        const press = (key, shiftKey) => { dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey })); draw(); };
        for (const key of ['+', '+', 'ArrowRight', 'a', 'End', 'b', 'z', 'w', 'ArrowUp', 'f', 'o', '+', '2', '3', '4', '2', ']', '[', '?', '0']) press(key);
        choose(0);
        const messages = chosen().tracks[0].messages;
        let i = 0; while (nameOf(messages.name[i]) !== 'InternAtom') i++;
        pick({ direction: 0, index: i }, true); press('Enter');
        const { direction, index } = view.picked, panel = panels().find(one => one.direction === direction);
        const found = hit(x(messages.last[index]) + 7, panel.y(messages.offset[index] + messages.length[index] / 2));
        document.documentElement.dataset.found = found && found.message && found.message.index === index;
        press('r'); document.documentElement.dataset.answer = nameOf(chosen().tracks[1].messages.name[view.picked.index]) + view.picked.direction;
        press('n'); press('p');
        // There is no real pointer to capture.
        canvas.setPointerCapture = () => {};
        const box = canvas.getBoundingClientRect(), said = [];
        const point = (kind, px, py, more) => canvas.dispatchEvent(new PointerEvent(kind, { clientX: box.left + px, clientY: box.top + py, ...more }));
        const wheel = (deltaY, more) => canvas.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + 300, clientY: box.top + 120, deltaY, cancelable: true, ...more }));
        const note = is => { draw(); said.push(is ? 1 : 0); };
        press('Escape'); press('0'); press('f');
        const under = timeAt(300); wheel(-300); note(timeline.length < timeline.end - timeline.begin && Math.abs(timeAt(300) - under) < 1000);
        wheel(-300, { shiftKey: true }); note(view.bytes[0] && !view.bytes[1]);
        const before = timeline.from; point('pointerdown', 400, 100); point('pointermove', 300, 120); point('pointerup', 300, 120); note(timeline.from > before);
        point('pointerdown', 200, 60, { shiftKey: true }); point('pointermove', 500, 200, { shiftKey: true }); point('pointerup', 500, 200, { shiftKey: true }); note(timeline.length < (timeline.end - timeline.begin) / 3);
        press('0'); point('pointerdown', 300, 90, { shiftKey: true }); point('pointerup', 300, 90, { shiftKey: true }); note(timeline.b !== null && timeline.a === null);
        point('pointermove', 250, 150); note(!tip.hidden);
        const ends = [200, 500].map(timeAt); for (const [kind, px] of [['pointerdown', 200], ['pointermove', 500], ['pointerup', 500]]) point(kind, px, 60, { shiftKey: true });
        note(Math.abs(timeline.from - ends[0]) < 1 && Math.abs(timeline.to - ends[1]) < 1);
        press('o'); press('0');
        const lanes = [], write = pen.fillText; pen.fillText = (text, px, py) => { if (px === 8 && (py - TOP) % LANE === LANE / 2 - 7) lanes.push(text); }; draw(); pen.fillText = write;
        document.documentElement.dataset.lanes = lanes.join();
        document.documentElement.dataset.tips = [0, 1].map(i => { point('pointermove', 300, TOP + LANE * i + 20); return tip.textContent.split(':')[0]; }).join();
        note(document.querySelectorAll('#connections tr[data-number]').length === 2);
        point('pointerdown', 300, TOP + 50); point('pointerup', 300, TOP + 50); note(view.connection === 1);
        document.documentElement.dataset.pointer = said.join('');
        for (let turn = 0; turn < 30; turn++) timeline.zoom(0.5), draw();";
    let Some(seen) = chromium::run_script(&page, look) else { return };
    let root = chromium::root(&seen);
    for word in [
        "data-ready=\"true\"",
        "data-found=\"true\"",
        "data-answer=\"InternAtom1\"",
        "data-lanes=\"1,2\"",
        "data-tips=\"connection 1,connection 2\"",
        "data-pointer=\"111111111\"",
    ] {
        assert!(root.contains(word), "'{word}' is missing in {root}");
    }
    assert!(!root.contains("data-failed"), "{root}");
    assert!(seen.contains("1,290 messages") || seen.contains("1,310 messages"), "the totals are shown");
}

#[test]
fn five_million_numbers_take_a_few_bytes_each() {
    let mut track = Track::default();
    let message = |at: u64| Message {
        kind: Kind::Request,
        sequence: at + 1,
        name: "",
        major: 0,
        minor: 0,
        has_reply: false,
        offset: at * 36,
        length: 36,
        first_ns: 0,
        last_ns: 0,
        is_little_endian: true,
        bytes: &[],
    };
    for at in 0..500_000_u64 {
        track.message([at / 40 * 1_000_000; 2], &message(at), at % 60, 0);
    }
    let bytes: usize = track.messages.columns.iter().map(Vec::len).sum();
    assert!(bytes < 500_000 * 10, "{bytes}");
}

#[test]
fn extreme_packet_fields_can_be_drawn() {
    let mut plot = Plot::default();
    plot.opened(
        ConnectionId(0),
        &xqos_wire::observe::Opened {
            at_ns: 5,
            client: "10.0.0.1:1".parse().unwrap(),
            server: "10.0.0.2:6000".parse().unwrap(),
            started_midstream: true,
        },
    );
    for (at_ns, offset) in [(u64::MAX, u64::MAX), (0, 0), (7, u64::MAX - 3)] {
        plot.packet(
            ConnectionId(0),
            &Packet {
                direction: Direction::Requests,
                at_ns,
                offset,
                length: u32::MAX,
                acknowledged: offset,
                window: u64::MAX,
                is_retransmission: false,
                is_control: false,
            },
        );
    }
    plot.ended(ConnectionId(0), u64::MAX, xqos_wire::observe::Ending::Open);
    check_xml(&picture(&plot));
    check_xpl(&for_xplot(&plot));
    page::write(&plot, "", &mut std::io::sink()).unwrap();
}
