// SPDX-License-Identifier: MIT
//! One client: turns its bursts into the reservation that it needs.
//!
//! | state | event | next |
//! |---|---|---|
//! | gathering | two estimates agree | periodic |
//! | gathering | 3 s and 20 jobs, or 6 s, without agreement | aperiodic; the reservation ends |
//! | gathering | the third such attempt in a row | given up: like aperiodic, with longer pauses |
//! | periodic | the period is lost | gathering; the reservation stays meanwhile |
//! | periodic | the mean demand is less than 1 % of T | periodic without a need: `fair` suffices |
//! | aperiodic | 1 s has passed, later 2 s | gathering |
//! | given up | 4 s have passed | gathering |
//! | any | no requests or service for 1 s and 10 T | silent; the reservation ends, T and Q are remembered for 60 s |
//! | silent | a burst | gathering; six jobs are enough to confirm a remembered period |
//!
//! Source: our own design. Twenty jobs are required in addition to 3 s, because a client with four periods per second
//! has only a dozen jobs in 3 s, and two estimates need 16.
//!
//! Invariant: a need has 4 ms <= T <= 250 ms and 0.2 ms <= Q <= T/2. Only periodic clients have a need.

use crate::demand::{Demand, LEAST_BUDGET_NS};
use crate::detector::{Beat, Condition, Detection, Detector, GAPS_NS};
use crate::follow::{BeatChange, Follow};
use crate::jobs::{Burst, Job, JoinResult, Joiner, LONGEST_NS};
use crate::order;
use crate::period::{Fit, SHORTEST_NS};
use xqos_core::Time;

const SECOND_NS: u64 = 1_000_000_000;
const PATIENCE_NS: u64 = 3 * SECOND_NS;
const PATIENCE_JOBS: usize = 20;
const LONGEST_PATIENCE_NS: u64 = 6 * SECOND_NS;
/// During this time, a client that lost its period needs fewer jobs to find a new period.
const RECENT_LOSS_NS: u64 = SECOND_NS;
const PAUSES_NS: [u64; 3] = [SECOND_NS, 2 * SECOND_NS, 4 * SECOND_NS];
const SILENCE_NS: u64 = SECOND_NS;
const SILENCE_PERIODS: u64 = 10;
const MEMORY_NS: u64 = 60 * SECOND_NS;
/// A mean demand of T / 100 is enough to start a reservation, and T / 125 to keep it.
const WORTH_PERCENT: u64 = 100;
const STILL_WORTH_PERCENT: u64 = 125;
/// The number of recent bursts with which gathering restarts; enough for six jobs.
const BURSTS_KEPT: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Budget Q.
    pub budget_ns: u64,
    /// Period T.
    pub period_ns: u64,
    /// The median demand. A smaller budget would make half of the jobs late.
    pub floor_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RhythmState {
    /// Not enough jobs yet.
    Gathering,
    Periodic,
    Aperiodic,
    /// It had no period for a long time and is checked rarely.
    GivenUp,
    Silent,
}

/// The results for a client, for display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RhythmReport {
    pub state: RhythmState,
    /// The clock or loop that drives a periodic client.
    pub beat: Option<Beat>,
    /// The best fit, even if it was not accepted.
    pub seen: Option<Fit>,
    /// T and Q, if a reservation is worthwhile.
    pub need: Option<Need>,
    /// The 15/16 quantile of demand per period.
    pub quantile_ns: u64,
    pub mean_ns: u64,
    pub jobs: usize,
    /// Confidence in the classification, from 0 to 1.
    pub confidence: f64,
}

#[derive(Debug, Default)]
enum Phase {
    Gathering(Box<Gathering>),
    Periodic(Box<Periodic>),
    Aperiodic {
        until: Time,
    },
    #[default]
    Silent,
}

#[derive(Debug)]
struct Gathering {
    since: Time,
    detectors: [Detector; GAPS_NS.len()],
    /// The client lost its period; its reservation is kept.
    lost: bool,
}

#[derive(Debug)]
struct Periodic {
    joiner: Joiner,
    follow: Follow,
    demand: Demand,
    is_worth: bool,
}

#[derive(Clone, Debug)]
struct RememberedBeat {
    beat: Beat,
    budget_ns: u64,
    at: Time,
}

