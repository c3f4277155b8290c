// SPDX-License-Identifier: MIT
//! An SVG picture of one connection: requests in the upper panel, everything from the server in the lower one.
//!
//! The picture is readable without colour: states are hatched, retransmissions are thick and marked with an R,
//! acknowledged data is a solid line and the receive window a dashed one. The picture has a light and a dark theme.

use super::activity::{Activity, DirectionActivity};
use super::detail::{self, Columns};
use super::model::{Connection, Plot};
use super::track::{Bar, MessageMark, Track, Window};
use crate::analysis::spans::Span;
use crate::observe::Kind;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

const WIDTH: f64 = 1280.0;
const HEIGHT: f64 = 840.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 20.0;
/// Top edges of both panels. Each panel starts with a strip that shows the states.
const TOPS: [f64; 2] = [100.0, 476.0];
const PANEL_HEIGHT: f64 = 316.0;
const STRIP: f64 = 9.0;
const TITLES: [&str; 2] = ["Requests", "Replies, events, errors"];
/// Height of a text row. Names are placed in rows, so that they do not overlap.
const ROW_HEIGHT: f64 = 12.0;
const LETTER_WIDTH: f64 = 6.1;
/// Minimum height of a message with a name. Errors have a name at any height.
const MIN_NAMED: f64 = 2.0;

const HEAD: &str = include_str!("svg/head.svg");

pub fn write(plot: &Plot, connection: &Connection, title: &str, out: &mut impl Write) -> io::Result<()> {
    let window = plot.window();
    let mut text = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{}'>\n{HEAD}",
        escaped(title)
    );
    let _ = writeln!(text, "<rect width='{WIDTH}' height='{HEIGHT}' style='fill: var(--paper)'/>");
    let _ = writeln!(text, "<text class='title' x='16' y='26'>{}</text>", escaped(title));
    let (client, server) = (connection.opened.client, connection.opened.server);
    let about =
        format!("connection {}, {client} to {server}; times since the capture's first connection", connection.number);
    let _ = writeln!(text, "<text class='soft' x='16' y='44'>{}</text>", escaped(&about));
    legend(&mut text);
    for (direction, track) in connection.tracks.iter().enumerate() {
        let panel = Panel::of(track, window, TOPS[direction]);
        panel.states(&connection.activity[direction], &mut text);
        panel.axes(TITLES[direction], &mut text);
        panel.begin_clipped(direction, &mut text);
        panel.stairs(&mut text);
        let mut rows = Rows::new();
        panel.packets(&mut rows, &mut text);
        panel.gap_marks(&mut text);
        panel.messages(plot, connection, direction, &mut rows, &mut text);
        let _ = writeln!(text, "</g>");
    }
    out.write_all(text.as_bytes())?;
    out.write_all(b"</svg>\n")
}

struct Panel<'a> {
    track: &'a Track,
    window: Window,
    top: f64,
    bytes: (u64, u64),
}

