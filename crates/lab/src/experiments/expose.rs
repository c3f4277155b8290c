// SPDX-License-Identifier: MIT
//! A window dragged over another one on one processor: who is exposed cannot keep up (Shatrov 2005).
//!
//! The message's editor needs 25 ms for a redraw and gets 5 before the window manager has the processor again, so it never
//! shows what it should. Server, window manager, dragged and exposed program share one processor here; who pulls, types
//! and looks on has the other one. A stock server and, on one with xqos, no help, pacing at the server, the processor for
//! who is exposed, and both, in turn. "Fairness means that all applications redraw with the same frames per second."

mod case;
mod scene;
mod shot;
mod traced;

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::process::Ended;
use crate::program;
use crate::server::{Kind, Setup};
use crate::statistics::{Spread, Summary, mean, median, quantile};
use crate::study::{Chart, Columns, Goal, Group, Range, Ranges, Row, Study, Table, Verdict, figure};
use anyhow::{Error, Result};
use case::{Case, LIMIT, Play};
use scene::{Stage, WORK_US, shoot};
use serde::{Deserialize, Serialize};
use shot::Shot;
use traced::Traced;

/// The drag as it is; and a mover that works, which shows best who sets whom aside. The first three where it is to be
/// quick.
const TRACED: [(Play, Case); 5] = [
    (Play::Drag, Case::Without),
    (Play::Drag, Case::Both),
    (Play::Working, Case::Without),
    (Play::Working, Case::Both),
    (Play::Drag, Case::Boost),
];
/// A play takes 13 s, and there are 30 in a turn.
const MOST_TURNS: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Expose {
    shots: Vec<Shot>,
    /// What could not be measured, and why; each once.
    missing: Vec<(String, String)>,
    traces: Vec<Traced>,
    /// Why there are no pictures of the kernel.
    untraced: Option<String>,
}

impl Measure for Expose {
    const NAME: &'static str = "expose";
    const ABOUT: &'static str = "a window dragged over another one on one processor: who redraws how often";
    const TAKES: Takes = Takes { quick_s: 45, full_s: 1150 };

    fn run(bench: &Bench) -> Result<Self> {
        let time = bench.time(10_000, 1_200);
        let xqos = Stage::pinned(|| bench.xqos(bench.module(), 256), true)?;
        let stock =
            Stage::pinned(|| Setup { screen: crate::tiles::SCREEN, ..Setup::stock(Kind::Xvfb) }.start(), false)?;
        let plays = if bench.quick { &Play::QUICK[..] } else { &Play::ALL[..] };
        let mut expose = Expose { shots: Vec::new(), missing: Vec::new(), traces: Vec::new(), untraced: None };
        for turn in 0..bench.pairs.min(MOST_TURNS) {
            for &play in plays {
                if let Some(Err(missing)) = play.program().map(program::require) {
                    expose.tell_missing(play.title(), missing.to_string());
                    continue;
                }
                bench.say(format!("turn {}: {}", turn + 1, play.title()));
                for case in Case::in_turn(turn) {
                    let stage = if case == Case::Stock { &stock } else { &xqos };
                    match shoot(stage, play, case, time) {
                        Ok(shot) => expose.shots.push(Shot { turn, case, play, ..shot }),
                        Err(error) => expose.leave_out(case, error)?,
                    }
                }
            }
        }
        bench.say("traces");
        for &(play, case) in if bench.quick { &TRACED[..3] } else { &TRACED[..] } {
            match Traced::record(&xqos, play, case) {
                Ok(traced) => expose.traces.push(traced),
                Err(error) if error.is::<Ended>() => return Err(error),
                // Said already.
                Err(_) if expose.missing.iter().any(|missing| missing.0 == case.title()) => {}
                Err(error) => expose.untraced = Some(format!("{error:#}")),
            }
        }
        Ok(expose)
    }

    fn study(&self) -> Study {
        let plays = || Play::ALL.into_iter().filter(|&play| self.shots.iter().any(|shot| shot.play == play));
        let mut study = Study {
            title: "A drag over a slow program".to_owned(),
            question:
                "On one processor a window is dragged over a program that needs 25 ms for a redraw. How often does \
                       each of them show something new, and for how long does the screen show what is stale?"
                    .to_owned(),
            verdicts: plays().flat_map(|play| self.verdicts(play)).collect(),
            tables: plays().map(|play| self.table(play)).collect(),
            charts: vec![Chart::Ranges(self.chart(plays()))],
            notes: self.notes(),
            ..Study::default()
        };
        if !self.traces.is_empty() {
            study.tables.push(traced::table(&self.traces));
            study.charts.extend(self.traces.iter().map(Traced::chart));
        }
        study
    }
}

