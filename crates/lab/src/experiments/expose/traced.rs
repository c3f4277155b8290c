// SPDX-License-Identifier: MIT
//! A second of a drag on one time axis, X and the kernel: the pictures of the message of 2005, and their numbers.
//!
//! The kernel tells when each program ran, waited for the processor, or slept; the server's trace whom it served, and when
//! it delivered an Expose; the looker-on when the answer was drawn. All by the same clock.

use super::case::{Case, Play};
use super::scene::{self, Scene, Stage};
use crate::onlooker::Sight;
use crate::processor::{Pinned, now_ns};
use crate::study::{Chart, Lane, Lanes, Table, figure, percent};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use xqos_abi::trace::{Entry, Event, Level};
use xqos_core::{ClientId, Fact, Service};
use xqos_trace::kernel::Kernel;

const TIME: Duration = Duration::from_secs(1);
/// Nobody reads meanwhile.
const CAPACITY: u32 = 1 << 18;
/// Of the second, what is drawn.
const DRAWN_NS: u64 = 200_000_000;
/// In the picture, gaps well below a pixel are closed.
const CLOSED_NS: u64 = 30_000;

/// From and to, by the common clock.
type Stretch = (u64, u64);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Traced {
    pub case: Case,
    pub play: Play,
    from_ns: u64,
    to_ns: u64,
    /// The server first, the exposed program last.
    tracks: Vec<Track>,
    exposes_ns: Vec<u64>,
    answers_ns: Vec<u64>,
}

/// One thread, as the kernel tells of it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Track {
    name: String,
    running: Vec<Stretch>,
    /// Runnable, and another one had the processor.
    waiting: Vec<Stretch>,
    /// The server served it meanwhile.
    served: Vec<Stretch>,
    /// How often it was runnable still when another one got the processor.
    set_aside: u32,
}

impl Traced {
    /// An error where the kernel does not let us.
    pub fn record(stage: &Stage, play: Play, case: Case) -> Result<Traced> {
        let control = stage.control.as_ref().context("a server without xqos has no trace")?;
        let _beside = Pinned::beside_the_scene()?;
        let _help = case.begin(&stage.server, Some(control))?;
        let mut scene = Scene::set(stage, play)?;
        scene.play(Duration::from_millis(300))?;
        let threads = scene.threads(&stage.server);
        let pids: Vec<u32> = threads.iter().map(|thread| thread.0).collect();
        let mut kernel = Kernel::start(&pids)?;
        let mut trace = control.start_trace(Level::Slices, CAPACITY)?;
        let from_ns = now_ns();
        scene.play(TIME)?;
        let to_ns = now_ns();
        let mut of_kernel = kernel.read();
        drop(kernel);
        of_kernel.retain(|event| event.at.0 <= to_ns);
        let of_server = scene::read(&mut trace);
        control.stop_trace()?;
        let seen = scene.rest()?;
        let mut tracks: Vec<Track> =
            threads.iter().map(|&(tid, name)| Track::of(tid, name, &of_kernel, to_ns)).collect();
        let mut exposes_ns = Vec::new();
        let mut clients: BTreeMap<ClientId, usize> = BTreeMap::new();
        for Event { at, what } in of_server {
            match what {
                Entry::Identity { client, pid, .. } => {
                    clients.extend(pids.iter().position(|&one| one == pid).map(|place| (client, place)));
                }
                Entry::Fact(Fact::Served(Service { client, start, .. })) => {
                    clients.get(&client).into_iter().for_each(|&place| tracks[place].served.push((start.0, at.0)));
                }
                Entry::Fact(Fact::Exposed { client, .. }) if clients.get(&client) == Some(&(pids.len() - 1)) => {
                    exposes_ns.push(at.0);
                }
                _ => {}
            }
        }
        let answers = seen.iter().filter(|seen| matches!(seen.1, Sight::Answered { .. })).map(|seen| seen.0);
        let inside = |all: Vec<u64>| all.into_iter().filter(|at| (from_ns..to_ns).contains(at)).collect();
        let (exposes_ns, answers_ns) = (inside(exposes_ns), inside(answers.collect()));
        Ok(Traced { case, play, from_ns, to_ns, tracks, exposes_ns, answers_ns })
    }