impl<'a> Panel<'a> {
    fn of(track: &'a Track, window: Window, top: f64) -> Panel<'a> {
        Panel { track, window, top, bytes: detail::bytes(track) }
    }

    fn columns(&self) -> Columns {
        Columns { window: self.window, count: (WIDTH - LEFT - RIGHT) as u64 * 2 }
    }

    fn x(&self, at_ns: u64) -> f64 {
        let length = self.window.to_ns.saturating_sub(self.window.from_ns).max(1) as f64;
        let since = at_ns.saturating_sub(self.window.from_ns) as f64;
        LEFT + (since / length).min(1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Clamped: a window edge can be far away, and coordinates should stay small.
    fn y(&self, place: u64) -> f64 {
        let (low, high) = self.bytes;
        let part = (place as f64 - low as f64) / (high - low) as f64;
        let tall = PANEL_HEIGHT - STRIP - 16.0;
        (self.top + PANEL_HEIGHT - 8.0 - part * tall).clamp(self.top - PANEL_HEIGHT, self.top + 2.0 * PANEL_HEIGHT)
    }

    fn states(&self, activity: &DirectionActivity, out: &mut String) {
        for (state, name) in DRAWN_STATES {
            let mut path = String::new();
            for span in columned(activity.list(state), &self.columns()) {
                let (from, to) = (self.x(span.0), self.x(span.1));
                let _ = write!(path, "M{from:.1} {:.1}H{to:.1}v{STRIP}H{from:.1}Z", self.top);
            }
            if !path.is_empty() {
                let _ = writeln!(out, "<path d='{path}' style='fill: url(#{name})'/>");
            }
        }
    }

    fn axes(&self, title: &str, out: &mut String) {
        let (bottom, right) = (self.top + PANEL_HEIGHT, WIDTH - RIGHT);
        let _ = writeln!(out, "<text class='head' x='{LEFT}' y='{:.1}'>{title}</text>", self.top - 8.0);
        let _ = writeln!(
            out,
            "<path class='grid' fill='none' d='M{LEFT} {:.1}H{right}M{LEFT} {bottom:.1}H{right}M{LEFT} {:.1}V{bottom:.1}'/>",
            self.top + STRIP,
            self.top
        );
        let (low, high) = self.bytes;
        let step = step_for((high - low) as f64, 8.0).max(1.0);
        let mut place = (low as f64 / step).ceil() * step;
        while place <= high as f64 {
            let y = self.y(place as u64);
            let _ = writeln!(out, "<path class='grid' d='M{LEFT} {y:.1}H{right}'/>");
            let caption = grouped(place as u64);
            let _ = writeln!(
                out,
                "<text class='soft' x='{:.1}' y='{:.1}' text-anchor='end'>{caption}</text>",
                LEFT - 8.0,
                y + 4.0
            );
            place += step;
        }
        let length = self.window.to_ns.saturating_sub(self.window.from_ns).max(1) as f64;
        // Late times have no fractions of a nanosecond.
        let step = step_for(length, 10.0).max(1.0);
        let digits = (9.0 - step.log10()).ceil().clamp(0.0, 9.0) as usize;
        let mut at = (self.window.from_ns as f64 / step).ceil() * step;
        while at <= self.window.to_ns as f64 {
            let x = self.x(at as u64);
            let _ = writeln!(out, "<path class='grid' d='M{x:.1} {:.1}V{:.1}'/>", self.top + STRIP, bottom + 4.0);
            let caption = format!("{:.digits$} s", at / 1e9);
            let anchor = if x > right - 24.0 { "end" } else { "middle" };
            let _ = writeln!(
                out,
                "<text class='soft' x='{x:.1}' y='{:.1}' text-anchor='{anchor}'>{caption}</text>",
                bottom + 17.0
            );
            at += step;
        }
    }

    /// Begins a group that is clipped to the panel.
    fn begin_clipped(&self, direction: usize, out: &mut String) {
        let (top, tall, wide) = (self.top + STRIP, PANEL_HEIGHT - STRIP, WIDTH - LEFT);
        let _ = writeln!(
            out,
            "<clipPath id='panel{direction}'><rect x='{LEFT}' y='{top}' width='{wide}' height='{tall}'/></clipPath>\n\
             <g clip-path='url(#panel{direction})'>"
        );
    }

    fn stairs(&self, out: &mut String) {
        let steps = detail::steps(self.track, &self.columns());
        for (class, is_edge) in [("window", true), ("acknowledged", false)] {
            let mut path = String::new();
            for step in &steps {
                let (x, y) = (self.x(step.at_ns), self.y(if is_edge { step.edge } else { step.acknowledged }));
                let _ = if path.is_empty() { write!(path, "M{x:.1} {y:.1}") } else { write!(path, "H{x:.1}V{y:.1}") };
            }
            if !path.is_empty() {
                let _ = writeln!(out, "<path class='{class}' d='{path}H{:.1}'/>", WIDTH - RIGHT);
            }
        }
    }

    fn packets(&self, rows: &mut Rows, out: &mut String) {
        let bars = detail::bars(self.track, &self.columns());
        let cap = if bars.len() < 300 { 3.0 } else { 0.0 };
        let path = |is_retransmission: bool| {
            let mut path = String::new();
            bars.iter()
                .filter(|bar| bar.is_retransmission == is_retransmission)
                .for_each(|bar| self.bar(bar, cap, &mut path));
            path
        };
        for (class, path) in [("packet", path(false)), ("again", path(true))] {
            if !path.is_empty() {
                let _ = writeln!(out, "<path class='{class}' d='{path}'/>");
            }
        }
        for bar in bars.iter().filter(|bar| bar.is_retransmission) {
            let (x, y) = (self.x(bar.at_ns), self.y(bar.offset) + 6.0);
            if reserve(rows, x - LETTER_WIDTH, y, 2.0 * LETTER_WIDTH) {
                let _ = writeln!(
                    out,
                    "<text class='name error' x='{x:.1}' y='{:.1}' text-anchor='middle'>R</text>",
                    y + 4.0
                );
            }
        }
    }

    fn bar(&self, bar: &Bar, cap: f64, path: &mut String) {
        let (x, from) = (self.x(bar.at_ns), self.y(bar.offset));
        let to = self.y(bar.offset + bar.length).min(from - 0.5);
        let _ = write!(path, "M{x:.1} {from:.1}V{to:.1}");
        if cap > 0.0 {
            let (left, right) = (x - cap, x + cap);
            let _ = write!(path, "M{left:.1} {to:.1}H{right:.1}M{left:.1} {from:.1}H{right:.1}");
        }
    }

    fn gap_marks(&self, out: &mut String) {
        for gap in self.track.gap_marks().take(100) {
            let (x, y) = (self.x(gap.at_ns), self.y(gap.offset + gap.length / 2));
            let _ = writeln!(
                out,
                "<text class='name error' x='{x:.1}' y='{y:.1}'>{} bytes not captured</text>",
                grouped(gap.length)
            );
        }
    }

    fn messages(&self, plot: &Plot, connection: &Connection, direction: usize, rows: &mut Rows, out: &mut String) {
        let names: Vec<&str> = plot.names.iter().collect();
        let mut paths: HashMap<&str, String> = HashMap::new();
        let mut marks = detail::marks(self.track);
        for mark in &marks {
            let state = connection.activity[direction].state_before(mark.last_ns);
            self.mark(mark, paths.entry(class(state)).or_default());
        }
        for (class, path) in
            DRAWN_STATES.map(|(_, name)| name).into_iter().chain(["idle"]).filter_map(|it| Some((it, paths.get(it)?)))
        {
            let _ = writeln!(out, "<path class='{class}' d='{path}'/>");
        }
        // Longest first; a name without room is left out.
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.length));
        for mark in &marks {
            let name = names.get(mark.name as usize).copied().unwrap_or("?");
            let (low, high) = (self.y(mark.offset), self.y(mark.offset.saturating_add(mark.length)));
            let is_error = mark.kind == Kind::Error;
            let (x, wide) = (self.x(mark.last_ns) + 12.0, name.chars().count() as f64 * LETTER_WIDTH);
            // At the right border, put the name before its packet.
            let x = if x + wide > WIDTH { x - 24.0 - wide } else { x };
            let y = ((low + high) / 2.0).clamp(self.top + STRIP + 6.0, self.top + PANEL_HEIGHT - 6.0);
            if low - high < MIN_NAMED && !is_error || !reserve(rows, x, y, wide) {
                continue;
            }
            let class = if is_error { "name error" } else { "name" };
            let _ = writeln!(out, "<text class='{class}' x='{x:.1}' y='{:.1}'>{}</text>", y + 4.0, escaped(name));
        }
    }

    /// A line with an arrow at the end of the message, next to its packet.
    fn mark(&self, mark: &MessageMark, path: &mut String) {
        let (x, from) = (self.x(mark.last_ns) + 6.0, self.y(mark.offset));
        let to = self.y(mark.offset.saturating_add(mark.length)).min(from - 0.5);
        let _ = write!(path, "M{x:.1} {from:.1}V{to:.1}");
        if from - to >= 5.0 {
            let (left, right, base) = (x - 2.5, x + 2.5, to + 4.0);
            let _ = write!(path, "M{left:.1} {base:.1}L{x:.1} {to:.1}L{right:.1} {base:.1}");
        }
    }
}

/// States that are drawn, with their hatching.
const DRAWN_STATES: [(Activity, &str); 3] =
    [(Activity::Network, "network"), (Activity::Receiver, "receiver"), (Activity::Waiting, "waiting")];

fn class(state: Activity) -> &'static str {
    DRAWN_STATES.iter().find(|(named, _)| *named == state).map_or("idle", |(_, name)| name)
}

