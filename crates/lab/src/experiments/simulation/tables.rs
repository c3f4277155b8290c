// SPDX-License-Identifier: MIT
//! Predictions and measurements, as tables and as a chart.

use super::{Pair, RESERVED, Reserved, Simulation, Situation, Turn};
use crate::scheduler::Scheduler;
use crate::statistics::{Spread, Summary, deviation, mean};
use crate::study::{Columns, Group, Range, Ranges, Table, figure, spread_figure};
use xqos_sim::scenario::Costs;

impl Simulation {
    pub(super) fn table(&self, situation: Situation) -> Table {
        let response = situation.response();
        let measured = |row: &Scheduler| self.all(situation, *row, |pair| &pair.measured.response_ms);
        let simulated = |row: &Scheduler| self.all(situation, *row, |pair| &pair.simulated.response_ms);
        let p99 = |values: Vec<f64>| figure(Summary::of(values).p99);
        let interval = |row: &Scheduler, of: fn(&Pair) -> &[f64]| match self.all(situation, *row, of) {
            none if none.is_empty() => "-".to_owned(),
            values => format!("{} ({})", figure(mean(&values)), figure(deviation(&values))),
        };
        Columns::of(format!("{}; milliseconds, mean over all turns", situation.title()), Scheduler::ALL)
            .cell("scheduler", |row| row.name().to_owned())
            .cell(format!("{response}: measured"), |row| figure(mean(&measured(row))))
            .cell("simulated", |row| figure(mean(&simulated(row))))
            .cell("simulated over measured", |row| spread_figure(&self.ratio(situation, *row, mean)))
            .cell("p99: measured", |row| p99(measured(row)))
            .cell("simulated", |row| p99(simulated(row)))
            .cell("interval (deviation): measured", |row| interval(row, |pair| &pair.measured.interval_ms))
            .cell("simulated", |row| interval(row, |pair| &pair.simulated.interval_ms))
            .table()
            .keyed(situation.name())
    }

    pub(super) fn table_of_reserved(&self) -> Table {
        let title = "hard: x11perf -getimagexy100 alone with a hard reservation, medians over the turns";
        let of = |(part, period_ms): &((u32, u32), u32), value: fn(&Reserved) -> f64| {
            let all = self.turns.iter().flat_map(|turn| &turn.reserved);
            figure(Spread::of(all.filter(|one| (one.part, one.period_ms) == (*part, *period_ms)).map(value)).median)
        };
        Columns::of(title, RESERVED)
            .cell("Q/T", |(part, _)| format!("{}/{}", part.0, part.1))
            .cell("T ms", |(_, period_ms)| period_ms.to_string())
            .cell("asked %", |(part, _)| figure(f64::from(part.0) / f64::from(part.1) * 100.0))
            .cell("share %: measured", |row| of(row, |one| one.measured.0 * 100.0))
            .cell("simulated", |row| of(row, |one| one.simulated.0 * 100.0))
            .cell("x11perf's operations /s: measured", |row| of(row, |one| one.measured.1))
            .cell("requests /s: simulated", |row| of(row, |one| one.simulated.1))
            .table()
    }

    pub(super) fn table_of_costs(&self) -> Table {
        let title = "Costs given to the simulator: each client alone; microseconds, medians over the turns";
        let mut table = Table::new(title, &["situation", "what", "us (range)"]);
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
            let all = |scheduler| Summary::of(self.all(situation, scheduler, values));
            let ranges = Scheduler::ALL.into_iter().filter_map(|one| Range::of(one.name(), all(one)));
            Group { name: format!("{}, {whose}", situation.name()), ranges: ranges.collect() }
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
