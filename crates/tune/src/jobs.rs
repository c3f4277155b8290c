// SPDX-License-Identifier: MIT
//! Bursts become jobs: what a client asks for in one period, however many times the server turned to it for that.
//!
//! | the next burst | rule |
//! |---|---|
//! | starts less than g after the last one started | the same job: a player draws a frame in several writes |
//! | starts less than 1 ms after the last one ended | the same job: a client that goes on as soon as it is answered had not finished |
//! | neither | a new job |
//! | belongs to a job that is longer than 250 ms | the client never rests: it has no jobs until it does |
//!
//! Source: Cucinotta, Checconi, Abeni, Palopoli, "Self-tuning schedulers for legacy real-time applications" (EuroSys 2010), take the
//! times of events as they come. X clients flush their buffers when those are full, so that their events come in groups. The
//! second row is ours: under load a group is stretched by the service of others, and its parts start further apart than g.
//!
//! Invariant: jobs come in order of time, do not overlap, and all service of a client that rests is in one of them.

use xqos_core::Time;

/// From the end of a job's service to a start that still belongs to it. A client that is answered over a socket and asks
/// again needs some 0.05 - 0.3 ms for that on a busy machine; whoever rests does so for longer.
const GOES_ON_NS: u64 = 1_000_000;

/// The longest period that is looked for, and so the longest job.
pub(crate) const LONGEST_NS: u64 = 250_000_000;

/// One activation of a client, served to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// When it had work.
    pub start: Time,
    /// When its last service ended.
    pub end: Time,
    /// Processor time of the server that it got: by the clock a slice is longer, where the kernel runs something else meanwhile.
    pub served_ns: u64,
}

/// What a client asked for in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// First activation.
    pub start: Time,
    /// End of its last service.
    pub end: Time,
    /// Server time in sum.
    pub demand_ns: u64,
}

impl Job {
    /// From the activation to the end of service.
    pub fn response_ns(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// What a burst came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// A part of the job that goes on.
    Same,
    /// The first of a new job; the one before, if there was one, is complete.
    New(Option<Job>),
    /// The client does not rest: what it does has no jobs.
    Endless,
}

/// Joins the bursts of one client.
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
    /// Bursts that start closer together than `gap_ns` belong to one job.
    pub fn new(gap_ns: u64) -> Joiner {
        Joiner { gap_ns, open: None }
    }

    /// Takes the next burst in. Times that go back count as the latest ones that were seen.
    pub fn take(&mut self, burst: Burst) -> Joined {
        let floor = self.open.map_or(Time(0), |open| open.last_start);
        let start = burst.start.max(floor);
        let end = burst.end.max(start);
        let demand_ns = burst.served_ns.min(end.since(start));
        let Some(open) = self.open.as_mut().filter(|open| open.includes(start, self.gap_ns)) else {
            let before = self.close();
            self.open = Some(Open { job: Job { start, end, demand_ns }, last_start: start, is_endless: false });
            return Joined::New(before);
        };
        open.last_start = start;
        open.job.end = open.job.end.max(end);
        open.job.demand_ns = open.job.demand_ns.saturating_add(demand_ns);
        open.is_endless |= open.job.response_ns() > LONGEST_NS;
        if open.is_endless { Joined::Endless } else { Joined::Same }
    }

    /// The job that goes on, if no burst after `now` can belong to it; else it stays open.
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
        assert_eq!(joiner.take(burst(0, 1, 1)), Joined::New(None));
        assert_eq!(joiner.take(burst(3, 5, 1)), Joined::Same);
        assert_eq!(joiner.take(burst(16, 17, 1)), Joined::New(Some(job(0, 5, 2))));
        assert_eq!(joiner.complete(Time(19 * MS)), None, "another one may still belong to it");
        assert_eq!(joiner.complete(Time(20 * MS)), Some(job(16, 17, 1)));
        assert_eq!(joiner.complete(Time(30 * MS)), None, "once");
    }

    #[test]
    fn parts_of_a_job_that_load_has_stretched_stay_together() {
        let mut joiner = Joiner::new(4 * MS);
        joiner.take(burst(0, 20, 1));
        let next = Burst { start: Time(20 * MS + 200_000), ..burst(20, 31, 2) };
        assert_eq!(joiner.take(next), Joined::Same);
        assert_eq!(joiner.take(burst(41, 42, 1)), Joined::New(Some(job(0, 31, 3))));
    }

    #[test]
    fn a_client_that_never_rests_has_no_jobs_until_it_does() {
        let mut joiner = Joiner::new(4 * MS);
        let mut last = Joined::Same;
        for i in 0..300 {
            last = joiner.take(burst(i, i + 1, 1));
        }
        assert_eq!(last, Joined::Endless);
        assert_eq!(joiner.take(burst(400, 401, 1)), Joined::New(None), "it was no job");
        assert_eq!(joiner.take(burst(500, 501, 1)), Joined::New(Some(job(400, 401, 1))));
    }

    #[test]
    fn times_that_go_back_are_taken_as_they_can_be() {
        let mut joiner = Joiner::new(4 * MS);
        joiner.take(burst(100, 101, 1));
        assert_eq!(joiner.take(burst(50, 20, 9)), Joined::Same);
        assert_eq!(joiner.complete(Time(u64::MAX)), Some(job(100, 101, 1)), "no more service than time");
    }
}
