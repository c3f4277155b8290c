//! What a scheduler costs a client that is alone: Packard's 7.3 and his Tables 2 and 3, with the schedulers since.
//!
//! x11perf has the server for itself, so nothing needs scheduling, and what the schedulers differ by is their own work.
//! Table 2 is about two tests whose requests execute quickly, Table 3 about Xmark, the mean of all.
//!
//! Each test is measured under all schedulers before the next one begins, in turns: what drifts within the half hour
//! hits all alike. One scheduler, the server's own, is measured twice in each turn. What that comparison shows is noise,
//! and the others are read beside it.
//!
//! A quick run measures some tests of each kind, and says what it leaves out.

mod findings;
mod kinds;
mod ratios;
mod tables;
mod x11perf;
mod xmark;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::order::in_turn;
use crate::program::Missing;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::study::Study;
use crate::tiles::SCREEN;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use x11perf::{Printed, Runs, Test};
use x11rb::protocol::xproto::ConnectionExt;

/// Table 2, by the labels that x11perf has for them.
const POLY_POINT: &str = "Dot";
const NO_OP: &str = "X protocol NoOperation";
/// Long enough that the round trips around a run of Table 2 are below a thousandth of it.
const TABLE_2_RUN: Duration = Duration::from_millis(100);
/// Turns of Table 2 for each turn asked for: they are short, and the differences looked for are of percents.
const TABLE_2_TURNS: u32 = 3;
/// Of Xmark's tests, about, in a quick run; and its turns, since with one alone everything would be noise.
const REDUCED: usize = 44;
const QUICK_TURNS: u32 = 3;
/// One of each package that has fonts for Xmark's text tests: x11perf leaves out what it finds no font for.
const FONTS: [&str; 2] = [
    "-jis-fixed-medium-r-normal--24-230-75-75-c-240-jisx0208.1983-*",
    "-adobe-times-medium-r-normal--24-240-75-75-p-124-iso8859-1",
];

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Speed {
    /// PolyPoint and NoOp.
    table_2: Vec<Tested>,
    /// Those of Xmark.
    tests: Vec<Tested>,
    /// Labels and weights of those that a quick run does not measure.
    left_out: BTreeMap<String, u32>,
    /// By Debian's Xmark, of each turn; none when tests were left out.
    xmarks: BTreeMap<Leg, Vec<f64>>,
}

/// A test under all schedulers; the i-th values are of the i-th turn.
#[derive(Debug, Serialize, Deserialize)]
struct Tested {
    label: String,
    weight: u32,
    runs: Runs,
    /// Operations each second as x11perf prints them: three digits.
    per_s: BTreeMap<Leg, Vec<f64>>,
    /// By x11perfcomp.
    over_stock: BTreeMap<Leg, Vec<f64>>,
}

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Leg {
    Classic,
    Smart,
    Stock,
    Fair,
    /// The server's own scheduler once more.
    Again,
}

impl Leg {
    const ALL: [Leg; 5] = [Leg::Classic, Leg::Smart, Leg::Stock, Leg::Fair, Leg::Again];
    /// Those that are compared with stock.
    const OTHERS: [Leg; 4] = [Leg::Classic, Leg::Smart, Leg::Fair, Leg::Again];

    fn scheduler(self) -> Scheduler {
        match self {
            Leg::Classic => Scheduler::Classic,
            Leg::Smart => Scheduler::Smart,
            Leg::Stock | Leg::Again => Scheduler::Stock,
            Leg::Fair => Scheduler::Fair,
        }
    }

    /// For people.
    fn title(self) -> &'static str {
        if self == Leg::Again { "stock again (noise)" } else { self.scheduler().title() }
    }

    /// Every other turn the other way round, so that none is always the first.
    fn in_turn(turn: u32) -> Vec<Leg> {
        in_turn(Leg::ALL, turn)
    }
}

impl Measure for Speed {
    const NAME: &'static str = "speed";
    const ABOUT: &'static str = "x11perf alone and Xmark under each scheduler (Packard 7.3)";
    const TAKES: Takes = Takes { quick_s: 50, full_s: 1500 };

    fn run(bench: &Bench) -> Result<Self> {
        let mut weights = xmark::weights()?;
        let stage = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, bench.module()) })?;
        require_fonts(&stage)?;
        let all = Test::all()?;
        let mut table_2 = Vec::new();
        for label in [POLY_POINT, NO_OP] {
            bench.say(label);
            let turns = if bench.quick { QUICK_TURNS } else { bench.pairs * TABLE_2_TURNS };
            let (tested, _) = Tested::measure(&stage, Test::find(&all, label)?, TABLE_2_RUN, turns)?;
            table_2.push(tested);
        }
        let chosen = choose(&all, &weights, bench.quick)?;
        let turns = if bench.quick { QUICK_TURNS } else { bench.pairs };
        let mut sheets = Sheets::new(turns);
        let mut tests = Vec::new();
        for (index, test) in chosen.iter().enumerate() {
            if index % 20 == 0 {
                bench.say(format!("test {} of {}: {}", index + 1, chosen.len(), test.label));
            }
            let (mut tested, printed) = Tested::measure(&stage, test, bench.time(35, 15), turns)?;
            tested.weight = weights.remove(&test.label).unwrap_or_default();
            tests.push(tested);
            sheets.add(printed);
        }
        sheets.compare(&mut tests)?;
        let xmarks = if weights.is_empty() { sheets.xmarks()? } else { BTreeMap::new() };
        Ok(Speed { table_2, tests, left_out: weights, xmarks })
    }

    fn study(&self) -> Study {
        findings::study(self)
    }
}