    pub fn chart(&self) -> Chart {
        let mut lanes: Vec<Lane> = Vec::new();
        for (number, track) in self.tracks.iter().enumerate() {
            let is_exposed = number + 1 == self.tracks.len();
            let marks = |all: &[u64]| if is_exposed { self.places(all) } else { Vec::new() };
            lanes.push(Lane {
                case: if is_exposed { self.case.name() } else { "idle" }.to_owned(),
                name: track.name.clone(),
                slices: self.stretches(&track.running),
                waiting: self.stretches(&track.waiting),
                arrivals: marks(&self.exposes_ns),
                ends: marks(&self.answers_ns),
                ..Lane::default()
            });
        }
        for track in self.tracks.iter().filter(|track| !track.served.is_empty()) {
            let (case, name) = ("published".to_owned(), format!("X: {}", track.name));
            lanes.push(Lane { case, name, slices: self.stretches(&track.served), ..Lane::default() });
        }
        Chart::Lanes(Lanes {
            title: format!("{}, {}: who ran, and whom the server served (X:)", self.play.title(), self.case.title()),
            x_label: "milliseconds".to_owned(),
            length: DRAWN_NS as f64 / 1e6,
            words: [("slices", "running; X: served"), ("arrivals", "Expose"), ("ends", "answered")]
                .map(|(kind, words)| (kind.to_owned(), words.to_owned()))
                .into(),
            lanes,
        })
    }

    /// Drawn is the end: at the beginning a boost or a pacing may not have come to its rhythm.
    fn drawn_from_ns(&self) -> u64 {
        self.to_ns.saturating_sub(DRAWN_NS).max(self.from_ns)
    }

    fn place(&self, at_ns: u64) -> f64 {
        (at_ns.saturating_sub(self.drawn_from_ns()).min(DRAWN_NS) / 1000) as f64 / 1e3
    }

    fn places(&self, all: &[u64]) -> Vec<f64> {
        let from = self.drawn_from_ns();
        all.iter().filter(|&&at| (from..from + DRAWN_NS).contains(&at)).map(|&at| self.place(at)).collect()
    }

    fn stretches(&self, all: &[Stretch]) -> Vec<[f64; 2]> {
        let from = self.drawn_from_ns();
        let mut closed: Vec<Stretch> = Vec::new();
        for &(begin, end) in all.iter().filter(|one| one.1 > from && one.0 < from + DRAWN_NS) {
            match closed.last_mut() {
                Some(last) if begin.saturating_sub(last.1) < CLOSED_NS => last.1 = last.1.max(end),
                _ => closed.push((begin, end)),
            }
        }
        closed.iter().map(|&(begin, end)| [self.place(begin), self.place(end)]).collect()
    }

    fn row(&self) -> Option<Vec<String>> {
        let (exposed, others) = self.tracks.split_last()?;
        let redraws = self.answers_ns.len().max(1) as f64;
        let all_ns = (self.to_ns - self.from_ns) as f64;
        let ran = total(&exposed.running) as f64;
        let stretch_ms = ran / 1e6 / exposed.running.len().max(1) as f64;
        let behind =
            |track: &Track| format!("{} {}", track.name, percent(overlap(&exposed.waiting, &track.running) / all_ns));
        Some(vec![
            format!("{}: {}", self.play.title(), self.case.title()),
            self.answers_ns.len().to_string(),
            figure(ran / 1e6 / redraws),
            figure(f64::from(exposed.set_aside) / redraws),
            figure(stretch_ms),
            percent(ran / all_ns),
            percent(total(&exposed.waiting) as f64 / all_ns),
            others.iter().map(behind).collect::<Vec<_>>().join(", "),
        ])
    }
}

/// The numbers of the pictures.
pub(super) fn table(traces: &[Traced]) -> Table {
    let head = [
        "trace of a second",
        "redraws",
        "processor ms a redraw",
        "set aside, times a redraw",
        "ms at a stretch",
        "exposed ran",
        "waited for the processor",
        "meanwhile ran",
    ];
    let mut table = Table::new("The exposed program and the processor", &head);
    table.rows = traces.iter().filter_map(Traced::row).collect();
    table
}

