// SPDX-License-Identifier: MIT
//! A self-contained interactive page of a capture: no network, server or installation is needed.
//!
//! The page contains the model's packed rows, deflated and in base64. Its script unpacks them into arrays of numbers
//! and finds the data for each pixel by binary search. Panning is therefore fast even with a million messages.
//!
//! | file | purpose |
//! |---|---|
//! | `page.html`, `page.css` | layout and style, light and dark |
//! | `unpack.js` | decodes the packed rows |
//! | `view.js` | the connection and byte range that are shown, and the selected message |
//! | `draw.js`, `panel.js`, `overview.js` | the canvas: one connection in two panels, all connections as lanes |
//! | `sidebar.js` | the side panel: connections, statistics of a time span, details of a message |
//! | `input.js` | wheel, drag, click and keys |
//! | `web/` | code shared by all pages: style, formats, tooltip, search in times, timeline, mouse and keys |

#[path = "../../../../../web/page.rs"]
mod web;

use super::activity::DirectionActivity;
use super::model::{Connection, Plot};
use super::rows::Rows;
use super::track::Track;
use crate::analysis::avoidable::Reason;
use crate::analysis::spans::Span;
use crate::observe::Ending;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::{self, Write};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/unpack.js"),
    include_str!("page/view.js"),
    include_str!("page/draw.js"),
    include_str!("page/panel.js"),
    include_str!("page/overview.js"),
    include_str!("page/sidebar.js"),
    include_str!("page/input.js"),
);

/// Placeholders in the template, in this order.
const PLACES: [&str; 4] = ["/*STYLE*/", "/*FACTS*/", "/*BYTES*/", "/*SCRIPT*/"];

#[derive(Serialize)]
struct Facts<'a> {
    title: &'a str,
    /// Seconds since 1970.
    began_s: f64,
    from_ns: u64,
    to_ns: u64,
    names: Vec<&'a str>,
    reasons: Vec<&'a str>,
    left_out: [(&'static str, u64); 4],
    texts_bytes: usize,
    connections: Vec<ConnectionFacts>,
}

#[derive(Serialize)]
struct ConnectionFacts {
    number: u32,
    client: String,
    server: String,
    is_joined: bool,
    ending: Ending,
    opened_ns: u64,
    ended_ns: u64,
    bytes: [u64; 2],
    /// Number of rows per direction: packets, steps, messages, gaps, network, receiver, waiting.
    rows: [[usize; 7]; 2],
    trips: usize,
}

pub fn write(plot: &Plot, title: &str, out: &mut impl Write) -> io::Result<()> {
    let parts = parts();
    let texts = plot.texts.list().join("\n");
    let packed: Vec<Packed<'_>> = plot.connections.values().map(Packed::of).collect();
    out.write_all(parts[0].as_bytes())?;
    out.write_all(web::STYLE.as_bytes())?;
    out.write_all(STYLE.as_bytes())?;
    out.write_all(parts[1].as_bytes())?;
    out.write_all(web::json(&facts(plot, title, texts.len(), &packed))?.as_bytes())?;
    out.write_all(parts[2].as_bytes())?;
    let mut bytes = ZlibEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::default());
    bytes.write_all(texts.as_bytes())?;
    packed.iter().try_for_each(|connection| connection.write(&mut bytes))?;
    bytes.finish()?.finish()?;
    out.write_all(parts[3].as_bytes())?;
    out.write_all(web::SCRIPT.as_bytes())?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(parts[4].as_bytes())
}

/// The parts of the template between the placeholders.
fn parts() -> [&'static str; 5] {
    let mut rest = TEMPLATE;
    let mut parts = [""; 5];
    for (part, place) in parts.iter_mut().zip(PLACES) {
        (*part, rest) = rest.split_once(place).unwrap_or((rest, ""));
    }
    parts[4] = rest;
    parts
}

fn facts<'a>(plot: &'a Plot, title: &'a str, texts_bytes: usize, packed: &[Packed<'_>]) -> Facts<'a> {
    let window = plot.window();
    Facts {
        title,
        began_s: plot.began_ns as f64 / 1e9,
        from_ns: window.from_ns,
        to_ns: window.to_ns,
        names: plot.names.iter().collect(),
        reasons: Reason::ALL.iter().map(|(.., advice)| *advice).collect(),
        left_out: plot.left_out.counts(),
        texts_bytes,
        connections: packed.iter().map(Packed::facts).collect(),
    }
}

/// A connection with its states packed as rows.
struct Packed<'a> {
    connection: &'a Connection,
    states: [[Rows<2>; 3]; 2],
}

impl Packed<'_> {
    fn of(connection: &Connection) -> Packed<'_> {
        let packed = |activity: &DirectionActivity| {
            [&activity.network, &activity.receiver, &activity.waiting].map(|list| rows(list))
        };
        let states = connection.activity.each_ref().map(packed);
        Packed { connection, states }
    }

    fn facts(&self) -> ConnectionFacts {
        let Packed { connection, states } = self;
        let counts = |track: &Track, [network, receiver, waiting]: &[Rows<2>; 3]| {
            let own = [track.packets.count, track.acknowledgements.count, track.messages.count];
            let [packets, steps, messages] = own;
            [packets, steps, messages, track.gaps.count, network.count, receiver.count, waiting.count]
        };
        let [requests, replies] = &connection.tracks;
        ConnectionFacts {
            number: connection.number,
            client: connection.opened.client.to_string(),
            server: connection.opened.server.to_string(),
            is_joined: connection.opened.started_midstream,
            ending: connection.ending,
            opened_ns: connection.opened_ns,
            ended_ns: connection.ended_ns,
            bytes: [requests.bytes, replies.bytes],
            rows: [counts(requests, &states[0]), counts(replies, &states[1])],
            trips: connection.trips.count,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for (track, states) in self.connection.tracks.iter().zip(&self.states) {
            columns(&track.packets, out)?;
            columns(&track.acknowledgements, out)?;
            columns(&track.messages, out)?;
            columns(&track.gaps, out)?;
            states.iter().try_for_each(|rows| columns(rows, out))?;
        }
        columns(&self.connection.trips, out)
    }
}

fn rows(list: &[Span]) -> Rows<2> {
    let mut rows = Rows::default();
    list.iter().for_each(|span| rows.push([span.from_ns, span.to_ns]));
    rows
}

fn columns<const N: usize>(rows: &Rows<N>, out: &mut impl Write) -> io::Result<()> {
    rows.columns.iter().try_for_each(|column| out.write_all(column))
}