impl Expose {
    /// Only what the helpers may refuse is left out; without the rest there is no experiment.
    fn leave_out(&mut self, case: Case, error: Error) -> Result<()> {
        if error.is::<Ended>() || !matches!(case, Case::Pacing | Case::Boost | Case::Both) {
            return Err(error);
        }
        self.tell_missing(case.title(), format!("{error:#}"));
        Ok(())
    }

    fn tell_missing(&mut self, what: &str, why: String) {
        if self.missing.iter().all(|missing| missing.0 != what) {
            self.missing.push((what.to_owned(), why));
        }
    }

    fn of(&self, play: Play, case: Case) -> impl Iterator<Item = &Shot> {
        self.shots.iter().filter(move |shot| (shot.play, shot.case) == (play, case))
    }

    fn verdicts(&self, play: Play) -> Vec<Verdict> {
        let verdict = |case: Case, what: &str, value: fn(&Shot) -> f64, count: fn(&Shot) -> usize, unit, goal| {
            let spread = Spread::of(self.of(play, case).map(value));
            let verdict = Verdict::of_spread(format!("{}, {}: {what}", play.title(), case.title()), spread, unit, goal);
            verdict.counting(self.of(play, case).map(count))
        };
        let evenness = |case, goal| {
            let what = "the slower one's redraws over the faster one's";
            verdict(case, what, Shot::evenness, Shot::redraws_or_moves, "x", goal)
        };
        let mut verdicts = vec![evenness(Case::Without, Goal::Reported)];
        if self.of(play, Case::Both).next().is_none() {
            return verdicts;
        }
        let goal = |key| if play.has_goals() { Goal::of(key) } else { Goal::Reported };
        let input = self.of(play, Case::Both).filter_map(|both| {
            let without = self.of(play, Case::Without).find(|without| without.turn == both.turn)?;
            Some(mean(&both.echo_ms()) / mean(&without.echo_ms()).max(f64::MIN_POSITIVE))
        });
        let shots = self.of(play, Case::Both).chain(self.of(play, Case::Without));
        let echoes = shots.map(|shot| shot.echo_us.len());
        let what = format!("{}: response to a key, both over without help", play.title());
        let what_answered = "an Expose is answered, p95";
        let exposes: fn(&Shot) -> usize = |shot| shot.answered_after_us.len();
        let answer_goal = goal(Key("expose.answer"));
        let answered = verdict(Case::Both, what_answered, Shot::p95_answer_ms, exposes, "ms", answer_goal);
        verdicts.extend([
            evenness(Case::Both, goal(Key("expose.evenness"))),
            answered,
            Verdict::of_spread(what, Spread::of(input), "x", goal(Key("expose.echo"))).counting(echoes),
        ]);
        verdicts
    }

    fn table(&self, play: Play) -> Table {
        let limit_ms = answer_ms();
        let rows = Case::ALL.map(|case| Row::new(case.title(), self.of(play, case)));
        Columns::of_measured(format!("{}; medians of the turns", capital(play.title())), rows)
            .name("circumstance")
            .median("exposed redraws /s", Shot::answers_per_s)
            .median("moves /s", Shot::moves_per_s)
            .median("slower over faster", Shot::evenness)
            .median("Expose to answer ms, median", |shot| median(shot.answered_after_ms()))
            .median("p95", Shot::p95_answer_ms)
            .percent(format!("within {} ms", figure(limit_ms)), |shot| shot.within(limit_ms))
            .median("never answered", |shot| f64::from(shot.unanswered))
            .median("stale for ms, mean", Shot::mean_age_ms)
            .median("p95", Shot::p95_age_ms)
            .median("moves' deviation ms", Shot::jerk_ms)
            .median("key to answer ms, mean", |shot| mean(&shot.echo_ms()))
            .median("p95", |shot| quantile(shot.echo_ms(), 0.95))
            .median("keys lost", |shot| f64::from(shot.lost_keys()))
            .table()
    }

