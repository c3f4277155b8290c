// SPDX-License-Identifier: MIT
//! A line that follows the pointer, beside twelve plaids: Packard's 7.1 and Figure 1, with the schedulers since.
//!
//! The motion comes from outside the measured servers ([`crate::pointer`]), so that no client of the load's kind is in its
//! way. Idle is measured under the server's own scheduler; there is nothing to schedule.

use super::turns::{PLAIDS, Turns, beside_published, name, rows, with_deviation};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::line::{self, Echoes};
use crate::papers::Published;
use crate::plaid::Pattern;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Summary, mean};
use crate::study::{Chart, Columns, Goal, Group, Range, Ranges, Study, Table, Verdict, figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Echo beside twelve plaids: under the scheduler of 1987, and under the one of 2000.
const PUBLISHED_ECHO_MS: [(Scheduler, Published); 2] =
    [(Scheduler::Classic, Published("packard-2000.echo_old")), (Scheduler::Smart, Published("packard-2000.echo_new"))];

/// The paper's load as it was then, and as it is now: each has the goal of its time.
const PATTERNS: [Pattern; 2] = [Pattern::Published, Pattern::Original];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Interactive {
    on: Vec<OneServer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OneServer {
    server: String,
    pattern: Pattern,
    turns: Turns<Echoes>,
}

impl Measure for Interactive {
    const NAME: &'static str = "interactive";
    const ABOUT: &'static str = "echo of a line that follows the pointer beside twelve plaids (Packard 7.1)";
    const TAKES: Takes = Takes { quick_s: 40, full_s: 800 };

    fn run(bench: &Bench) -> Result<Self> {
        let moves = if bench.quick { 60 } else { 300 };
        let measure = |stage: &Stage, scheduler: Option<Scheduler>| {
            line::measure(stage.server(), scheduler.and_then(Scheduler::reservation), moves)
        };
        let kinds = [Kind::Xtigervnc, Kind::Xephyr];
        let mut on = Vec::new();
        for &kind in if bench.quick { &kinds[..1] } else { &kinds[..] } {
            let stage = Stage::of(Setup { screen: (1600, 1200), ..Setup::with_module(kind, bench.module()) })?;
            for pattern in PATTERNS {
                bench.say(format!("{kind:?}, {}", plaids(pattern)));
                let turns = Turns::beside_plaids(bench, &stage, pattern, measure)?;
                on.push(OneServer { server: format!("{kind:?}"), pattern, turns });
            }
        }
        Ok(Interactive { on })
    }

    fn study(&self) -> Study {
        Study {
            title: "A line that follows the pointer".to_owned(),
            question: format!(
                "A rubber-band line follows the pointer while {PLAIDS} plaids draw without end. How long after a motion \
                 has the line been drawn?"
            ),
            answer: String::new(),
            verdicts: self.on.iter().flat_map(OneServer::verdicts).collect(),
            tables: self.on.iter().map(OneServer::table).collect(),
            charts: vec![Chart::Ranges(self.chart())],
            notes: notes(),
        }
    }
}

impl Interactive {
    fn chart(&self) -> Ranges {
        Ranges {
            title: "Figure 1: from the motion to the line".to_owned(),
            x_label: "echo, ms".to_owned(),
            groups: self.on.iter().map(OneServer::group).collect(),
        }
    }
}

impl OneServer {
    fn verdicts(&self) -> Vec<Verdict> {
        let echo = |one: &Echoes| mean(&one.echo_ms());
        let ratio = |what: &str, above, below, goal| {
            let spread = self.turns.ratio(above, below, echo);
            let echoes = self.turns.count([above, below], |one| one.echo_ns.len());
            Verdict::of_spread(format!("{}: {what}", self.name()), spread, "x", goal).counting(echoes)
        };
        let (classic, smart) = (Some(Scheduler::Classic), Some(Scheduler::Smart));
        let (stock, fair, cbs) = (Some(Scheduler::Stock), Some(Scheduler::Fair), Some(Scheduler::Cbs));
        // The one ratio grows with the length of a request, the other one falls.
        let of = |pattern, goal| if self.pattern == pattern { goal } else { Goal::Reported };
        vec![
            ratio(
                "classic over smart",
                classic,
                smart,
                of(Pattern::Published, Goal::of(Key("interactive.classic_over_smart"))),
            ),
            ratio("stock over fair", stock, fair, of(Pattern::Original, Goal::of(Key("interactive.stock_over_fair")))),
            ratio("fair over idle", fair, None, Goal::Reported),
            ratio("reserved over idle", cbs, None, Goal::Reported),
        ]
    }

    fn table(&self) -> Table {
        let all = |row: &Option<Scheduler>, values| self.turns.all(*row, values);
        let echo = |row: &Option<Scheduler>| Summary::of(all(row, Echoes::echo_ms));
        let published = |row: &Option<Scheduler>| beside_published(&PUBLISHED_ECHO_MS, *row, echo(row).mean);
        let lost = |echoes: &Echoes| echoes.moved - echoes.echo_ns.len() as u64;
        Columns::of(format!("{}, over all turns; milliseconds", self.name()), rows())
            .cell("scheduler", |row| name(*row).to_owned())
            .cell("receipt ms (deviation)", |row| with_deviation(&all(row, Echoes::receipt_ms)))
            .cell("echo ms (deviation)", |row| with_deviation(&all(row, Echoes::echo_ms)))
            .cell("echo by the server's clock", |row| with_deviation(&all(row, Echoes::echo_server_ms)))
            .cell("p99 echo", |row| figure(echo(row).p99))
            .cell("worst echo", |row| figure(echo(row).worst))
            .cell("echo in the paper", |row| published(row)[0].clone())
            .cell("ours over the paper's", |row| published(row)[1].clone())
            .cell("motions without echo", |row| self.turns.of(*row).map(lost).sum::<u64>().to_string())
            .table()
    }

    fn group(&self) -> Group {
        let echo = |scheduler| Summary::of(self.turns.all(scheduler, Echoes::echo_ms));
        let ranges = rows().filter_map(|scheduler| Range::of(name(scheduler), echo(scheduler)));
        Group { name: self.name(), ranges: ranges.collect() }
    }

    fn name(&self) -> String {
        format!("{}, {}", self.server, plaids(self.pattern))
    }
}

fn plaids(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Original => "today's plaids",
        Pattern::Heavy => "heavy plaids",
        Pattern::Published => "the paper's plaids",
    }
}

fn notes() -> Vec<String> {
    let [old, new] = PUBLISHED_ECHO_MS.map(|(_, echo)| echo.value());
    vec![
        format!(
            "How it was measured. Xephyr inside an Xvfb, its pointer moved in the outer server, and Xtigervnc, its pointer moved \
         by a viewer; both with xqos, about a hundred motions a second. So no client of the measured server brings the \
         motion. The plaids are connections of the measuring program, which send as fast as they are taken: today's \
         what the program of X11R6 sends, ten small rectangles a request, which cost hundredths of a millisecond now; the \
         paper's requests of a millisecond or more, for what the program sent must have cost the machine of 2000 so much, or \
         no echo had taken {old} ms. Receipt and Echo are from the instant at which the motion was handed over to the arrival of \
         the event and of the PropertyNotify that follows the line; the deviation is that of single motions. By the \
         server's clock: the difference of the two events' timestamps, as in the paper, in whole milliseconds."
        ),
        format!(
            "Reading results. The paper's figures are of a Celeron of 466 MHz; their ratio says more than they do: {old} to {new} \
         ms, that is {:.0} to 1. What it calls the new scheduler is `smart`; `stock` is what became of it in today's \
         server, where waiting clients are praised too and the plaids therefore never fall behind the line. These two \
         servers look at their input between two slices only, where Xorg has a thread for it: under `stock` a motion waits \
         for the slice that runs, which is what Receipt shows. The outer server of Xephyr also has to draw what the \
         plaids draw, and Xtigervnc to encode it; Receipt under every scheduler holds that.",
            old / new
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echoes(ms: u32) -> Echoes {
        Echoes {
            receipt_ns: vec![100_000; 3],
            echo_ns: vec![u64::from(ms) * 1_000_000; 3],
            echo_server_ms: vec![ms; 3],
            moved: 4,
        }
    }

    #[test]
    fn goals_are_ratios_within_a_turn() {
        let means = [None, Some(Scheduler::Classic), Some(Scheduler::Smart), Some(Scheduler::Stock)]
            .into_iter()
            .chain([Some(Scheduler::Fair), Some(Scheduler::Cbs)])
            .zip([1, 120, 5, 8, 1, 1]);
        // The machine slows down from turn to turn, and no ratio shall show it.
        let results = (1..4).flat_map(|turn| means.clone().map(move |(who, ms)| (turn, who, echoes(ms * turn))));
        let on = PATTERNS.map(|pattern| OneServer {
            server: "Xephyr".to_owned(),
            pattern,
            turns: Turns::made_up(results.clone()),
        });
        let study = Interactive { on: on.into() }.study();
        let values: Vec<f64> = study.verdicts.iter().map(|verdict| verdict.value).collect();
        assert_eq!(values, [24.0, 8.0, 1.0, 1.0, 24.0, 8.0, 1.0, 1.0]);
        let met: Vec<Option<bool>> = study.verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [Some(true), None, None, None, None, Some(false), None, None], "each load has its goal");
        assert_eq!(study.tables[0].rows[1].last().unwrap(), "3", "one motion of each turn had no echo");
    }
}
