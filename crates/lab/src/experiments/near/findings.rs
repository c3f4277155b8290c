// SPDX-License-Identifier: MIT
//! What follows from the cells: the goals and the pictures.

use super::case::{FARTHEST, Place, Way};
use super::{Near, tables};
use crate::experiments::far::Program;
use crate::goals::Key;
use crate::study::{Chart, Goal, Line as Drawn, Lines, Study, Verdict};

pub(super) fn study(near: &Near) -> Study {
    Study {
        title: "Far from the X server".to_owned(),
        question: "How long does a program take to start far from its X server, with and without xqos near?".to_owned(),
        verdicts: far(near).into_iter().chain(beside_the_server(near)).collect(),
        tables: tables::all(near),
        charts: near.programs().into_iter().filter_map(|program| chart(near, program)).collect(),
        ..Study::default()
    }
}

/// How many times as fast as ssh the programs start, the greatest first.
fn gains(near: &Near, way: Way) -> Vec<f64> {
    let gain = |program| near.faster(program, way, Way::Ssh, FARTHEST);
    let mut gains: Vec<f64> = near.programs().into_iter().filter_map(gain).collect();
    gains.sort_by(|one, other| other.total_cmp(one));
    gains
}

/// What so many of the programs reach at least.
fn far(near: &Near) -> Vec<Verdict> {
    let reached = |way, count: usize, goal| {
        let gains = gains(near, way);
        let what =
            format!("{}: start over 100 ms as fast as ssh -C -Y, what {count} of {} reach", way.title(), gains.len());
        gains.get(count - 1).map(|&gain| Verdict::of_value(what, gain, "x", goal))
    };
    let (strict, relaxed) = (Goal::of(Key("near.strict_over_ssh")), Goal::of(Key("near.relaxed_over_ssh")));
    [reached(Way::Strict, 3, strict), reached(Way::Relaxed, 2, relaxed)].into_iter().flatten().collect()
}

fn beside_the_server(near: &Near) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for program in near.programs() {
        let ratio = tables::local_ratios(near, program);
        if ratio.count > 0 {
            let what = format!("{}: start beside its server with near over without", program.title());
            verdicts.push(Verdict::of_spread(what, ratio, "x", Goal::of(Key("near.local_start"))));
        }
    }
    for cost in &near.costs {
        let what = format!("x11perf -{} through near over the relay", cost.test);
        verdicts.push(Verdict::of_spread(what, cost.ratios(), "x", Goal::of(Key("near.over_relay"))));
    }
    verdicts
}

fn chart(near: &Near, program: Program) -> Option<Chart> {
    let line = |way: Way| {
        let point = |place| match place {
            Place::Local => None,
            Place::Far { delay_us } => Some([delay_us as f64 / 1e3, near.start(program, way, place)?.elapsed_s]),
        };
        Drawn::new(way.look(), way.title(), Place::far().into_iter().filter_map(point))
    };
    let lines: Vec<Drawn> = near.ways().into_iter().map(line).filter(|line| line.points.len() > 1).collect();
    let title = format!("{}: start by delay, 10 Mb/s", program.title());
    let lines = Lines::new(title, "one-way delay, ms", "from the command until quiet, s", lines).log_both();
    (!lines.lines.is_empty()).then_some(Chart::Lines(lines))
}

#[cfg(test)]
mod tests {
    use super::super::case;
    use super::super::cell::{Cell, Start, Waits};
    use super::super::cost::Cost;
    use super::*;
    use crate::render;

    /// Starts by arithmetic: so many waits, and a second of work.
    fn invented() -> Near {
        let cell = |case: case::Case| {
            let waits: u32 = match case.way {
                Way::Raw | Way::Ssh | Way::Nx => 100,
                Way::Strict | Way::ThroughSsh => 20,
                Way::Relaxed => 5,
            };
            let waiting_s = f64::from(waits) * 2.0 * case.line().delay_us as f64 / 1e6;
            let start = Start {
                is_quiet: true,
                elapsed_s: 1.0 + waiting_s,
                connected_s: waiting_s,
                waits: case.way.is_near().then_some(Waits { left: waits.into(), saved: (100 - waits).into() }),
                steady: None,
            };
            Cell { case, outcome: Ok(start) }
        };
        let rates = |rate: f64| vec![rate; 3];
        let cost = Cost { test: "noop".to_owned(), near: rates(1.9e6), relay: rates(2e6), direct: rates(4e6) };
        Near { cells: case::all(false).into_iter().map(cell).collect(), costs: vec![cost] }
    }

    #[test]
    fn each_goal_is_held_against_what_enough_programs_reach() {
        let mut near = invented();
        let verdicts = study(&near).verdicts;
        let met: Vec<_> = verdicts.iter().map(|verdict| verdict.is_met()).collect();
        // Strict is 21 s over 5, relaxed 21 over 2.
        assert_eq!(met, [Some(true); 7], "{verdicts:#?}");
        assert_eq!((verdicts[0].value, verdicts[1].value), (4.2, 10.5));
        let slow = near.cells.iter_mut().filter(|cell| (cell.case.way, cell.case.place) == (Way::Strict, FARTHEST));
        for cell in slow.take(2) {
            cell.outcome = Ok(Start { is_quiet: true, elapsed_s: 20.0, ..Start::default() });
        }
        let verdict = study(&near).verdicts.swap_remove(0);
        assert_eq!((verdict.is_met(), verdict.value), (Some(false), 1.05), "two of four are not three");
    }

    #[test]
    fn a_start_that_was_cut_off_is_a_bound_and_a_failed_one_says_why() {
        let mut near = invented();
        let all = near.cells.iter_mut().filter(|cell| cell.case.place == FARTHEST);
        for cell in all.filter(|cell| cell.case.program == Program::Gtk) {
            match (cell.case.way, &mut cell.outcome) {
                (Way::Nx, outcome) => *outcome = Err("no such proxy".to_owned()),
                (_, Ok(start)) => start.is_quiet = false,
                _ => {}
            }
        }
        let tables = tables::all(&near);
        let text = tables.iter().map(render::table).collect::<String>();
        assert!(text.contains("> 21") && text.contains("no such proxy") && text.contains("(4.20 x)"), "{text}");
        assert!(text.contains("gtk3-demo 100 (20 with near)"), "{text}");
    }

    #[test]
    fn nothing_measured_is_no_verdict() {
        let study = study(&Near { cells: Vec::new(), costs: Vec::new() });
        assert!(study.verdicts.is_empty() && study.charts.is_empty() && study.tables.is_empty(), "{study:?}");
    }
}