impl Tested {
    /// All turns, with what x11perf printed in each.
    fn measure(stage: &Stage, test: &Test, run: Duration, turns: u32) -> Result<(Tested, Vec<BTreeMap<Leg, Printed>>)> {
        let display = stage.server().display();
        stage.follow(Scheduler::Stock)?;
        let runs = test.calibrate(display, run)?;
        let mut per_s: BTreeMap<Leg, Vec<f64>> = BTreeMap::new();
        let mut all = Vec::new();
        for turn in 0..turns {
            let mut printed = BTreeMap::new();
            for leg in Leg::in_turn(turn) {
                stage.follow(leg.scheduler())?;
                let one = test.run(display, runs)?;
                per_s.entry(leg).or_default().push(one.per_s()?);
                printed.insert(leg, one);
            }
            all.push(printed);
        }
        let label = test.label.clone();
        Ok((Tested { label, weight: 0, runs, per_s, over_stock: BTreeMap::new() }, all))
    }

    /// One under the other, within each turn.
    fn ratios(&self, above: Leg, below: Leg) -> Vec<f64> {
        let of = |leg| self.per_s.get(&leg).into_iter().flatten();
        of(above).zip(of(below)).map(|(above, below)| above / below).collect()
    }
}

/// Xmark's tests in x11perf's order: all, or those of a reduced one.
fn choose<'a>(all: &'a [Test], weights: &BTreeMap<String, u32>, quick: bool) -> Result<Vec<&'a Test>> {
    let mut known: Vec<&Test> = all.iter().filter(|test| weights.contains_key(&test.label)).collect();
    if known.len() != weights.len() {
        bail!("x11perf has {} of the {} tests that Xmark knows", known.len(), weights.len());
    }
    if quick {
        let reduced = kinds::reduced(weights, REDUCED);
        known.retain(|test| reduced.contains(&test.label));
    }
    Ok(known)
}

fn require_fonts(stage: &Stage) -> Result<()> {
    let connection = stage.server().connect()?;
    for font in FONTS {
        if connection.list_fonts(1, font.as_bytes())?.reply()?.names.is_empty() {
            return Err(Missing::new(font).into());
        }
    }
    Ok(())
}

/// What each leg of each turn printed, as one x11perf would have written it.
struct Sheets(Vec<BTreeMap<Leg, String>>);

impl Sheets {
    fn new(turns: u32) -> Sheets {
        Sheets((0..turns).map(|_| BTreeMap::new()).collect())
    }

    /// The next test, of all turns.
    fn add(&mut self, printed: Vec<BTreeMap<Leg, Printed>>) {
        for (sheets, printed) in self.0.iter_mut().zip(printed) {
            for (leg, printed) in printed {
                *sheets.entry(leg).or_insert_with(|| printed.heading()) += &printed.section();
            }
        }
    }

    /// By x11perfcomp, turn by turn.
    fn compare(&self, tests: &mut [Tested]) -> Result<()> {
        for sheets in &self.0 {
            // The first is what the others are compared with.
            let legs = [Leg::Stock].into_iter().chain(Leg::OTHERS);
            let compared = xmark::compare(&legs.map(|leg| sheets[&leg].as_str()).collect::<Vec<_>>())?;
            for test in &mut *tests {
                let Some(ratios) = compared.get(&test.label) else { bail!("x11perfcomp left out {}", test.label) };
                for (leg, &ratio) in Leg::OTHERS.into_iter().zip(ratios) {
                    test.over_stock.entry(leg).or_default().push(ratio);
                }
            }
        }
        Ok(())
    }

    /// By Xmark, turn by turn.
    fn xmarks(&self) -> Result<BTreeMap<Leg, Vec<f64>>> {
        let mut xmarks: BTreeMap<Leg, Vec<f64>> = BTreeMap::new();
        for (leg, sheet) in self.0.iter().flatten() {
            xmarks.entry(*leg).or_default().push(xmark::xmark(sheet)?);
        }
        Ok(xmarks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schedulers_lines_are_compared_as_its_own() {
        let rates =
            [(Leg::Classic, 20.0), (Leg::Smart, 300.0), (Leg::Stock, 100.0), (Leg::Fair, 150.0), (Leg::Again, 90.0)];
        let runs = Runs { reps: 1000, repeat: 2 };
        let mut sheets = Sheets::new(2);
        let mut tests = Vec::new();
        for label in [POLY_POINT, "(xor) Dot", NO_OP] {
            // The second turn is twice as fast.
            let turn = |factor: f64| rates.map(|(leg, rate)| (leg, Printed::made_up(label, rate * factor))).into();
            sheets.add(vec![turn(1.0), turn(2.0)]);
            let (per_s, over_stock) = (BTreeMap::new(), BTreeMap::new());
            tests.push(Tested { label: label.to_owned(), weight: 1, runs, per_s, over_stock });
        }
        sheets.compare(&mut tests).unwrap();
        for test in &tests {
            for (leg, rate) in rates.into_iter().filter(|(leg, _)| *leg != Leg::Stock) {
                assert_eq!(test.over_stock[&leg], [rate / 100.0; 2], "{leg:?}, {}", test.label);
            }
        }
    }
}
