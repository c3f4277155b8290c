// SPDX-License-Identifier: MIT
//! Explains the decision for a client.

use xqos_tune::{Beat, RhythmReport, RhythmState};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotReserved {
    /// The client needs so little server time that a reservation is unnecessary.
    Light,
    Aperiodic,
    NoRoom,
    Silent,
}

impl NotReserved {
    /// The reason why the tuner reserves nothing for a client; `None` if no reason is known yet.
    pub fn of(report: &RhythmReport) -> Option<NotReserved> {
        match (report.state, report.need) {
            (RhythmState::Gathering, _) => None,
            (RhythmState::Periodic, None) => Some(NotReserved::Light),
            (RhythmState::Periodic, Some(_)) => Some(NotReserved::NoRoom),
            (RhythmState::Aperiodic | RhythmState::GivenUp, _) => Some(NotReserved::Aperiodic),
            (RhythmState::Silent, _) => Some(NotReserved::Silent),
        }
    }

    pub fn sentence(self, report: &RhythmReport) -> String {
        match self {
            NotReserved::Light => format!("it {}, which it gets without a reservation", needs(report)),
            NotReserved::Aperiodic => "its work has no steady rhythm".to_owned(),
            NotReserved::NoRoom => "the other reservations leave no room for it".to_owned(),
            NotReserved::Silent => "it is idle at present".to_owned(),
        }
    }
}

pub fn rhythm(report: &RhythmReport) -> Option<String> {
    Some(match report.beat? {
        Beat::Clock(fit) => format!("draws {:.1} times a second", 1e9 / fit.period_ns.max(1) as f64),
        Beat::Loop(rest) => format!("pauses for {:.1} ms after each reply", rest.rest_ns as f64 / 1e6),
    })
}

fn needs(report: &RhythmReport) -> String {
    let period_ns = match report.beat {
        Some(Beat::Clock(fit)) => fit.period_ns,
        Some(Beat::Loop(rest)) => rest.rest_ns.saturating_add(report.mean_ns),
        None => 0,
    };
    let percent = 100.0 * report.mean_ns as f64 / period_ns.max(1) as f64;
    let part = format!("needs {percent:.1} % of the server");
    rhythm(report).map_or_else(|| part.clone(), |rhythm| format!("{rhythm} and {part}"))
}

/// The reason why nothing was reserved for a client that disconnected before a decision.
pub fn too_few_jobs(jobs: usize) -> String {
    match jobs {
        0 => "it had no work while it was watched".to_owned(),
        1 => "it had work only once, but finding a rhythm takes about a dozen bursts of work".to_owned(),
        _ => format!("it had work only {jobs} times, which is too few to find a rhythm"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_tune::{Burst, ClientAnalysis};

    /// The report on a film of 25 frames per second, with this much server time for each frame.
    fn film(served_us: u64) -> RhythmReport {
        let mut client = ClientAnalysis::default();
        for frame in 0..100 {
            let start = xqos_core::Time(1_000_000_000 + frame * 40_000_000);
            let served_ns = served_us * 1000;
            client.take(Burst { start, end: start.after(served_ns), served_ns });
        }
        client.report()
    }

    #[test]
    fn a_light_client_gets_a_message_with_its_demand() {
        let report = film(200);
        let why = NotReserved::of(&report).unwrap();
        assert_eq!(
            why.sentence(&report),
            "it draws 25.0 times a second and needs 0.5 % of the server, which it gets without a reservation"
        );
        assert_eq!(NotReserved::of(&film(2000)), Some(NotReserved::NoRoom), "needs a reservation and has none");
    }

    #[test]
    fn the_message_for_an_early_exit_depends_on_the_jobs_seen() {
        assert!(too_few_jobs(0).contains("no work") && too_few_jobs(1).contains("once"));
        assert!(too_few_jobs(7).contains("7 times"));
    }
}
