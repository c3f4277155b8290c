// SPDX-License-Identifier: MIT
//! A short trace of ocbench: the paper's Figures 3, 4, 7 and 8, and what each burst waited for.
//!
//! A burst begins when the server knew of it (activation) and ends when it has nothing left to serve (deactivation).
//! Between the two the server served ocbench, or others, or did neither: it polled, or the kernel ran something else.

use super::bursts::{Budget, Burst, Recorder, Slice};
use super::{Case, course};
use crate::load::{Load, Perf};
use crate::ocbench::Ocbench;
use crate::scheduler::Stage;
use crate::statistics::{Summary, deviation, mean};
use crate::study::{Chart, Columns, Lane, Lanes, Table, figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use xqos_abi::trace::Level;

/// Half a second of bursts beside nobody.
const BURSTS: usize = 40;
const FIRST_BURSTS: usize = 10;
/// Nobody reads meanwhile: the records of several seconds.
const CAPACITY: u32 = 1 << 19;
/// The first burst that is drawn, how long before it the picture begins, and how much is drawn.
const DRAWN_BURST: usize = 5;
const LEAD_NS: u64 = 5_000_000;
const DRAWN_NS: u64 = 150_000_000;
/// In the picture, gaps well below a pixel are closed.
const CLOSED_NS: u64 = 20_000;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Traced {
    pub case: Case,
    pub clients: usize,
    bursts: Vec<Burst>,
    /// ocbench, then the load's clients.
    slices: Vec<Vec<Slice>>,
    /// ocbench's reservation whenever it changed.
    budgets: Vec<Budget>,
    /// Where the picture begins; slices and budgets are kept from there on only.
    drawn_from_ns: u64,
    lost: u64,
}

impl Traced {
    pub fn record(stage: &Stage, case: Case, spokes: usize, load: Option<(&Perf, usize)>) -> Result<Traced> {
        stage.follow(case.scheduler())?;
        let server = stage.server();
        let start = |(perf, clients)| Load::start(server.display(), perf, clients, course::placement(clients));
        let mut load = load.map(start).transpose()?;
        let control = server.control()?;
        case.reserve(&control)?;
        let mut ocbench = Ocbench::new(&control, spokes)?;
        ocbench.activate(server, Instant::now(), FIRST_BURSTS, |_| {})?;
        let mut trace = stage.control().start_trace(Level::Slices, CAPACITY)?;
        ocbench.activate(server, Instant::now(), BURSTS, |_| {})?;
        load.as_mut().map_or(Ok(()), Load::see_running)?;
        let pids = load.as_ref().map(Load::pids).unwrap_or_default();
        let mut recorder = Recorder::new(ocbench.base(), pids);
        recorder.read(&mut trace);
        stage.control().stop_trace()?;
        Ok(Traced::of(case, recorder))
    }

    fn of(case: Case, recorder: Recorder) -> Traced {
        let Recorder { mut slices, mut budgets, bursts, lost, .. } = recorder;
        let first = bursts.get(DRAWN_BURST).or(bursts.last());
        let drawn_from_ns = first.map_or(0, |burst| burst.arrived_ns.saturating_sub(LEAD_NS));
        let drawn_to_ns = drawn_from_ns + DRAWN_NS;
        for client in &mut slices {
            client.retain(|slice| slice.end_ns > drawn_from_ns && slice.begin_ns < drawn_to_ns);
        }
        budgets.retain(|budget| (drawn_from_ns..drawn_to_ns).contains(&budget.at_ns));
        Traced { case, clients: slices.len() - 1, bursts, slices, budgets, drawn_from_ns, lost }
    }

    /// What it is of, for people.
    pub fn name(&self) -> String {
        match (self.figure(), self.clients) {
            (Some(number), 0) => format!("Figure {number}: {}, nobody else", self.case.title()),
            (Some(number), clients) => format!("Figure {number}: {}, {clients} x x11perf", self.case.title()),
            (None, clients) => format!("{}, {clients} x x11perf", self.case.title()),
        }
    }

    /// The paper's.
    fn figure(&self) -> Option<u32> {
        match (self.case, self.clients) {
            (_, 0) => Some(3),
            (Case::Stock, _) => Some(4),
            (Case::Hard, _) => Some(7),
            (Case::Soft, _) => Some(8),
            (Case::Fair | Case::Both, _) => None,
        }
    }

    pub fn chart(&self) -> Chart {
        let own = Lane {
            arrivals: self.places(self.bursts.iter().map(|burst| burst.arrived_ns)),
            ends: self.places(self.bursts.iter().map(|burst| burst.done_ns)),
            deadlines: self.places(self.deadlines_ns()),
            ..self.lane(0, self.case.name(), "ocbench".to_owned())
        };
        let name = |client| if self.clients == 1 { "x11perf".to_owned() } else { format!("x11perf {client}") };
        let others = (1..self.slices.len()).map(|client| self.lane(client, "idle", name(client)));
        Chart::Lanes(Lanes {
            title: self.name(),
            x_label: "milliseconds".to_owned(),
            length: DRAWN_NS as f64 / 1e6,
            lanes: std::iter::once(own).chain(others).collect(),
            ..Lanes::default()
        })
    }

    /// Each once.
    fn deadlines_ns(&self) -> impl Iterator<Item = u64> + '_ {
        let mut before = 0;
        let all = self.budgets.iter().map(|budget| budget.deadline_ns);
        all.filter(move |&deadline| std::mem::replace(&mut before, deadline) != deadline)
    }

    fn lane(&self, client: usize, case: &str, name: String) -> Lane {
        let mut closed: Vec<Slice> = Vec::new();
        for &slice in &self.slices[client] {
            match closed.last_mut() {
                Some(last) if slice.begin_ns.saturating_sub(last.end_ns) < CLOSED_NS => last.end_ns = slice.end_ns,
                _ => closed.push(slice),
            }
        }
        let slices = closed.iter().map(|slice| [self.place(slice.begin_ns), self.place(slice.end_ns)]).collect();
        Lane { case: case.to_owned(), name, slices, ..Lane::default() }
    }

    /// In microseconds on an axis of milliseconds, as far as it is drawn.
    fn place(&self, ns: u64) -> f64 {
        let place_us = ns.saturating_sub(self.drawn_from_ns).min(DRAWN_NS) / 1000;
        place_us as f64 / 1e3
    }

    fn places(&self, all_ns: impl Iterator<Item = u64>) -> Vec<f64> {
        let drawn = self.drawn_from_ns..self.drawn_from_ns + DRAWN_NS;
        all_ns.filter(|ns| drawn.contains(ns)).map(|ns| self.place(ns)).collect()
    }

    fn spacing(&self) -> String {
        let apart = |pair: &[Burst]| pair[1].arrived_ns.saturating_sub(pair[0].arrived_ns) as f64 / 1e6;
        let spacing: Vec<f64> = self.bursts.windows(2).map(apart).collect();
        format!("{} ({})", figure(mean(&spacing)), figure(deviation(&spacing)))
    }

    /// Mean and worst.
    fn ms(&self, ns: fn(&Burst) -> u64) -> String {
        let of = Summary::of(self.bursts.iter().map(|burst| ns(burst) as f64 / 1e6));
        format!("{} ({})", figure(of.mean), figure(of.worst))
    }

    /// Only a reservation has a deadline and is depleted.
    fn count(&self, holds: fn(&Burst) -> bool) -> String {
        match self.bursts.iter().any(|burst| burst.deadline_ns.is_some()) {
            true => self.bursts.iter().filter(|burst| holds(burst)).count().to_string(),
            false => "-".to_owned(),
        }
    }
}

