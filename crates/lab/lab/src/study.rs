// SPDX-License-Identifier: MIT
//! Findings of an experiment in a form that all renderers can use: verdicts, tables and charts.
//!
//! An experiment's `run` measures raw data, `study` turns them into findings, and `render` shows these as text or a
//! page. Evaluation never measures, so a stored result can be rendered again at any time.

mod chart;

pub use chart::{Chart, Group, Lane, Lanes, Line, Lines, Panel, Range, Ranges, Scatter};

use crate::statistics::Spread;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    pub title: String,
    /// The question, in one or two sentences.
    pub question: String,
    /// The answer, if one sentence suffices; otherwise empty.
    pub answer: String,
    pub verdicts: Vec<GoalCheck>,
    pub tables: Vec<Table>,
    pub charts: Vec<Chart>,
}

/// A measured value compared with a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalCheck {
    /// Key used by documents; empty if none refers to it.
    #[serde(default)]
    pub key: String,
    pub what: String,
    pub value: f64,
    pub unit: String,
    pub goal: Goal,
    /// Range of the measurements whose median is the value; `None` for a single measurement.
    pub spread: Option<Spread>,
    /// Number of samples from which the value was computed, in the trial with the fewest.
    #[serde(default)]
    pub samples: Samples,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub had: usize,
    pub needed: usize,
}

impl Samples {
    /// Number of samples that a mean or a percentile of a trial requires.
    pub const MIN: usize = 3;

    pub fn too_few(self) -> bool {
        self.had < self.needed
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Goal {
    #[serde(alias = "at_most")]
    AtMost(f64),
    #[serde(alias = "at_least")]
    AtLeast(f64),
    #[serde(alias = "reported")]
    Reported,
}

impl Goal {
    /// `None` without a goal.
    pub fn limit(self) -> Option<f64> {
        match self {
            Goal::AtMost(limit) | Goal::AtLeast(limit) => Some(limit),
            Goal::Reported => None,
        }
    }
}

impl GoalCheck {
    /// A verdict whose value is the median of `spread`. The range is shown with it.
    ///
    /// Each value counts as one measurement, unless [`GoalCheck::counting`] gives the numbers of samples. Then a single
    /// trial is enough, as in a quick run.
    pub fn of_spread(what: impl Into<String>, spread: Spread, unit: &str, goal: Goal) -> GoalCheck {
        let samples = Samples { had: spread.count, needed: 1 };
        GoalCheck { spread: Some(spread), samples, ..GoalCheck::of_value(what, spread.median, unit, goal) }
    }

    pub fn of_value(what: impl Into<String>, value: f64, unit: &str, goal: Goal) -> GoalCheck {
        let samples = Samples { had: 1, needed: 1 };
        GoalCheck { key: String::new(), what: what.into(), value, unit: unit.to_owned(), goal, spread: None, samples }
    }

    /// Sets the sample counts of the trials behind a mean or a percentile. Without trials there are no samples.
    pub fn counting(mut self, of_trials: impl IntoIterator<Item = usize>) -> GoalCheck {
        self.samples = Samples { had: of_trials.into_iter().min().unwrap_or(0), needed: Samples::MIN };
        self
    }

    /// `None` without a goal. A goal is not met if there are too few samples.
    pub fn is_met(&self) -> Option<bool> {
        let is_within = match self.goal {
            Goal::AtMost(limit) => self.value <= limit,
            Goal::AtLeast(limit) => self.value >= limit,
            Goal::Reported => return None,
        };
        Some(is_within && !self.samples.too_few())
    }

    /// The miss relative to the limit, which can be 0. `None` unless the goal is missed and there are enough samples.
    pub fn missed_by(&self) -> Option<f64> {
        let limit = self.goal.limit()?;
        let is_missed = self.is_met() == Some(false) && !self.samples.too_few();
        is_missed.then(|| (self.value - limit).abs() / limit.abs())
    }

    /// `mean over idle is 1.50 x, goal <= 1.20 x, missed by 25 %`.
    pub fn sentence(&self) -> String {
        format!("{} is {}, goal {}, {}", self.what, self.value_text(), self.goal_text(), self.text())
    }

    /// `met`, `missed by 12 %`, `too few samples (1 of 3)`, or nothing without a goal.
    pub fn text(&self) -> String {
        let Samples { had, needed } = self.samples;
        if self.samples.too_few() {
            return format!("too few samples ({had} of {needed})");
        }
        match (self.is_met(), self.missed_by()) {
            (None, _) => String::new(),
            // A goal of 0 has no percentage.
            (_, Some(part)) if part.is_infinite() => format!("missed by {}", self.value_text()),
            (_, Some(part)) => format!("missed by {}", percent(part)),
            (_, None) => "met".to_owned(),
        }
    }

    pub fn goal_text(&self) -> String {
        match self.goal {
            Goal::AtMost(limit) => format!("<= {}", quantity(limit, &self.unit)),
            Goal::AtLeast(limit) => format!(">= {}", quantity(limit, &self.unit)),
            Goal::Reported => "-".to_owned(),
        }
    }

    pub fn value_text(&self) -> String {
        quantity(self.value, &self.unit)
    }

    /// `0.97 .. 1.02 of 5`.
    pub fn spread_text(&self) -> String {
        match &self.spread {
            Some(spread) if spread.count > 1 => {
                format!("{} .. {} of {}", figure(spread.least), figure(spread.greatest), spread.count)
            }
            _ => String::new(),
        }
    }
}

/// Rows of text. The first column names the row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Documents refer to it as `EXPERIMENT.KEY`; empty if none does.
    #[serde(default)]
    pub key: String,
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        let head = head.iter().map(|&name| name.to_owned()).collect();
        Table { title: title.into(), head, ..Table::default() }
    }
}