fn legend(out: &mut String) {
    let mut x = 16.0;
    let y = 54.0;
    for (state, name) in DRAWN_STATES {
        let _ = writeln!(out, "<rect x='{x}' y='{y}' width='22' height='{STRIP}' style='fill: url(#{name})'/>");
        x = label(x + 28.0, state.name(), out);
    }
    for (class, name) in [
        ("packet", "packet"),
        ("again", "retransmitted (R)"),
        ("acknowledged", "acknowledged"),
        ("window", "receive window"),
        ("idle", "message, in the colour of its state"),
    ] {
        let line = if matches!(class, "acknowledged" | "window") { "v4h10v-8h12" } else { "v-4v8" };
        let _ = writeln!(out, "<path class='{class}' d='M{x} {:.1}{line}'/>", y + 4.5);
        x = label(x + if line.len() > 6 { 28.0 } else { 8.0 }, name, out);
    }
}

fn label(x: f64, text: &str, out: &mut String) -> f64 {
    let _ = writeln!(out, "<text class='soft' x='{x}' y='62'>{text}</text>");
    x + text.len() as f64 * LETTER_WIDTH + 18.0
}

/// Occupied x ranges of each text row.
type Rows = HashMap<i64, Vec<(f64, f64)>>;

/// Reserves room for a name. Returns false if there is none.
fn reserve(rows: &mut Rows, x: f64, y: f64, wide: f64) -> bool {
    let own = [(y / ROW_HEIGHT).floor() as i64, ((y + ROW_HEIGHT - 1.0) / ROW_HEIGHT).floor() as i64];
    let is_free = |row: &i64| {
        rows.get(row).is_none_or(|taken| taken.iter().all(|&(from, to)| x >= to + 6.0 || x + wide + 6.0 <= from))
    };
    if !own.iter().all(is_free) {
        return false;
    }
    own.iter().for_each(|&row| rows.entry(row).or_default().push((x, x + wide)));
    true
}

/// Joins spans that are too close to be drawn separately.
fn columned(list: &[Span], columns: &Columns) -> Vec<(u64, u64)> {
    let nearest_ns = columns.window.to_ns.saturating_sub(columns.window.from_ns) / columns.count.max(1);
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for span in list {
        match joined.last_mut() {
            Some(last) if span.from_ns.saturating_sub(last.1) < nearest_ns / 2 => last.1 = span.to_ns,
            _ => joined.push((span.from_ns, span.to_ns)),
        }
    }
    joined
}

/// Width of a step, 1, 2 or 5 times a power of ten, so that about `count` steps fit.
fn step_for(range: f64, count: f64) -> f64 {
    let power = 10_f64.powf((range / count).max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| range / step <= count).unwrap_or(10.0 * power)
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&apos;").replace('"', "&quot;")
}