/// Of all traces, the numbers that the pictures show.
pub(super) fn table(traces: &[Traced]) -> Table {
    let is_late = |burst: &Burst| burst.deadline_ns.is_some_and(|deadline| burst.done_ns > deadline);
    Columns::of("Bursts of ocbench in the traces, by the server's clock", traces)
        .cell("trace", |trace| trace.name())
        .cell("bursts", |trace| trace.bursts.len().to_string())
        .cell("spacing ms (deviation)", |trace| trace.spacing())
        .cell("arrival to end ms, mean (worst)", |trace| trace.ms(Burst::delay_ns))
        .cell("served", |trace| trace.ms(|burst| burst.served_ns))
        .cell("behind others", |trace| trace.ms(|burst| burst.behind_ns))
        .cell("neither", |trace| trace.ms(Burst::neither_ns))
        .cell("past the deadline", |trace| trace.count(is_late))
        .cell("depleted", |trace| trace.count(|burst| burst.depleted))
        .cell("records lost", |trace| trace.lost.to_string())
        .table()
}

/// Why budgets were used up, if any was.
pub(super) fn about_depletions(traces: &[Traced]) -> Option<String> {
    let bursts = || traces.iter().flat_map(|trace| &trace.bursts);
    let served = Summary::of(bursts().map(|burst| burst.served_ns as f64 / 1e6));
    let depleted = Summary::of(bursts().filter(|burst| burst.depleted).map(|burst| burst.served_ns as f64 / 1e6));
    (depleted.count > 0).then(|| {
        format!(
            "Depleted. Bursts in the traces that came to the end of their budget, or came when it was used up: {}. They \
             were counted {} ms on average, and the shortest burst of all took {} ms. A budget is used up by the clock: \
             what a burst took longer is above all time in which the kernel ran something else in the server's place.",
            depleted.count,
            figure(depleted.mean),
            figure(served.least)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::bursts::tests::{OTHER, OWN, arrived, budget, recorder, served};
    use super::*;

    #[test]
    fn a_burst_that_ends_after_its_deadline_is_counted() {
        let burst = |ms, took| [arrived(ms), budget(ms, 3, ms + 10), served(OWN, ms, ms + took, false)];
        let events = [burst(10, 2), burst(30, 11)].concat();
        let row = &table(&[Traced::of(Case::Hard, recorder(&events))]).rows[0];
        assert_eq!((row[1].as_str(), row[7].as_str()), ("2", "1"), "{row:?}");
        assert_eq!(row[3], "6.50 (11)");
    }

    #[test]
    fn a_depletion_is_explained_and_none_is_not_mentioned() {
        let begun = [arrived(10), budget(10, 3, 20), served(OWN, 10, 12, true)];
        let enough = [begun.to_vec(), vec![budget(12, 1, 20), served(OWN, 12, 13, false)]].concat();
        let stopped = [begun.to_vec(), vec![budget(12, -5, 20), served(OWN, 21, 28, false)]].concat();
        let traces = [enough, stopped].map(|events| Traced::of(Case::Hard, recorder(&events)));
        assert_eq!(about_depletions(&traces[..1]), None);
        let told = about_depletions(&traces).unwrap();
        assert!(
            told.contains("used up: 1.") && told.contains("9 ms on average") && told.contains("took 3 ms"),
            "{told}"
        );
    }

    #[test]
    fn each_client_has_a_lane_and_only_ocbench_has_marks() {
        let burst = |ms| [arrived(ms), budget(ms, 3, ms + 10), served(OWN, ms, ms + 2, false)];
        let mut events: Vec<_> = (1..20).flat_map(|turn| burst(turn * 12)).collect();
        events.push(served(OTHER, 80, 82, false));
        let Chart::Lanes(chart) = Traced::of(Case::Soft, recorder(&events)).chart() else { panic!("not lanes") };
        let names: Vec<&str> = chart.lanes.iter().map(|lane| lane.name.as_str()).collect();
        assert_eq!(names, ["ocbench", "x11perf"]);
        let (own, other) = (&chart.lanes[0], &chart.lanes[1]);
        assert_eq!((own.slices[0], own.arrivals[0], own.ends[0], own.deadlines[0]), ([5.0, 7.0], 5.0, 7.0, 15.0));
        assert_eq!(other.slices, [[13.0, 15.0]], "from 5 ms before the sixth burst on");
        assert!(other.arrivals.is_empty() && other.deadlines.is_empty());
        assert!(own.slices.iter().flatten().all(|&at| at <= chart.length));
    }
}