pub fn quantity(value: f64, unit: &str) -> String {
    if unit.is_empty() { figure(value) } else { format!("{} {unit}", figure(value)) }
}

/// Formats a value with about three significant digits; whole numbers below a million are written in full.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e6 {
        return format!("{value:.0}");
    }
    match size {
        _ if size >= 1e9 => format!("{:.2} G", value / 1e9),
        _ if size >= 1e6 => format!("{:.2} M", value / 1e6),
        _ if size >= 1e5 => format!("{:.0} k", value / 1e3),
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

pub fn duration(ms: f64) -> String {
    match ms {
        _ if ms >= 0.1 => format!("{} ms", figure(ms)),
        _ if ms >= 1e-3 => format!("{} us", figure(ms * 1e3)),
        _ => format!("{} ns", figure((ms * 1e6).round())),
    }
}

pub fn percent(part: f64) -> String {
    let size = (part * 100.0).abs();
    if size < 10.0 { format!("{:.1} %", part * 100.0) } else { format!("{:.0} %", part * 100.0) }
}

/// `0.21 (0.20 .. 0.25)`.
pub fn spread_figure(spread: &Spread) -> String {
    if spread.count < 2 {
        return figure(spread.median);
    }
    format!("{} ({} .. {})", figure(spread.median), figure(spread.least), figure(spread.greatest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_by_how_much_a_goal_is_missed() {
        let at_most = |value| GoalCheck::of_value("x", value, "ms", Goal::AtMost(2.0));
        assert_eq!((at_most(2.0).text(), at_most(2.5).text()), ("met".to_owned(), "missed by 25 %".to_owned()));
        let at_least = GoalCheck::of_value("x", 0.97, "", Goal::AtLeast(0.98));
        assert_eq!((at_least.text(), at_least.goal_text()), ("missed by 1.0 %".to_owned(), ">= 0.980".to_owned()));
        let none = GoalCheck::of_value("x", 3.0, "wakeups", Goal::AtMost(0.0));
        assert_eq!(none.text(), "missed by 3 wakeups");
        assert_eq!(GoalCheck::of_value("x", 1.0, "", Goal::Reported).is_met(), None);
    }

    #[test]
    fn too_few_samples_neither_meet_nor_miss_a_goal() {
        let nothing = GoalCheck::of_spread("x", Spread::of([]), "ms", Goal::AtMost(40.0));
        assert_eq!((nothing.is_met(), nothing.missed_by()), (Some(false), None));
        assert_eq!(nothing.text(), "too few samples (0 of 1)");
        let of = |samples: &[usize]| {
            let spread = Spread::of(samples.iter().map(|_| 1.0));
            GoalCheck::of_spread("x", spread, "ms", Goal::AtMost(40.0)).counting(samples.iter().copied()).text()
        };
        assert_eq!(of(&[900, 2]), "too few samples (2 of 3)", "the trial with the fewest");
        assert_eq!((of(&[3]), of(&[])), ("met".to_owned(), "too few samples (0 of 3)".to_owned()));
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.0, 0.1234, 1.234, 12.34, 123.4, 1234.5, 123_456.7, 1.5e6, 54_600_000.0, 2.0].map(figure);
        assert_eq!(shown, ["0", "0.123", "1.23", "12.3", "123", "1234", "123 k", "1.50 M", "54.60 M", "2"]);
        assert_eq!([9.7, 0.0721, 1.8e-5].map(duration), ["9.70 ms", "72.1 us", "18 ns"]);
    }
}
