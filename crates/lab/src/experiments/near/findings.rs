// SPDX-License-Identifier: MIT
//! What follows from the cells: the goals, the pictures, and how to read it.

use super::case::{FARTHEST, Place, Way};
use super::{Near, tables};
use crate::experiments::far::Program;
use crate::goals::Key;
use crate::study::{Chart, Goal, Line as Drawn, Lines, Study, Verdict, figure};

pub(super) fn study(near: &Near) -> Study {
    Study {
        title: "Far from the X server".to_owned(),
        question: "A program starts at one end of a link, its X server is at the other. How long until its window is \
                   there and quiet, with raw X, ssh and nxproxy, and with xqos near beside it? And what does near cost \
                   where there is nothing to be gained?"
            .to_owned(),
        answer: answer(near),
        verdicts: far(near).into_iter().chain(beside_the_server(near)).collect(),
        tables: tables::all(near),
        charts: near.programs().into_iter().filter_map(|program| chart(near, program)).collect(),
        notes: notes(near),
    }
}

/// How many times as fast as ssh the programs start, the greatest first.
fn gains(near: &Near, way: Way) -> Vec<f64> {
    let gain = |program| near.faster(program, way, Way::Ssh, FARTHEST);
    let mut gains: Vec<f64> = near.programs().into_iter().filter_map(gain).collect();
    gains.sort_by(|one, other| other.total_cmp(one));
    gains
}

fn answer(near: &Near) -> String {
    let told = |way: Way| {
        let gains = gains(near, way).into_iter().map(|gain| format!("{} x", figure(gain))).collect::<Vec<_>>();
        (!gains.is_empty()).then(|| format!("{} with {}", gains.join(", "), way.title()))
    };
    let all: Vec<String> = Way::ALL.into_iter().filter(|way| way.is_near()).filter_map(told).collect();
    if all.is_empty() {
        return "Over 100 ms one way nothing is measured yet.".to_owned();
    }
    format!("Over 10 Mb/s and 100 ms one way programs start, as fast as over ssh -C -Y, {}.", all.join("; "))
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

fn notes(near: &Near) -> Vec<String> {
    let mut notes = vec![
        "How it was measured. Two network namespaces and the emulator between them, as in the experiment grid; Xvfb at one \
         end, the program at the other, each cell with its own. The clock begins when the program's command is run at its \
         end: xqos near where near is used, the program itself behind ssh and nxproxy, whose session may be there already. \
         It ends with the last packet of X at the server before 2 s and a round trip of silence, once a window is mapped. \
         In brackets the same from when the program's first connection came to the server, without what it loads before \
         and without near's own beginning; that is the grid's clock."
            .to_owned(),
        "Near was measured at a program's second start: what it asked at its first, over a fast link, was laid down before. \
         xqos ssh is near in strict order over ssh -C -Y, with a real daemon that only this cell's key opens. nxproxy has \
         its taint on, and a head start of 8 s."
            .to_owned(),
        "Waits are near's own count: replies for which the program had nothing else to say; over the longest delay at which \
         nobody worked with the program afterwards."
            .to_owned(),
        "Steady work: after the start keys are injected at the server (XTEST), each when the screen has been still for \
         0.4 s and two round trips (a letter: 0.25 s and one), and changes of the screen are told by DAMAGE; given are medians. A key needs a round \
         trip in any case: the event there, the drawing back. Changes of less than a letter are blinking cursors. \
         Scrolling is a line at a terminal's bottom, a page of emacs, a line of gtk3-demo's list; the menus are those of \
         F10 in gtk3-demo, Alt+S in speedcrunch, and Control and a button in xterm. Left out is what does not tell: \
         speedcrunch's typing (its cursor blinks, and is drawn with as much around it as a letter) and emacs's menu (it \
         does not open at each F10)."
            .to_owned(),
        "Beside its server: the program runs where Xvfb does, over the loopback interface (TCP), in pairs with and without \
         near; Xvfb has no MIT-SHM, which near would hide. Through near over the relay: x11perf by itself, on one Xvfb, in \
         turn directly, through xqos cap (which keeps 96 bytes of each packet) and through xqos near."
            .to_owned(),
    ];
    if near.programs().len() < super::PROGRAMS.len() {
        notes.push(
            "Left out: all but gtk3-demo over raw X, ssh and near at 10 ms. A quick run shows that everything works; the \
             goals are at 100 ms."
                .to_owned(),
        );
    }
    notes
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
        assert!(study.answer.contains("nothing is measured"), "{}", study.answer);
    }
}
