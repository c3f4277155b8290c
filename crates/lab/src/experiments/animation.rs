// SPDX-License-Identifier: MIT
//! A picture every 15 ms beside twelve plaids: Packard's 7.2 and Figure 2, with the schedulers since.

use super::turns::{PLAIDS, Turns, beside_published, name, rows, title, with_deviation};
use super::{Measure, Takes};
use crate::bench::Bench;
use crate::frames::{self, Shown};
use crate::goals::Key;
use crate::papers::Published;
use crate::plaid::Pattern;
use crate::scheduler::{Scheduler, Stage};
use crate::server::{Kind, Setup};
use crate::statistics::{Summary, deviation, mean};
use crate::study::{Chart, Columns, Goal, Line, Lines, Study, Table, Verdict, figure, percent};
use crate::tiles::SCREEN;
use anyhow::Result;
use serde::{Deserialize, Serialize};

/// Two frames that the server shows within this time are seen as one.
const TOGETHER_MS: f64 = 2.0;
/// Drawing beside twelve plaids, milliseconds (section 7.2): measured for 1987; for 2000 half of its slice of 20 ms.
const PUBLISHED_DRAWING_MS: [(Scheduler, Published); 2] = [
    (Scheduler::Classic, Published("packard-2000.drawing_old")),
    (Scheduler::Smart, Published("packard-2000.drawing_new")),
];
/// Frames in the chart.
const CHARTED: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Animation {
    turns: Turns<Shown>,
}

impl Measure for Animation {
    const NAME: &'static str = "animation";
    const ABOUT: &'static str = "an animation of 15 ms a frame beside twelve plaids (Packard 7.2)";
    const TAKES: Takes = Takes { quick_s: 15, full_s: 300 };

    fn run(bench: &Bench) -> Result<Self> {
        let stage = Stage::of(Setup { screen: SCREEN, ..Setup::with_module(Kind::Xvfb, bench.module()) })?;
        let frames = if bench.quick { 100 } else { 400 };
        let measure = |stage: &Stage, scheduler: Option<Scheduler>| {
            frames::measure(stage.server(), scheduler.and_then(Scheduler::reservation), frames)
        };
        Ok(Animation { turns: Turns::beside_plaids(bench, &stage, Pattern::Heavy, measure)? })
    }

    fn study(&self) -> Study {
        let jitter = |shown: &Shown| deviation(&shown.frame_ms());
        let drawing = |shown: &Shown| mean(&shown.drawing_ms());
        let (classic, smart) = (Some(Scheduler::Classic), Some(Scheduler::Smart));
        let (stock, fair, cbs) = (Some(Scheduler::Stock), Some(Scheduler::Fair), Some(Scheduler::Cbs));
        let ratio = |what: &str, [above, below]: [Option<Scheduler>; 2], figure: fn(&Shown) -> f64, goal| {
            let frames = self.turns.count([above, below], |shown| shown.frame_ms().len());
            Verdict::of_spread(what, self.turns.ratio(above, below, figure), "x", goal).counting(frames)
        };
        let at_most = Goal::of(Key("animation.jitter"));
        Study {
            title: "An animation".to_owned(),
            question: format!(
                "A program shows a frame every 15 ms while {PLAIDS} plaids draw without end. How late are its frames, \
                 and how evenly do they come?"
            ),
            answer: String::new(),
            verdicts: vec![
                ratio("deviation of the frame interval: fair over idle", [fair, None], jitter, at_most),
                ratio("deviation of the frame interval: reserved over idle", [cbs, None], jitter, at_most),
                ratio("drawing: classic over smart", [classic, smart], drawing, Goal::Reported),
                ratio("drawing: stock over fair", [stock, fair], drawing, Goal::Reported),
            ],
            tables: vec![self.table()],
            charts: vec![Chart::Lines(self.chart())],
            notes: notes(),
        }
    }
}

impl Animation {
    fn table(&self) -> Table {
        let drawing = |row: &Option<Scheduler>| self.turns.all(*row, Shown::drawing_ms);
        let frame = |row: &Option<Scheduler>| self.turns.all(*row, Shown::frame_ms);
        let published = |row: &Option<Scheduler>| beside_published(&PUBLISHED_DRAWING_MS, *row, mean(&drawing(row)));
        let together = |frame: Vec<f64>| {
            percent(frame.iter().filter(|&&ms| ms <= TOGETHER_MS).count() as f64 / frame.len().max(1) as f64)
        };
        Columns::of("Over all turns; milliseconds", rows())
            .cell("scheduler", |row| name(*row).to_owned())
            .cell("drawing ms (deviation)", |row| with_deviation(&drawing(row)))
            .cell("p99", |row| figure(Summary::of(drawing(row)).p99))
            .cell("in the paper", |row| published(row)[0].clone())
            .cell("ours over the paper's", |row| published(row)[1].clone())
            .cell("frame ms (deviation)", |row| with_deviation(&frame(row)))
            .cell("frames within 2 ms of the one before", |row| together(frame(row)))
            .table()
    }

    /// The times between frames of the first turn, one after the other.
    fn chart(&self) -> Lines {
        let line = |scheduler| {
            let shown = self.turns.of(scheduler).next();
            let frames = shown.map(Shown::frame_ms).unwrap_or_default();
            let points = frames.iter().take(CHARTED).enumerate().map(|(index, &ms)| [index as f64, ms]);
            Line::new(name(scheduler), title(scheduler), points)
        };
        Lines::new(
            "Figure 2: times between the frames of the first turn",
            "frame",
            "ms since the one before",
            rows().map(line),
        )
    }
}

fn notes() -> Vec<String> {
    vec![
        "How it was measured. Xvfb with xqos; the animation and the plaids are connections of the measuring program. A \
         frame is 26 requests; the program rests for 15 ms after it has written them and waits for nothing. Drawing is \
         from before a frame's first request to the arrival of the PropertyNotify behind its last; frame intervals are \
         differences of the notifications' timestamps, as in the paper, in whole milliseconds."
            .to_owned(),
        "Reading results. The scheduler of 1987 lets frames queue up and draws several at once: intervals of nothing, then \
         of the length of a pass over all plaids. In the paper the deviation under the scheduler of 2000 is that of \
         its slice, 20 ms; here all slices are 5 ms. A frame interval is longer than 15 ms by what the program itself \
         takes to write a frame and by the kernel's timer."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(frame_ms: [u32; 4]) -> Shown {
        Shown { drawing_ns: vec![1_000_000; 5], frame_ms: frame_ms.to_vec(), frame_ns: Vec::new() }
    }

    #[test]
    fn bursts_are_counted_and_uneven_frames_miss_the_goal() {
        let results = [
            (0, None, shown([15, 16, 15, 16])),
            (0, Some(Scheduler::Classic), shown([60, 1, 0, 1])),
            (0, Some(Scheduler::Fair), shown([15, 17, 15, 17])),
            (0, Some(Scheduler::Cbs), shown([15, 16, 15, 16])),
        ];
        let study = Animation { turns: Turns::made_up(results) }.study();
        assert_eq!(study.verdicts[0].value, 2.0);
        assert_eq!((study.verdicts[0].is_met(), study.verdicts[1].is_met()), (Some(false), Some(true)));
        assert_eq!(study.tables[0].rows[1].last().unwrap(), "75 %");
    }
}