impl Track {
    fn of(tid: u32, name: &str, events: &[Event], end_ns: u64) -> Track {
        let mut track = Track { name: name.to_owned(), ..Track::default() };
        let (mut ran_since, mut waited_since) = (None, None);
        for event in events {
            let at = event.at.0;
            match event.what {
                Entry::Switch { to, .. } if to == tid => {
                    track.waiting.extend(waited_since.take().map(|since| (since, at)));
                    ran_since = Some(at);
                }
                Entry::Switch { from, still_runnable, .. } if from == tid => {
                    track.running.extend(ran_since.take().map(|since| (since, at)));
                    track.set_aside += u32::from(still_runnable);
                    waited_since = still_runnable.then_some(at);
                }
                Entry::Wakeup { thread, .. } if thread == tid && ran_since.is_none() => {
                    waited_since.get_or_insert(at);
                }
                _ => {}
            }
        }
        let open = |since: Option<u64>| since.map(|since| (since, end_ns.max(since)));
        track.running.extend(open(ran_since));
        track.waiting.extend(open(waited_since));
        track
    }
}

fn total(all: &[Stretch]) -> u64 {
    all.iter().map(|one| one.1 - one.0).sum()
}

/// Time in which both were; each in order.
fn overlap(ones: &[Stretch], others: &[Stretch]) -> f64 {
    let both = |one: &Stretch, other: &Stretch| one.1.min(other.1).saturating_sub(one.0.max(other.0));
    ones.iter().map(|one| others.iter().map(|other| both(one, other)).sum::<u64>()).sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::Time;

    const MS: u64 = 1_000_000;

    fn event(at_ms: u64, what: Entry) -> Event {
        Event { at: Time(at_ms * MS), what }
    }

    fn switch(at_ms: u64, from: u32, to: u32, still_runnable: bool) -> Event {
        event(at_ms, Entry::Switch { cpu: 0, from, to, still_runnable })
    }

    /// The exposed program, 2, is woken while the server, 1, runs, and set aside once.
    fn traced() -> Traced {
        let events = [
            switch(1, 0, 1, false),
            event(2, Entry::Wakeup { cpu: 0, thread: 2 }),
            switch(4, 1, 2, false),
            event(9, Entry::Wakeup { cpu: 0, thread: 1 }),
            switch(9, 2, 1, true),
            switch(12, 1, 2, false),
            switch(17, 2, 0, false),
        ];
        let track = |tid, name| Track::of(tid, name, &events, 20 * MS);
        let tracks = vec![track(1, "X server"), track(2, "exposed")];
        let (exposes_ns, answers_ns) = (vec![2 * MS], vec![17 * MS]);
        Traced { case: Case::Without, play: Play::Drag, from_ns: 0, to_ns: 20 * MS, tracks, exposes_ns, answers_ns }
    }

    #[test]
    fn who_was_set_aside_waits_and_who_sleeps_does_not() {
        let traced = traced();
        let exposed = &traced.tracks[1];
        assert_eq!((&exposed.running, exposed.set_aside), (&vec![(4 * MS, 9 * MS), (12 * MS, 17 * MS)], 1));
        assert_eq!(exposed.waiting, [(2 * MS, 4 * MS), (9 * MS, 12 * MS)]);
        let row = traced.row().unwrap();
        assert_eq!(row[1..7], ["1", "10", "1", "5", "50 %", "25 %"]);
        assert_eq!(row[7], "X server 25 %");
    }

    #[test]
    fn expose_and_answer_stand_on_the_exposed_programs_lane() {
        let Chart::Lanes(chart) = traced().chart() else { panic!("not lanes") };
        assert!(chart.lanes[0].arrivals.is_empty());
        let exposed = &chart.lanes[1];
        assert_eq!((&exposed.arrivals, &exposed.ends), (&vec![2.0], &vec![17.0]));
        assert_eq!(exposed.waiting, [[2.0, 4.0], [9.0, 12.0]]);
    }
}
