//! What follows from the rates: verdicts, a chart, and how it was measured.

use super::{Leg, NO_OP, POLY_POINT, Speed, kinds, tables};
use crate::goals::Key;
use crate::papers::Published;
use crate::study::{Chart, Goal, Line, Lines, Study, Verdict, figure, percent};

/// Tables 2 and 3, old and new: what is `classic` and `smart` here.
pub(super) const PUBLISHED_POLY_POINT: [Published; 2] =
    [Published("packard-2000.poly_point_old"), Published("packard-2000.poly_point_new")];
pub(super) const PUBLISHED_NO_OP: [Published; 2] =
    [Published("packard-2000.no_op_old"), Published("packard-2000.no_op_new")];
pub(super) const PUBLISHED_XMARK: [Published; 2] =
    [Published("packard-2000.xmark_old"), Published("packard-2000.xmark_new")];
/// The chart's last difference, and its step, in percent.
const FARTHEST: f64 = 20.0;
const STEP: f64 = 0.25;

pub(super) fn study(speed: &Speed) -> Study {
    Study {
        title: "What a scheduler costs a client alone".to_owned(),
        question: "x11perf has the server for itself. How fast is it under each scheduler?".to_owned(),
        answer: answer(speed),
        verdicts: verdicts(speed),
        tables: tables::all(speed),
        charts: vec![Chart::Lines(chart(speed))],
        notes: notes(speed),
    }
}

fn answer(speed: &Speed) -> String {
    format!(
        "Of {} tests, {} are within 2 % of stock under smart and {} under fair; measured a second time, stock is within 2 % \
         of itself in {}.",
        speed.tests.len(),
        speed.close(Leg::Smart),
        speed.close(Leg::Fair),
        speed.close(Leg::Again)
    )
}

fn verdicts(speed: &Speed) -> Vec<Verdict> {
    let of = |what: String, spread, goal| Verdict::of_spread(what, spread, "x", goal);
    let mean = |leg| speed.geometric_mean(leg);
    let papers =
        |[old, new]: [Published; 2]| format!("smart over classic, {} in the paper", figure(new.value() / old.value()));
    let (classic, smart, stock, fair) = (Leg::Classic, Leg::Smart, Leg::Stock, Leg::Fair);
    let mark = speed.name_of_mark();
    vec![
        of(
            format!("geometric mean of {} tests: fair over stock", speed.tests.len()),
            mean(fair),
            Goal::of(Key("speed.all_tests")),
        ),
        of("NoOp: fair over stock".to_owned(), speed.table_2(NO_OP, fair, stock), Goal::of(Key("speed.no_op"))),
        of("PolyPoint: fair over stock".to_owned(), speed.table_2(POLY_POINT, fair, stock), Goal::Reported),
        of(format!("{mark}: fair over stock"), speed.xmark(fair, stock), Goal::Reported),
        of("geometric mean: stock again over stock".to_owned(), mean(Leg::Again), Goal::Reported),
        of(
            format!("PolyPoint: {}", papers(PUBLISHED_POLY_POINT)),
            speed.table_2(POLY_POINT, smart, classic),
            Goal::Reported,
        ),
        of(format!("NoOp: {}", papers(PUBLISHED_NO_OP)), speed.table_2(NO_OP, smart, classic), Goal::Reported),
        of(format!("{mark}: {}", papers(PUBLISHED_XMARK)), speed.xmark(smart, classic), Goal::Reported),
    ]
}

/// How many tests are how near to stock.
fn chart(speed: &Speed) -> Lines {
    let near = |leg, difference: f64| 100.0 * speed.near(leg, difference) as f64 / speed.tests.len().max(1) as f64;
    let steps = (FARTHEST / STEP) as u32;
    let line = |leg: Leg| {
        let at = (0..=steps).map(|step| f64::from(step) * STEP);
        let points = at.map(|difference| [difference, near(leg, difference)]).collect();
        let case = if leg == Leg::Again { "stock" } else { leg.scheduler().name() };
        Line { case: case.to_owned(), name: leg.title().to_owned(), points, deviations: Vec::new() }
    };
    Lines {
        title: format!("How many of the {} tests are how near to stock", speed.tests.len()),
        x_label: "difference from stock of at most so many percent".to_owned(),
        y_label: "% of the tests".to_owned(),
        log_y: false,
        log_x: false,
        lines: Leg::OTHERS.map(line).to_vec(),
    }
}

fn notes(speed: &Speed) -> Vec<String> {
    let mut notes = vec![
        "How it was measured. Xvfb with xqos, x11perf its only client beside an idle connection of ours that changes the \
         scheduler. For each test the repetitions that make a run are found out once; then x11perf -v1.3 makes two runs \
         under each scheduler, one after the other, in turns forwards and backwards, before the next test begins. Rates \
         are x11perf's own, of three digits. Its lines are put together to one data file for each scheduler and turn, as \
         one x11perf would have written it; Debian's Xmark and x11perfcomp -r read these. All ratios are within a turn. \
         Table 2 is measured for itself, with longer runs. Stock is measured twice in each turn: its second time over \
         the first is what noise alone makes of these figures."
            .to_owned(),
    ];
    notes.extend(left_out(speed));
    notes.push(
        "Reading results. Xmark is a rate over that of a SparcStation 1, so its number says how fast the machine is and \
         cannot be held against one of 2000; only ratios can. The paper's old server called select whenever a client's \
         buffer was empty, and the new one reads first: that made the difference in its Table 2. Neither scheduler here \
         changes how today's server reads. What classic differs by is that its turns end after ten requests, where \
         today's server polls, and that each request is counted. So smart over classic shows what classic costs inside \
         today's server, and does not repeat the paper's comparison. Runs are short: the longer slice that stock and \
         smart give to a client that has been alone for a second does not show. A single test says little on a machine \
         that does other work, whatever its ratio; the means over all tests do, as far as that of stock again is near 1."
            .to_owned(),
    );
    notes
}