#[derive(Debug, Default)]
pub struct ClientAnalysis {
    phase: Phase,
    need: Option<Need>,
    memory: Option<RememberedBeat>,
    recent: Vec<Burst>,
    last: Time,
    /// Successive attempts that found no period.
    failures: usize,
    jobs: usize,
    seen: Option<Fit>,
}

impl ClientAnalysis {
    /// Takes a burst. Bursts must be in order of time.
    pub fn take(&mut self, burst: Burst) {
        self.advance(burst.start);
        self.last = self.last.max(burst.end).max(burst.start);
        order::keep(&mut self.recent, BURSTS_KEPT, burst);
        match &mut self.phase {
            Phase::Silent => self.begin(burst.start, false, &[burst]),
            Phase::Aperiodic { until } if burst.start >= *until => self.begin(burst.start, false, &[burst]),
            Phase::Aperiodic { .. } => {}
            Phase::Gathering(_) => self.gather(burst),
            Phase::Periodic(_) => self.follow(burst),
        }
    }

    /// Records that the client has requests or is served at `now`, so that one long burst does not count as silence.
    pub fn works(&mut self, now: Time) {
        self.last = self.last.max(now);
    }

    /// Advances the time without a burst: completes jobs and detects silence.
    pub fn advance(&mut self, now: Time) {
        if let Phase::Periodic(periodic) = &mut self.phase {
            if let Some(job) = periodic.joiner.complete(now) {
                self.job(job);
            }
        }
        if now.since(self.last) > self.silence_ns() && !self.is_silent() {
            self.remember();
            self.leave();
            (self.phase, self.need, self.failures) = (Phase::Silent, None, 0);
            self.recent.clear();
        }
    }

