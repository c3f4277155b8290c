// SPDX-License-Identifier: MIT
//! One film under one scheduler, as it was recorded, and the times between its frames.

use crate::mpv::{Drawn, FRAMES_PER_SECOND};
use crate::order::in_turn;
use crate::processor::Reserved;
use crate::scheduler::Scheduler;
use crate::statistics::Summary;
use serde::{Deserialize, Serialize};

pub(super) const FRAME_MS: f64 = 1000.0 / FRAMES_PER_SECOND as f64;
/// An inter-frame time so far from [`FRAME_MS`] still counts as regular.
pub(super) const TOLERANCE_MS: f64 = 2.0;
/// The window is made and shown in the first ones.
pub(super) const FIRST_FRAMES: usize = 10;

/// Who schedules, and what mpv has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    Stock,
    Fair,
    /// Server time.
    Cbs,
    /// That, and processor time, for the server too while it works for mpv. Needs the right.
    Both,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Stock, Way::Fair, Way::Cbs, Way::Both];

    /// Also the name of its colour in a page.
    pub fn name(self) -> &'static str {
        if self == Way::Both { "both" } else { self.scheduler().name() }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        if self == Way::Both { "cbs, and CPU reserved" } else { self.scheduler().title() }
    }

    pub fn scheduler(self) -> Scheduler {
        match self {
            Way::Stock => Scheduler::Stock,
            Way::Fair => Scheduler::Fair,
            Way::Cbs | Way::Both => Scheduler::Cbs,
        }
    }

    pub fn is_reserved(self) -> bool {
        self.scheduler() == Scheduler::Cbs
    }

    /// Those that this user may have measured; every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Way> {
        let may = Reserved::is_allowed();
        in_turn(Way::ALL, turn).into_iter().filter(|&way| may || way != Way::Both).collect()
    }
}

/// Times by the server's clock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Showing {
    pub turn: u32,
    pub way: Way,
    pub test: String,
    pub clients: usize,
    pub drops: bool,
    /// The load's clients were started, all of them were busy, and they were told to end.
    pub load_began_ns: u64,
    pub load_busy_ns: u64,
    pub load_ended_ns: u64,
    /// Meanwhile the server was runnable and had no processor.
    pub kernel_ns: u64,
    pub frames: Vec<Drawn>,
    /// Left out by mpv.
    pub dropped: u64,
    /// Records of the trace that are missing.
    pub lost: u64,
}

/// From one frame to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    /// Of the later one.
    pub frame: usize,
    at_ns: u64,
    pub ms: f64,
    /// The same of the moments at which the two were asked for.
    own_ms: f64,
}

impl Showing {
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        self.frames.windows(2).enumerate().map(move |(index, pair)| Interval {
            frame: index + 1,
            at_ns: pair[1].drawn_ns,
            ms: ms(pair[0].drawn_ns, pair[1].drawn_ns),
            own_ms: ms(pair[0].asked_ns, pair[1].asked_ns),
        })
    }

    pub fn before(&self) -> impl Iterator<Item = Interval> + '_ {
        self.intervals().filter(|interval| interval.frame >= FIRST_FRAMES && interval.at_ns <= self.load_began_ns)
    }

    pub fn beside(&self) -> impl Iterator<Item = Interval> + '_ {
        self.intervals().filter(|interval| (self.load_began_ns..=self.load_ended_ns).contains(&interval.at_ns))
    }

    pub fn busy(&self) -> impl Iterator<Item = Interval> + '_ {
        self.beside().filter(|interval| interval.at_ns >= self.load_busy_ns)
    }

    pub fn own_regular(&self) -> f64 {
        part(self.beside().map(|interval| Interval::is_regular(interval.own_ms)))
    }

    pub fn response_ms(&self) -> Summary {
        Summary::of(self.frames_beside().map(|frame| (frame.drawn_ns - frame.asked_ns) as f64 / 1e6))
    }

    pub fn behind_ms(&self) -> Summary {
        Summary::of(self.frames_beside().map(|frame| frame.behind_ns as f64 / 1e6))
    }

    /// Part of the time beside the load.
    pub fn kernel_part(&self) -> f64 {
        self.kernel_ns as f64 / (self.load_ended_ns - self.load_began_ns) as f64
    }

    fn frames_beside(&self) -> impl Iterator<Item = &Drawn> {
        let load = self.load_began_ns..=self.load_ended_ns;
        self.frames.iter().filter(move |frame| load.contains(&frame.drawn_ns))
    }
}

pub(super) fn regular(intervals: impl Iterator<Item = Interval>) -> f64 {
    part(intervals.map(|interval| Interval::is_regular(interval.ms)))
}

/// 0 of none.
fn part(held: impl Iterator<Item = bool>) -> f64 {
    let (all, those) = held.fold((0, 0), |(all, those), held| (all + 1, those + u32::from(held)));
    f64::from(those) / f64::from(all.max(1))
}

impl Interval {
    fn is_regular(ms: f64) -> bool {
        (ms - FRAME_MS).abs() <= TOLERANCE_MS
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Frames at these milliseconds; the load from the second frame on.
    pub fn showing(way: Way, drawn_ms: &[u64]) -> Showing {
        let frames: Vec<Drawn> = drawn_ms.iter().map(|ms| drawn(ms * 1_000_000)).collect();
        let (load_began_ns, load_ended_ns) = (frames[1].drawn_ns + 1, frames[frames.len() - 1].drawn_ns);
        Showing {
            turn: 0,
            way,
            test: "getimagexy100".to_owned(),
            clients: 12,
            drops: false,
            load_began_ns,
            load_busy_ns: load_began_ns,
            load_ended_ns,
            kernel_ns: 0,
            frames,
            dropped: 0,
            lost: 0,
        }
    }

    fn drawn(drawn_ns: u64) -> Drawn {
        Drawn { asked_ns: drawn_ns - 500_000, behind_ns: 200_000, drawn_ns }
    }

    #[test]
    fn a_late_frame_spoils_two_intervals_and_those_before_the_load_do_not_count() {
        let film = showing(Way::Cbs, &[10, 100, 140, 183, 220, 260]);
        assert_eq!(film.beside().count(), 4);
        assert_eq!(regular(film.beside()), 0.5);
        assert_eq!((film.response_ms().worst, film.behind_ms().worst), (0.5, 0.2));
    }
}