fn left_out(speed: &Speed) -> Option<String> {
    if speed.is_whole() {
        return None;
    }
    let of_kind = |label: &String, kind| kinds::of(label) == kind;
    let parts = kinds::all().filter_map(|kind| {
        let left_out = speed.left_out.keys().filter(|label| of_kind(label, kind)).count();
        let measured = speed.tests.iter().filter(|test| of_kind(&test.label, kind)).count();
        (left_out > 0).then(|| format!("{kind}, {left_out} of {}", left_out + measured))
    });
    Some(format!(
        "The reduced Xmark. A quick run measures {} tests, {} of Xmark's weight: of each kind the heaviest. Their mean is \
         computed by Xmark's formula, since Xmark itself wants all {}. Left out are: {}.",
        speed.tests.len(),
        percent(speed.part_of_weight(&speed.tests)),
        speed.tests.len() + speed.left_out.len(),
        parts.collect::<Vec<_>>().join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Tested;
    use super::super::x11perf::Runs;
    use super::*;
    use std::collections::BTreeMap;

    /// Each turn of a test: stock, fair, stock again; the others are as stock.
    fn tested(label: &str, weight: u32, turns: &[[f64; 3]]) -> Tested {
        let of = |index: usize| turns.iter().map(|turn| turn[index]).collect::<Vec<f64>>();
        let legs = [(Leg::Stock, 0), (Leg::Classic, 0), (Leg::Smart, 0), (Leg::Fair, 1), (Leg::Again, 2)];
        let per_s: BTreeMap<Leg, Vec<f64>> = legs.into_iter().map(|(leg, index)| (leg, of(index))).collect();
        let runs = Runs { reps: 1, repeat: 2 };
        let mut tested = Tested { label: label.to_owned(), weight, runs, per_s, over_stock: BTreeMap::new() };
        tested.over_stock = Leg::OTHERS.map(|leg| (leg, tested.ratios(leg, Leg::Stock))).into();
        tested
    }

    fn speed(left_out: &[(&str, u32)]) -> Speed {
        // The machine slows down from turn to turn, and no ratio shall show it.
        let turns = |fair, again| [[100.0, 100.0 * fair, 100.0 * again], [50.0, 50.0 * fair, 50.0 * again]];
        Speed {
            table_2: vec![tested(NO_OP, 0, &turns(0.9, 1.0)), tested(POLY_POINT, 0, &turns(1.0, 1.0))],
            tests: vec![tested("Dot", 1, &turns(0.5, 0.98)), tested("GetProperty", 3, &turns(1.01, 1.0))],
            left_out: left_out.iter().map(|&(label, weight)| (label.to_owned(), weight)).collect(),
            xmarks: BTreeMap::new(),
        }
    }

    #[test]
    fn a_slow_test_misses_the_goal_and_is_told_from_noise() {
        let study = study(&speed(&[]));
        let [mean, no_op] = [&study.verdicts[0], &study.verdicts[1]];
        assert!((mean.value - (0.5_f64 * 1.01).sqrt()).abs() < 1e-9);
        assert_eq!((mean.is_met(), no_op.is_met(), no_op.value), (Some(false), Some(false), 0.9));
        let [dot, property] = [&study.tables[3].rows[0], &study.tables[3].rows[1]];
        assert_eq!((dot[0].as_str(), dot.last().unwrap().as_str()), ("Dot", "slower"));
        assert_eq!(property.last().unwrap(), "faster");
        assert!(study.answer.contains("1 under fair"), "{}", study.answer);
    }

    #[test]
    fn a_reduced_xmark_is_weighted_and_says_what_it_leaves_out() {
        let study = study(&speed(&[("100-pixel circle", 12), ("Copy 10x10 from pixmap to window", 4)]));
        let reduced = study.verdicts.iter().find(|verdict| verdict.what == "reduced Xmark: fair over stock").unwrap();
        assert!((reduced.value - (0.5 * 1.01_f64.powi(3)).powf(0.25)).abs() < 1e-9, "{}", reduced.value);
        assert!(study.notes[1].contains("20 % of Xmark's weight"), "{}", study.notes[1]);
        assert!(study.notes[1].ends_with("circles and ellipses, 1 of 1; copies, 1 of 1."), "{}", study.notes[1]);
        let circles = study.tables[2].rows.iter().find(|row| row[0].starts_with("circles")).unwrap();
        assert_eq!(circles[1..4], ["0 of 1", "0.0 %", "left out"].map(str::to_owned));
    }
}
