// SPDX-License-Identifier: MIT
//! Compares ARSim's budget controller with ours in the same scenarios. Prints a table and asserts rough relations.
//!
//! ARSim's controller is reimplemented from its formula (github.com/tomcucinotta/arsim), without its code: b = spread *
//! H / (T + e* - max(e, 0)), where H is the 0.83 quantile of the last 12 demands, e is the lateness of the last job,
//! and Q = b T. Here spread is 1, e* is 0, and the factor is at most 2.
//!
//! Both controllers get the same period and the same jobs. A job that needs more than Q ends in the next period.

use crate::load::{Course, Distributions, Frame, MS, SECOND, US, player};
use std::collections::VecDeque;
use xqos_core::Time;
use xqos_testkit::Random;
use xqos_tune::{Burst, ClientAnalysis, Need};

#[derive(Default)]
struct Arsim {
    demands: VecDeque<u64>,
}

impl Arsim {
    const SAMPLES: usize = 12;
    const QUANTILE: f64 = 0.83;

    /// Q after a job.
    fn take(&mut self, demand_ns: u64, lateness_ns: u64, period_ns: u64) -> u64 {
        self.demands.push_back(demand_ns);
        if self.demands.len() > Self::SAMPLES {
            self.demands.pop_front();
        }
        let mut sorted: Vec<u64> = self.demands.iter().copied().collect();
        sorted.sort_unstable();
        let predicted = sorted[((sorted.len() as f64 * Self::QUANTILE).ceil() as usize).clamp(1, sorted.len()) - 1];
        let left_ns = (period_ns - lateness_ns.min(period_ns / 2)) as f64;
        ((predicted as f64 * period_ns as f64 / left_ns) as u64).min(period_ns / 2)
    }
}

fn response_ns(demand_ns: u64, budget_ns: u64, period_ns: u64) -> u64 {
    if demand_ns <= budget_ns { demand_ns } else { period_ns + (demand_ns - budget_ns) }
}

fn of_arsim(frames: &[Frame], period_ns: u64) -> Course {
    let (mut arsim, mut course, mut budget_ns) = (Arsim::default(), Course::default(), 0);
    for frame in frames {
        let need = Need { budget_ns, period_ns, floor_ns: 0 };
        course.jobs.extend((budget_ns > 0).then_some((*frame, need)));
        let response_ns = response_ns(frame.demand_ns, budget_ns, period_ns);
        let lateness_ns = if budget_ns > 0 { response_ns.saturating_sub(period_ns) } else { 0 };
        let next_ns = arsim.take(frame.demand_ns, lateness_ns, period_ns);
        if next_ns != budget_ns {
            course.changes.push((frame.start, Some(Need { budget_ns: next_ns, ..need })));
        }
        budget_ns = next_ns;
    }
    course
}

fn of_ours(frames: &[Frame], period_ns: u64) -> Course {
    let (mut client, mut course, mut before) = (ClientAnalysis::default(), Course::default(), None);
    for frame in frames {
        client.advance(frame.start);
        let need = client.need();
        course.note(frame.start, need, &mut before);
        course.jobs.extend(need.map(|need| (*frame, need)));
        let budget_ns = need.map_or(u64::MAX, |need| need.budget_ns);
        let end = frame.start.after(response_ns(frame.demand_ns, budget_ns, period_ns).min(period_ns * 9 / 10));
        client.take(Burst { start: frame.start, end, served_ns: frame.demand_ns });
    }
    course
}

/// Jobs that needed more than their reservation, among the 24 after the step.
fn reaction(course: &Course, step: u64) -> usize {
    let after = course.jobs.iter().filter(|(frame, _)| frame.start.0 >= step);
    after.take(24).filter(|(frame, need)| frame.demand_ns > need.budget_ns).count()
}

#[test]
fn our_budgets_compare_well_with_arsim() {
    const STEP: u64 = 60 * SECOND;
    let constant = |random: &mut Random| random.between(1900, 2100) * US;
    let even = |random: &mut Random| random.between(1000, 3000) * US;
    let log_normal = |random: &mut Random| random.spread(2 * MS, 0.3);
    for (name, demand) in
        [("constant", &constant as &dyn Fn(&mut Random) -> u64), ("even", &even), ("log-normal", &log_normal)]
    {
        let period_ns = 40 * MS;
        let mut frames = player(25.0, (SECOND, 120 * SECOND), 0.05, &mut Random(11), demand);
        let steady: Vec<Frame> = frames.clone();
        frames.iter_mut().filter(|frame| frame.start >= Time(STEP)).for_each(|frame| frame.demand_ns *= 2);
        let figures = [of_arsim, of_ours].map(|controller| {
            let (over, provided, changes) = controller(&steady, period_ns).steady(4 * SECOND);
            (over, provided, changes, reaction(&controller(&frames, period_ns), STEP))
        });
        for (whose, (over, provided, changes, jobs)) in ["ARSim", "ours"].into_iter().zip(figures) {
            println!(
                "{name:>10}  {whose:>5}: over {:4.1} %, over-provision {:5.1} %, {changes:6.1} changes a minute, {jobs} jobs short after x 2",
                over * 100.0,
                provided * 100.0
            );
        }
        let [arsim, ours] = figures;
        assert!(ours.0 <= 0.05 && ours.0 <= arsim.0, "{name}: overruns");
        assert!(arsim.1 <= ours.1 + 0.3, "{name}: ARSim over-provisions more");
        assert!(ours.2 <= 6.0 && ours.2 < arsim.2, "{name}: changes");
    }
}
