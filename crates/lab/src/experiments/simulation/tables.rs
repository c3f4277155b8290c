//! Prediction beside measurement, as tables and as a chart.

use super::{Pair, RESERVED, Reserved, Simulation, Situation, Turn};
use crate::scheduler::Scheduler;
use crate::statistics::{Spread, Summary, deviation, mean};
use crate::study::{Group, Range, Ranges, Table, figure, spread_figure};
use xqos_sim::scenario::Costs;

impl Simulation {
    pub(super) fn table(&self, situation: Situation) -> Table {
        let response = situation.response();
        let head = [
            "scheduler".to_owned(),
            format!("{response}: measured"),
            "simulated".to_owned(),
            "simulated over measured".to_owned(),
            "p99: measured".to_owned(),
            "simulated".to_owned(),
            "interval (deviation): measured".to_owned(),
            "simulated".to_owned(),
        ];
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let mut table = Table::new(format!("{}; milliseconds, mean over all turns", situation.title()), &head);
        for scheduler in Scheduler::ALL {
            let measured = self.all(situation, scheduler, |pair| &pair.measured.response_ms);
            let simulated = self.all(situation, scheduler, |pair| &pair.simulated.response_ms);
            let interval = |values: Vec<f64>| match values.len() {
                0 => "-".to_owned(),
                _ => format!("{} ({})", figure(mean(&values)), figure(deviation(&values))),
            };
            table.rows.push(vec![
                scheduler.name().to_owned(),
                figure(mean(&measured)),
                figure(mean(&simulated)),
                spread_figure(&self.ratio(situation, scheduler, mean)),
                figure(Summary::of(measured.iter().copied()).p99),
                figure(Summary::of(simulated.iter().copied()).p99),
                interval(self.all(situation, scheduler, |pair| &pair.measured.interval_ms)),
                interval(self.all(situation, scheduler, |pair| &pair.simulated.interval_ms)),
            ]);
        }
        table
    }

    pub(super) fn table_of_reserved(&self) -> Table {
        let title = "hard: x11perf -getimagexy100 alone with a hard reservation, medians over the turns";
        let head = [
            "Q/T",
            "T ms",
            "asked %",
            "share %: measured",
            "simulated",
            "x11perf's operations /s: measured",
            "requests /s: simulated",
        ];
        let mut table = Table::new(title, &head);
        for (part, period_ms) in RESERVED {
            let of = |value: fn(&Reserved) -> f64| {
                let all = self.turns.iter().flat_map(|turn| &turn.reserved);
                figure(Spread::of(all.filter(|one| (one.part, one.period_ms) == (part, period_ms)).map(value)).median)
            };
            table.rows.push(vec![
                format!("{}/{}", part.0, part.1),
                period_ms.to_string(),
                figure(f64::from(part.0) / f64::from(part.1) * 100.0),
                of(|one| one.measured.0 * 100.0),
                of(|one| one.simulated.0 * 100.0),
                of(|one| one.measured.1),
                of(|one| one.simulated.1),
            ]);
        }
        table
    }

    pub(super) fn table_of_costs(&self) -> Table {
        let title = "What the simulator was told: each client alone; microseconds, medians over the turns";
        let mut table = Table::new(title, &["situation", "what", "us (least .. greatest)"]);
        for situation in Situation::ALL {
            let of_situation = |turn: &'_ Turn| turn.costs.iter().find(|(one, _)| *one == situation).cloned();
            let all: Vec<Costs> = self.turns.iter().filter_map(of_situation).map(|(_, costs)| costs).collect();
            for name in all.first().map(|costs| costs.keys().cloned().collect::<Vec<_>>()).unwrap_or_default() {
                let spread = Spread::of(all.iter().filter_map(|costs| costs.get(&name).copied()));
                table.rows.push(vec![situation.name().to_owned(), name, spread_figure(&spread)]);
            }
        }
        table
    }

    pub(super) fn chart(&self) -> Ranges {
        let group = |situation: Situation, whose: &str, values: fn(&Pair) -> &[f64]| {
            let ranges = Scheduler::ALL.map(|scheduler| {
                let Summary { mean, p50, p99, worst, .. } = Summary::of(self.all(situation, scheduler, values));
                Range { case: scheduler.name().to_owned(), p50, mean, p99, worst }
            });
            Group { name: format!("{}, {whose}", situation.name()), ranges: ranges.into() }
        };
        let groups = Situation::ALL.into_iter().flat_map(|situation| {
            [
                group(situation, "measured", |pair| &pair.measured.response_ms),
                group(situation, "simulated", |pair| &pair.simulated.response_ms),
            ]
        });
        Ranges {
            title: "Response times, measured and simulated".to_owned(),
            x_label: "echo, drawing, response: ms".to_owned(),
            groups: groups.collect(),
        }
    }
}
