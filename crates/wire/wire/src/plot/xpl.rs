// SPDX-License-Identifier: MIT
//! Writes a file for xplot (Shepard, 1990), which drew Packard and Gettys' figures: one window per direction.
//!
//! The format is line-based: the types of both axes, then commands. Text follows its command on the next line. The
//! style is that of tcpdump2xplot: a packet is a line between two arrows; acknowledged data and window are stair lines
//! with ticks. A message is a line with an arrow at its end and its name, in the colour of the connection's state.

use super::activity::Activity;
use super::model::{Connection, Plot};
use super::track::{Bar, MessageMark, Step, Track};
use std::io::{self, Write};

const TITLES: [&str; 2] = ["requests", "replies, events, errors"];

pub fn write(plot: &Plot, connection: &Connection, title: &str, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = plot.names.iter().collect();
    for (direction, track) in connection.tracks.iter().enumerate() {
        if direction > 0 {
            writeln!(out, "new_plotter")?;
        }
        writeln!(out, "timeval double\ntitle\n{}: {}", line(title), TITLES[direction])?;
        writeln!(out, "xlabel\ntime\nylabel\nbytes")?;
        let clock = Clock { began_ns: plot.began_ns };
        stairs(track, &clock, plot.window().to_ns, out)?;
        track.bars().filter(|bar| bar.length > 0).try_for_each(|bar| packet(&bar, &clock, out))?;
        for mark in track.marks() {
            let state = connection.activity[direction].state_before(mark.last_ns);
            message(&mark, names.get(mark.name as usize).unwrap_or(&"?"), state, &clock, out)?;
        }
        for gap in track.gap_marks() {
            let (at, end) = (clock.at(gap.at_ns), gap.offset + gap.length);
            writeln!(out, "red\nline {at} {} {at} {end}\nrtext {at} {}\nnot captured", gap.offset, gap.offset)?;
        }
    }
    writeln!(out, "go")
}

/// xplot's timeval: seconds since 1970 with six decimal digits.
struct Clock {
    began_ns: u64,
}

impl Clock {
    fn at(&self, at_ns: u64) -> String {
        let us = self.began_ns.saturating_add(at_ns) / 1000;
        format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
    }
}

fn packet(bar: &Bar, clock: &Clock, out: &mut impl Write) -> io::Result<()> {
    let (at, low, high) = (clock.at(bar.at_ns), bar.offset, bar.offset + bar.length);
    writeln!(out, "{}", if bar.is_retransmission { "red" } else { "white" })?;
    writeln!(
        out,
        "dtick {at} {low}\nutick {at} {high}\nhtick {at} {low}\nhtick {at} {high}\nline {at} {low} {at} {high}"
    )?;
    if bar.is_retransmission {
        writeln!(out, "btext {at} {low}\nR")?;
    }
    Ok(())
}

fn message(mark: &MessageMark, name: &str, state: Activity, clock: &Clock, out: &mut impl Write) -> io::Result<()> {
    let (at, low, high) = (clock.at(mark.last_ns), mark.offset, mark.offset.saturating_add(mark.length));
    writeln!(out, "{}", colour(state))?;
    writeln!(
        out,
        "line {at} {low} {at} {high}\nuarrow {at} {high}\nrtext {at} {}\n{}",
        low + (high - low) / 2,
        line(name)
    )
}

fn colour(state: Activity) -> &'static str {
    match state {
        Activity::Idle => "white",
        Activity::Network => "orange",
        Activity::Receiver => "purple",
        Activity::Waiting => "blue",
    }
}

/// Draws acknowledged data and window edge as stairs: across to the next step, then up.
fn stairs(track: &Track, clock: &Clock, end_ns: u64, out: &mut impl Write) -> io::Result<()> {
    let mut last: Option<Step> = None;
    for step in track.steps() {
        if let Some(last) = last {
            across(&last, step.at_ns, clock, out)?;
            let at = clock.at(step.at_ns);
            writeln!(out, "green\nline {at} {} {at} {}", last.acknowledged, step.acknowledged)?;
            writeln!(out, "yellow\nline {at} {} {at} {}", last.edge, step.edge)?;
        }
        last = Some(step);
    }
    last.map_or(Ok(()), |last| across(&last, end_ns.max(last.at_ns), clock, out))
}

fn across(step: &Step, to_ns: u64, clock: &Clock, out: &mut impl Write) -> io::Result<()> {
    let (from, to) = (clock.at(step.at_ns), clock.at(to_ns));
    writeln!(out, "green\nline {from} {} {to} {}", step.acknowledged, step.acknowledged)?;
    writeln!(out, "yellow\nline {from} {} {to} {}", step.edge, step.edge)
}

/// A text must fit on one line.
fn line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