    fn chart(&self, plays: impl Iterator<Item = Play>) -> Ranges {
        let group = |play: Play| {
            let range = |case: Case| {
                let all = Summary::of(self.of(play, case).flat_map(Shot::answered_after_ms));
                Range::of(case.name(), all)
            };
            Group { name: play.short().to_owned(), ranges: Case::ALL.into_iter().filter_map(range).collect() }
        };
        Ranges {
            title: "From an Expose to its answer".to_owned(),
            x_label: "milliseconds".to_owned(),
            groups: plays.map(group).collect(),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "How it was measured. Xvfb, twm (it moves windows opaquely), xclock and the exposed program on one \
                 processor; on the other one a process that moves the pointer 125 times a second (XTEST), types a key 16 \
                 times a second, and looks on. The exposed program of ours reads all Exposes that are there, works for {} \
                 ms of processor time, draws, and is idle; gtk3-icon-browser shows its grid. Without a drag: a window \
                 that moves itself, after 1 to 5 ms in turn. Pacing and boost wait {} ms at most. Keys are answered by a \
                 program on the same processor.",
                WORK_US / 1000,
                LIMIT.as_millis()
            ),
            "What is counted. Redraws: answers of the exposed program, by a message behind its drawing, or by the counter \
             of its frames that GTK keeps. Moves: places of the dragged window that were told to its watchers. Expose to \
             answer: from each Expose to the end of the redraw that began after it. Stale: the time since the oldest \
             Expose without an answer, looked at every 5 ms; in it a part of the window shows nothing, or the trail of the \
             dragged one."
                .to_owned(),
            "Reading results. A program whose redraw costs 25 ms cannot show more than 40 pictures a second, and what it \
             is exposed by, which draws nothing, hundreds; that the slower one has at least 0.8 of the faster one's rate \
             means that the drag is as fast as what it uncovers, and no faster. An Expose that comes while a redraw is \
             under way waits for the next one: up to 50 ms, even where the program has the processor for itself. GTK \
             paints 60 times a second at most. The programs of today that were tried answer an Expose in one or two \
             milliseconds of processor time (emacs, gtk3-demo, gtk3-icon-browser, xterm), so that only a slow one starves \
             as gedit did."
                .to_owned(),
        ];
        notes.extend(self.missing.iter().map(|(what, why)| format!("Not measured: {what}: {why}")));
        notes.extend(self.untraced.iter().map(|why| format!("No pictures of who ran: {why}")));
        notes
    }
}

/// Of the goal, for what is within it.
fn answer_ms() -> f64 {
    Goal::of(Key("expose.answer")).limit().unwrap_or(f64::INFINITY)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::shot::tests::shot;
    use super::*;

    fn study(shots: Vec<Shot>) -> Study {
        Expose { shots, missing: Vec::new(), traces: Vec::new(), untraced: None }.study()
    }

    fn met(study: &Study) -> Vec<Option<bool>> {
        study.verdicts.iter().map(Verdict::is_met).collect()
    }

    #[test]
    fn equal_rates_and_quick_answers_meet_the_goals_and_starvation_misses_them() {
        let without = || shot(Case::Without, Play::Drag, 8, 40, 5);
        let good = study(vec![without(), shot(Case::Both, Play::Drag, 18, 18, 5)]);
        assert_eq!(met(&good), [None, Some(true), Some(true), Some(true)], "{:?}", good.verdicts);
        let bad = study(vec![without(), shot(Case::Both, Play::Drag, 8, 60, 9)]);
        assert_eq!(met(&bad), [None, Some(false), Some(false), Some(false)]);
    }

    #[test]
    fn what_could_not_be_measured_is_told_and_not_held_against_a_goal() {
        let shots = vec![shot(Case::Without, Play::Drag, 8, 40, 5)];
        let missing = vec![("both".to_owned(), "no right".to_owned())];
        let study = Expose { shots, missing, traces: Vec::new(), untraced: None }.study();
        assert_eq!(met(&study), [None]);
        assert!(study.notes.iter().any(|note| note.contains("both: no right")));
    }

    #[test]
    fn a_play_in_which_nothing_moved_and_nothing_was_redrawn_meets_no_goal() {
        let nothing = |case| Shot { case, ..Shot::of(&[], &[], 0..1_000_000_000) };
        let study = study(vec![nothing(Case::Without), nothing(Case::Both)]);
        assert_eq!(met(&study), [None, Some(false), Some(false), Some(false)]);
        assert!(study.verdicts.iter().all(|verdict| verdict.text() == "too few samples (0 of 3)"), "{study:?}");
    }
}