    /// Whether the client has had no burst for so long that [`advance`](ClientAnalysis::advance) need not be called.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.phase, Phase::Silent)
    }

    fn silence_ns(&self) -> u64 {
        let period_ns = self.need.map_or(0, |need| need.period_ns);
        SILENCE_NS.max(period_ns.saturating_mul(SILENCE_PERIODS))
    }

    /// The reservation that the client should have now.
    pub fn need(&self) -> Option<Need> {
        self.need
    }

    pub fn report(&self) -> RhythmReport {
        let state = match &self.phase {
            Phase::Gathering(_) => RhythmState::Gathering,
            Phase::Periodic(_) => RhythmState::Periodic,
            Phase::Aperiodic { .. } if self.failures >= PAUSES_NS.len() => RhythmState::GivenUp,
            Phase::Aperiodic { .. } => RhythmState::Aperiodic,
            Phase::Silent => RhythmState::Silent,
        };
        let periodic = match &self.phase {
            Phase::Periodic(periodic) => Some(periodic),
            _ => None,
        };
        let beat = periodic.map(|periodic| periodic.follow.beat);
        let unsure = self.seen.map_or(1.0, |fit| 1.0 - fit.near);
        RhythmReport {
            state,
            beat,
            seen: self.seen,
            need: self.need,
            quantile_ns: periodic.map_or(0, |periodic| periodic.demand.quantile_ns()),
            mean_ns: periodic.map_or(0, |periodic| periodic.demand.mean_ns()),
            jobs: self.jobs + self.gathered(),
            confidence: beat.map_or(unsure, |beat| beat.confidence()),
        }
    }

    /// Jobs of this attempt. The detector with the smallest gap finds the most.
    fn gathered(&self) -> usize {
        let Phase::Gathering(gathering) = &self.phase else { return 0 };
        gathering.detectors.iter().map(|detector| detector.count).max().unwrap_or(0)
    }

    /// Adds the jobs of an attempt that ends.
    fn leave(&mut self) {
        self.jobs += self.gathered();
    }

    /// Starts gathering with these bursts.
    fn begin(&mut self, since: Time, lost: bool, bursts: &[Burst]) {
        if !lost {
            self.need = None;
        }
        self.phase = Phase::Gathering(Box::new(Gathering { since, detectors: GAPS_NS.map(Detector::new), lost }));
        bursts.iter().for_each(|&burst| self.gather(burst));
    }

    fn gather(&mut self, burst: Burst) {
        let known = self.memory.as_ref().filter(|memory| burst.start.since(memory.at) <= MEMORY_NS);
        let known = known.map(|memory| memory.beat);
        let Phase::Gathering(gathering) = &mut self.phase else { return };
        let since_ns = burst.start.since(gathering.since);
        let condition = if gathering.lost && since_ns <= RECENT_LOSS_NS { Condition::RECENT } else { Condition::FIRST };
        let known = known.filter(|_| !gathering.lost);
        let mut found = None;
        for detector in &mut gathering.detectors {
            let of_this = detector.take(burst, condition, known.as_ref());
            found = found.or(of_this);
        }
        let best = gathering.detectors.iter().filter_map(|detector| detector.seen);
        self.seen = best.max_by(|a, b| a.near.total_cmp(&b.near)).or(self.seen);
        let most = self.gathered();
        if let Some(found) = found {
            self.accept(found);
        } else if since_ns > LONGEST_PATIENCE_NS || since_ns > PATIENCE_NS && most >= PATIENCE_JOBS {
            self.leave();
            let pause_ns = PAUSES_NS[self.failures.min(PAUSES_NS.len() - 1)];
            (self.need, self.memory) = (None, None);
            self.failures += 1;
            self.phase = Phase::Aperiodic { until: burst.start.after(pause_ns) };
        }
    }

    fn accept(&mut self, found: Detection) {
        let Detection { beat, jobs, joiner, .. } = found;
        let period_ns = if let Beat::Clock(fit) = beat { fit.period_ns } else { LONGEST_NS };
        let mut demand = Demand::new(&jobs, period_ns);
        let before = self.memory.take().filter(|memory| memory.beat.agrees(&beat, 5));
        if let Some(memory) = before {
            demand.resume(memory.budget_ns);
        }
        self.leave();
        self.failures = 0;
        self.phase =
            Phase::Periodic(Box::new(Periodic { joiner, follow: Follow::new(beat, &jobs), demand, is_worth: false }));
        self.adjust();
    }

    fn follow(&mut self, burst: Burst) {
        let Phase::Periodic(periodic) = &mut self.phase else { return };
        match periodic.joiner.take(burst) {
            JoinResult::SameJob | JoinResult::NewJob(None) => {}
            JoinResult::NewJob(Some(job)) => self.job(job),
            JoinResult::Endless => self.begin_anew(burst.start),
        }
    }

    /// Takes a complete job of a periodic client.
    fn job(&mut self, job: Job) {
        let Phase::Periodic(periodic) = &mut self.phase else { return };
        self.jobs += 1;
        let period_ns = periodic.period_ns();
        periodic.demand.take(&job, period_ns);
        match periodic.follow.take(job) {
            BeatChange::Kept | BeatChange::Changed(_) => self.adjust(),
            BeatChange::Gone => self.begin_anew(job.end),
        }
    }

    /// Restarts gathering with the last six jobs. The reservation is kept.
    fn begin_anew(&mut self, now: Time) {
        let Phase::Periodic(periodic) = &self.phase else { return };
        let from = periodic.follow.changed_at();
        let bursts: Vec<Burst> = self.recent.iter().copied().filter(|burst| burst.start >= from).collect();
        self.memory = None;
        self.begin(now, true, &bursts);
    }

    /// Computes the need of a periodic client.
    fn adjust(&mut self) {
        let Phase::Periodic(periodic) = &mut self.phase else { return };
        let period_ns = periodic.period_ns();
        periodic.demand.bound(period_ns);
        let mean_ns = periodic.demand.mean_ns();
        let percent = if periodic.is_worth { STILL_WORTH_PERCENT } else { WORTH_PERCENT };
        periodic.is_worth = mean_ns.saturating_mul(percent) >= period_ns && period_ns >= SHORTEST_NS;
        let budget_ns = periodic.demand.budget_ns();
        let floor_ns = periodic.demand.median_ns().clamp(LEAST_BUDGET_NS, budget_ns);
        self.need = periodic.is_worth.then_some(Need { budget_ns, period_ns, floor_ns });
    }

    fn remember(&mut self) {
        if let Phase::Periodic(periodic) = &self.phase {
            let (beat, budget_ns) = (periodic.follow.beat, periodic.demand.budget_ns());
            self.memory = Some(RememberedBeat { beat, budget_ns, at: self.last });
        }
    }
}

impl Periodic {
    /// T; for a closed loop, the rest plus Q.
    fn period_ns(&self) -> u64 {
        self.follow.beat.period_ns(self.demand.budget_ns()).min(LONGEST_NS)
    }
}
