// SPDX-License-Identifier: MIT
//! Joins bursts into jobs. A job is all that a client requests in one period, in one or more bursts.
//!
//! | the next burst | rule |
//! |---|---|
//! | starts less than g after the start of the last one | same job: a player sends a frame in several writes |
//! | starts less than 1 ms after the end of the last one | same job: the client continues as soon as it has a reply |
//! | neither | new job |
//! | belongs to a job longer than 250 ms | the client does not rest: it has no jobs until it rests |
//!
//! Source: Cucinotta, Checconi, Abeni and Palopoli ("Self-tuning schedulers for legacy real-time applications", EuroSys
//! 2010) use single events. X clients flush their buffers when these are full, so their events arrive in groups. We
//! added the second row: under load, service of other clients moves the parts of a group further apart than g.
//!
//! Invariant: jobs are in order of time and do not overlap. All service of a client that rests belongs to a job.

use xqos_core::Time;

/// The longest time from the end of a job's service to a burst that still belongs to it. A client needs 0.05 - 0.3 ms
/// to react to a reply on a busy machine; real rests are longer.
const GOES_ON_NS: u64 = 1_000_000;

/// The longest period that is detected, and therefore the longest job.
pub(crate) const LONGEST_NS: u64 = 250_000_000;

/// One activation of a client, served to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    pub start: Time,
    /// The time at which its last service ended.
    pub end: Time,
    /// Processor time of the server. Wall-clock time would include other threads that the kernel runs in between.
    pub served_ns: u64,
}

/// The requests of a client in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub start: Time,
    /// End of the last service.
    pub end: Time,
    pub demand_ns: u64,
}

impl Job {
    /// Time from activation to the end of service.
    pub fn response_ns(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// Times from the start of each job to the next one.
pub(crate) fn intervals(jobs: &[Job]) -> Vec<u64> {
    jobs.windows(2).map(|pair| pair[1].start.since(pair[0].start)).collect()
}

/// Times from the end of each job to the start of the next one.
pub(crate) fn rests(jobs: &[Job]) -> Vec<u64> {
    jobs.windows(2).map(|pair| pair[1].start.since(pair[0].end)).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinResult {
    /// It belongs to the open job.
    SameJob,
    /// It starts a new job. The previous one, if any, is complete.
    NewJob(Option<Job>),
    /// The client does not rest and therefore has no jobs.
    Endless,
}

#[derive(Clone, Debug)]
pub struct Joiner {
    gap_ns: u64,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    job: Job,
    last_start: Time,
    is_endless: bool,
}

impl Joiner {
    /// Bursts that start less than `gap_ns` apart belong to one job.
    pub fn new(gap_ns: u64) -> Joiner {
        Joiner { gap_ns, open: None }
    }

    /// Takes the next burst. A start before that of the previous burst is moved to it.
    pub fn take(&mut self, burst: Burst) -> JoinResult {
        let floor = self.open.map_or(Time(0), |open| open.last_start);
        let start = burst.start.max(floor);
        let end = burst.end.max(start);
        let demand_ns = burst.served_ns.min(end.since(start));
        let Some(open) = self.open.as_mut().filter(|open| open.includes(start, self.gap_ns)) else {
            let before = self.close();
            self.open = Some(Open { job: Job { start, end, demand_ns }, last_start: start, is_endless: false });
            return JoinResult::NewJob(before);
        };
        open.last_start = start;
        open.job.end = open.job.end.max(end);
        open.job.demand_ns = open.job.demand_ns.saturating_add(demand_ns);
        open.is_endless |= open.job.response_ns() > LONGEST_NS;
        if open.is_endless { JoinResult::Endless } else { JoinResult::SameJob }
    }

    /// Completes the open job if no burst after `now` can belong to it.
    pub fn complete(&mut self, now: Time) -> Option<Job> {
        let is_over = self.open.is_some_and(|open| !open.includes(now, self.gap_ns));
        if is_over { self.close() } else { None }
    }

    fn close(&mut self) -> Option<Job> {
        self.open.take().filter(|open| !open.is_endless).map(|open| open.job)
    }
}

impl Open {
    fn includes(&self, start: Time, gap_ns: u64) -> bool {
        start.since(self.last_start) < gap_ns || start.since(self.job.end) < GOES_ON_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn burst(start_ms: u64, end_ms: u64, served_ms: u64) -> Burst {
        Burst { start: Time(start_ms * MS), end: Time(end_ms * MS), served_ns: served_ms * MS }
    }

    fn job(start_ms: u64, end_ms: u64, demand_ms: u64) -> Job {
        Job { start: Time(start_ms * MS), end: Time(end_ms * MS), demand_ns: demand_ms * MS }
    }

    #[test]
    fn bursts_of_a_frame_are_one_job() {
        let mut joiner = Joiner::new(4 * MS);
        assert_eq!(joiner.take(burst(0, 1, 1)), JoinResult::NewJob(None));
        assert_eq!(joiner.take(burst(3, 5, 1)), JoinResult::SameJob);
        assert_eq!(joiner.take(burst(16, 17, 1)), JoinResult::NewJob(Some(job(0, 5, 2))));
        assert_eq!(joiner.complete(Time(19 * MS)), None, "another burst may still belong to it");
        assert_eq!(joiner.complete(Time(20 * MS)), Some(job(16, 17, 1)));
        assert_eq!(joiner.complete(Time(30 * MS)), None, "once");
    }

    #[test]
    fn parts_of_a_job_stay_together_under_load() {
        let mut joiner = Joiner::new(4 * MS);
        joiner.take(burst(0, 20, 1));
        let next = Burst { start: Time(20 * MS + 200_000), ..burst(20, 31, 2) };
        assert_eq!(joiner.take(next), JoinResult::SameJob);
        assert_eq!(joiner.take(burst(41, 42, 1)), JoinResult::NewJob(Some(job(0, 31, 3))));
    }

    #[test]
    fn a_client_that_never_rests_has_no_jobs_until_it_does() {
        let mut joiner = Joiner::new(4 * MS);
        let mut last = JoinResult::SameJob;
        for i in 0..300 {
            last = joiner.take(burst(i, i + 1, 1));
        }
        assert_eq!(last, JoinResult::Endless);
        assert_eq!(joiner.take(burst(400, 401, 1)), JoinResult::NewJob(None), "the endless burst was no job");
        assert_eq!(joiner.take(burst(500, 501, 1)), JoinResult::NewJob(Some(job(400, 401, 1))));
    }

    #[test]
    fn decreasing_times_are_corrected() {
        let mut joiner = Joiner::new(4 * MS);
        joiner.take(burst(100, 101, 1));
        assert_eq!(joiner.take(burst(50, 20, 9)), JoinResult::SameJob);
        assert_eq!(joiner.complete(Time(u64::MAX)), Some(job(100, 101, 1)), "service is limited to the elapsed time");
    }
}
