// SPDX-License-Identifier: MIT
//! Tests the charts of the report's page, and their reactions to input, in a real Chromium.

#[path = "../../../../../../web/chromium.rs"]
mod chromium;

use crate::machine::Machine;
use crate::page::html;
use crate::results::Finding;
use crate::study::{Chart, Group, Lane, Lanes, Line, Lines, Panel, Range, Ranges, Scatter, Study};

/// Three clients take turns of 1 ms for 90 ms. The first one has a reservation and a deadline every 30 ms.
fn lanes() -> Lanes {
    let slices = |client: usize| (0..30).map(|turn| (3 * turn + client) as f64).map(|at| [at, at + 1.0]).collect();
    let lane = |client: usize| Lane {
        case: if client == 0 { "cbs" } else { "idle" }.to_owned(),
        name: format!("client{client}"),
        slices: slices(client),
        deadlines: if client == 0 { vec![30.0, 60.0, 90.0] } else { Vec::new() },
        ..Lane::default()
    };
    let (title, x_label) = ("Who was served".to_owned(), "milliseconds".to_owned());
    Lanes { title, x_label, length: 90.0, lanes: (0..3).map(lane).collect() }
}

fn finding() -> Finding {
    let points: Vec<[f64; 2]> = (1..=50).map(|at| [f64::from(at) / 10.0, f64::from(at)]).collect();
    let panel = |case: &str| Panel { case: case.to_owned(), name: format!("{case}: a client"), points: points.clone() };
    let scatter = Scatter {
        title: "Each response".to_owned(),
        panels: vec![panel("stock"), panel("fair")],
        ..Scatter::default()
    };
    let range = |case: &str| Range { case: case.to_owned(), p50: 1.0, mean: 1.5, p99: 4.0, worst: 9.0 };
    let group = Group { name: "a load".to_owned(), ranges: vec![range("stock"), range("fair")] };
    let ranges = Ranges { title: "Ranges".to_owned(), groups: vec![group], ..Ranges::default() };
    let line = Line {
        case: "fair".to_owned(),
        name: "under fair".to_owned(),
        points: vec![[1.0, 2.0], [2.0, 4.0]],
        deviations: Vec::new(),
        unmarked: false,
    };
    let lines = Lines { title: "Lines".to_owned(), lines: vec![line], ..Lines::default() };
    let charts = vec![Chart::Lanes(lanes()), Chart::Scatter(scatter), Chart::Ranges(ranges), Chart::Lines(lines)];
    let study = Study { title: "A study".to_owned(), charts, ..Study::default() };
    let machine = Machine::default();
    Finding { experiment: "demo".into(), quick: false, pairs: 1, machine, disturbance: None, study }
}

const LOOK: &str = "
    const root = document.documentElement.dataset, figure = title => [...document.querySelectorAll('figure')].find(one => one.textContent.startsWith(title));
    const all = (one, what) => [...one.querySelectorAll(what)], texts = (one, what) => all(one, what).map(found => found.textContent);
    const tip = document.getElementById('tip'), under = (target, x, y) => {
        const box = target.getBoundingClientRect(), where = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
        target.dispatchEvent(new PointerEvent('pointermove', where)); target.dispatchEvent(new MouseEvent('mousemove', where));
        return tip.hidden ? 'none' : tip.textContent.split('\\n').join(', ');
    };
    // Lanes: the axis, zooming with the buttons, and zooming with the wheel at the pointer.
    const who = figure('Who'), lanes = () => who.querySelector('svg.lanes'), axis = () => texts(lanes(), 'text.soft').slice(0, -1);
    const click = title => all(who, 'button').find(one => one.title.startsWith(title)).click();
    root.lanes = texts(lanes(), 'text:not(.soft)').join();
    const whole = lanes().innerHTML;
    root.whole = axis().join();
    for (let turn = 0; turn < 6; turn++) click('zoom in');
    root.near = axis().join();
    root.bars = all(lanes(), 'path').map(path => (path.getAttribute('d').match(/z/g) || []).length).filter(Boolean).join();
    const holder = lanes().parentNode, wide = holder.clientWidth, pixel = time => 92 + (wide - 14 - 92) * time / 90;
    click('the whole'); root.again = lanes().innerHTML === whole;
    root.tips = [[0.5, 40], [31.5, 80], [2.5, 100], [0.5, 100]].map(([time, y]) => under(holder, pixel(time), y).replace(/, [0-9.]+ milliseconds/, '')).join('; ');
    const box = holder.getBoundingClientRect();
    const wheel = (ctrlKey) => holder.dispatchEvent(new WheelEvent('wheel', { clientX: box.left + pixel(45), clientY: box.top + 50, deltaY: -300, ctrlKey, cancelable: true }));
    root.scrolls = wheel(false) && lanes().innerHTML === whole; wheel(true);
    root.wheel = axis().join();
    // The other charts: points, bars whose tooltip names the case, lines.
    root.panels = all(figure('Each'), 'canvas').filter(one => one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some(Boolean)).length;
    const ranges = figure('Ranges'), logarithmic = ranges.querySelector('svg').innerHTML;
    root.range = under(all(ranges, 'g[data-tip]')[1], 5, 5).split(':')[0];
    all(ranges, 'button')[1].click(); root.linear = ranges.querySelector('svg').innerHTML !== logarithmic;
    root.lines = under(all(figure('Lines'), 'g[data-tip]')[1], 2, 2);
";

#[test]
fn chromium_draws_every_chart_and_zooms_into_lanes() {
    let Some(seen) = chromium::run_script(html(&[finding()]).unwrap().as_bytes(), LOOK) else { return };
    let root = chromium::root(&seen);
    for (name, expected) in [
        ("lanes", "client0,client1,client2"),
        ("whole", "0,10,20,30,40,50,60,70,80,90"),
        ("near", "43,43.5,44,44.5,45,45.5,46,46.5,47"),
        ("bars", "2,2,2"),
        ("again", "true"),
        ("tips", "client0, served: 1.00; client1, served: 1.00; client2, served: 1.00; client2"),
        ("scrolls", "true"),
        ("wheel", "30,35,40,45,50,55,60"),
        ("panels", "2"),
        ("range", "fair"),
        ("linear", "true"),
        ("lines", "under fair: 4.00 at 2"),
    ] {
        assert!(root.contains(&format!("data-{name}=\"{expected}\"")), "{name}: {root}");
    }
}
