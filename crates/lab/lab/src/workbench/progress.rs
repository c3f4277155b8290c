// SPDX-License-Identifier: MIT
//! Progress on standard error, with the time left. On a terminal, one line is rewritten; other outputs get a new line
//! for each message.
//!
//! The time left is the sum of the estimates, scaled by the actual over the estimated time of earlier experiments. It
//! is printed only with other messages: a timer that wakes this process each second would disturb the measurement.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// A longer line would wrap at the terminal's edge and could not be erased.
const WIDTH: usize = 79;
/// Erases the line that the cursor is on.
const ERASE: &str = "\r\x1b[K";

/// Time that earlier experiments took, compared with their estimates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    estimated_s: f64,
    took_s: f64,
}

impl Pace {
    pub fn add(&mut self, estimated_s: f64, took_s: f64) {
        self.estimated_s += estimated_s;
        self.took_s += took_s;
    }

    pub fn factor(&self) -> f64 {
        if self.estimated_s > 0.0 { (self.took_s / self.estimated_s).clamp(0.1, 10.0) } else { 1.0 }
    }
}

/// The position of an experiment in the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// The experiment's number, counted from 1, and the total number of experiments.
    pub place: (usize, usize),
    pub of_this_s: f64,
    pub of_others_s: f64,
    pub pace: f64,
}

impl Plan {
    fn left(&self, passed: Duration) -> Duration {
        let of_this_s = (self.of_this_s * self.pace - passed.as_secs_f64()).max(0.0);
        Duration::from_secs_f64(of_this_s + self.of_others_s * self.pace)
    }
}

#[derive(Debug)]
pub(crate) struct Progress {
    name: String,
    plan: Plan,
    began: Instant,
}

impl Progress {
    pub fn new(name: &str, plan: Plan) -> Progress {
        Progress { name: name.to_owned(), plan, began: Instant::now() }
    }

    pub fn say(&self, what: &str) {
        let text = self.text(what, self.plan.left(self.began.elapsed()));
        // If standard error fails as well, there is nowhere to report it.
        let _ = if stderr().is_terminal() {
            write!(stderr(), "{ERASE}{}", text.chars().take(WIDTH).collect::<String>())
        } else {
            writeln!(stderr(), "{text}")
        };
    }

    pub fn note(&self, what: &str) {
        let (at, of) = self.plan.place;
        line(&format!("[{at}/{of}] {}: {what}", self.name));
    }

    pub fn done(&self) {
        self.note(&format!("done in {:.0} s", self.began.elapsed().as_secs_f64()));
    }

    fn text(&self, what: &str, left: Duration) -> String {
        let (at, of) = self.plan.place;
        let passed_s = self.began.elapsed().as_secs_f64();
        format!("[{at}/{of}] {passed_s:.0} s {}: {what}; {}", self.name, rough(left))
    }
}

/// Prints a line in place of the one that is being rewritten.
pub(crate) fn line(text: &str) {
    clear_line();
    let _ = writeln!(stderr(), "{text}");
}

/// Must be called before anything else is written to the same terminal.
pub(crate) fn clear_line() {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "{ERASE}");
    }
}

/// Rounds the time left, since it is only an estimate.
fn rough(left: Duration) -> String {
    match left.as_secs() {
        0 => "nearly done".to_owned(),
        seconds @ 1..90 => format!("about {} s left", seconds.div_ceil(5) * 5),
        seconds => format!("about {} min left", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { place: (2, 3), of_this_s: 60.0, of_others_s: 120.0, pace: 1.0 };

    #[test]
    fn the_time_left_shrinks_and_follows_the_pace() {
        let left = |plan: Plan, passed| plan.left(Duration::from_secs(passed)).as_secs();
        assert_eq!((left(PLAN, 0), left(PLAN, 20), left(PLAN, 60)), (180, 160, 120));
        assert_eq!(left(PLAN, 500), 120, "an overdue experiment does not shorten the others");
        assert_eq!(left(Plan { pace: 2.0, ..PLAN }, 20), 340);
        let mut pace = Pace::default();
        assert_eq!(pace.factor(), 1.0);
        pace.add(60.0, 90.0);
        pace.add(40.0, 60.0);
        assert_eq!(pace.factor(), 1.5);
    }

    #[test]
    fn a_progress_line_has_index_name_and_time_left() {
        let text = Progress::new("idle", PLAN).text("20 silent clients", Duration::from_secs(168));
        assert_eq!(text, "[2/3] 0 s idle: 20 silent clients; about 3 min left");
        assert_eq!(
            [0, 3, 61, 91].map(|s| rough(Duration::from_secs(s))),
            ["nearly done", "about 5 s left", "about 65 s left", "about 2 min left"]
        );
    }
}
