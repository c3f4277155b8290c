// SPDX-License-Identifier: MIT
//! Contention: whether the server is so busy that clients wait for each other.
//!
//! Most servers are idle most of the time. Then the server's own order is good enough, and ending slices early, waiting
//! for a compositor or using short kernel slices would only cost time. `fair` therefore decides only under contention;
//! otherwise the server chooses, and only reservations, caps and pacing apply.
//!
//! Contention begins when the server has been busy for [`BEGINS_AFTER_NS`] without a pause, or for a longer time at a
//! load above [`BUSY_PERCENT`] %. It ends when the server has been idle for long enough. The measure of contention is a
//! level that rises while the server is busy and falls while it is idle. At a load of [`BUSY_PERCENT`] % it stays
//! constant. Being busy for one frame does not start contention, and a small change in load does not toggle it.
//!
//! Time for which the server is ready to run but has no processor is not idle time if its clients wait for each other.
//! Before contention, such time counts as busy in the same proportion as the busy time in which a second client waited.
//! If only one client has requests at a time, another order of service would not help: the programs need more
//! processors. Only the kernel measures this time, so at loads at which it could matter the kernel is queried every few
//! milliseconds.

use crate::Time;

/// The load, in percent, above which there is contention.
pub const BUSY_PERCENT: u64 = 85;
/// The longest busy period without contention: longer than a frame, but too short for a person to notice.
pub const BEGINS_AFTER_NS: u64 = 20_000_000;
/// The shortest interval between two queries of the kernel, unless contention would end.
const ASK_EVERY_NS: u64 = 5_000_000;
/// Whether clients wait for each other is known from this much busy time, half of which is forgotten at a time.
const RECENT_NS: u64 = 40_000_000;
/// A shorter time between two slices is not a rest, but the time to find the ready clients.
const NO_REST_NS: u64 = 50_000;
/// The load, in percent, below which the kernel is not queried.
const ASK_ABOVE_PERCENT: u64 = 40;
/// The level at which contention begins.
const FULL: u64 = BEGINS_AFTER_NS * (100 - BUSY_PERCENT);

/// The contention level. The driver of a scheduler keeps one and reports changes as
/// [`Fact::Contention`](crate::Fact::Contention).
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// In hundredths of a nanosecond.
    level: u64,
    is_on: bool,
    /// The end of the last slice or of the last wait for a client.
    since: Time,
    /// The end of the slice after which a query was last due; at small loads it is skipped.
    asked: Time,
    /// The kernel's last answer, if any.
    times: Option<(u64, u64)>,
    /// The level at `asked`, and the busy time and idle time since then.
    known: u64,
    busy_ns: u64,
    rest_ns: u64,
    /// The busy time of the last slices, the part of it in which a second client waited, and the length of the last
    /// slice if it is not in that part.
    recent_ns: u64,
    contested_ns: u64,
    last_ns: u64,
}

/// A slice as it affects contention.
#[derive(Clone, Copy, Debug)]
pub struct BusyTime {
    pub start: Time,
    pub end: Time,
    /// When it began, more than one client was ready.
    pub others_waited: bool,
    /// When it began, a client was ready that had not been served in the slice before.
    pub another_waited: bool,
}

impl Contention {
    /// A server that has been idle until now.
    pub fn new(now: Time) -> Contention {
        let (since, asked) = (now, now);
        Contention {
            level: 0,
            is_on: false,
            since,
            asked,
            times: None,
            known: 0,
            busy_ns: 0,
            rest_ns: 0,
            recent_ns: 0,
            contested_ns: 0,
            last_ns: 0,
        }
    }

    /// True under contention.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Records a slice. Returns the new state if contention began or ended.
    ///
    /// `ask_times` asks the kernel for how many nanoseconds since its start the server has run, and for how many it has
    /// been ready to run but had no processor.
    pub fn served(&mut self, slice: &BusyTime, ask_times: impl FnOnce() -> Option<(u64, u64)>) -> Option<bool> {
        let &BusyTime { start, end, .. } = slice;
        let rest_ns = start.since(self.since);
        let busy_ns = end.since(start.max(self.since));
        self.compete(slice, rest_ns, busy_ns);
        self.rest_ns = self.rest_ns.saturating_add(rest_ns);
        self.busy_ns = self.busy_ns.saturating_add(busy_ns);
        self.level = self.level.saturating_sub(rest_ns.saturating_mul(BUSY_PERCENT));
        let would_end = self.is_on && self.level == 0;
        let slice_rise = busy_ns.saturating_mul(100 - BUSY_PERCENT);
        self.level = self.level.saturating_add(slice_rise).min(FULL);
        self.since = self.since.max(end);
        let mut has_ended = would_end;
        let passed_ns = end.since(self.asked);
        if would_end || passed_ns >= ASK_EVERY_NS {
            let matters = would_end || self.busy_ns.saturating_mul(100) >= passed_ns.saturating_mul(ASK_ABOVE_PERCENT);
            self.correct(matters.then(ask_times).flatten());
            has_ended = would_end && self.level <= slice_rise || self.level == 0;
            self.asked = end;
        }
        let is_on = self.is_on && !has_ended || self.level == FULL;
        let has_changed = is_on != core::mem::replace(&mut self.is_on, is_on);
        has_changed.then_some(is_on)
    }

    /// Notes whether a second client waited during the last slices.
    fn compete(&mut self, slice: &BusyTime, rest_ns: u64, busy_ns: u64) {
        let last_ns = core::mem::take(&mut self.last_ns);
        if slice.another_waited && rest_ns <= NO_REST_NS {
            // It became ready during the last slice.
            self.contested_ns = self.contested_ns.saturating_add(last_ns);
        }
        self.recent_ns = self.recent_ns.saturating_add(busy_ns);
        if slice.others_waited {
            self.contested_ns = self.contested_ns.saturating_add(busy_ns);
        } else {
            self.last_ns = busy_ns;
        }
        while self.recent_ns > RECENT_NS {
            (self.recent_ns, self.contested_ns) = (self.recent_ns / 2, self.contested_ns / 2);
        }
    }

    /// Corrects the level by the times since the last query: the server was busy while it ran, and in the contested
    /// part of the time without a processor.
    fn correct(&mut self, times: Option<(u64, u64)>) {
        let before = core::mem::replace(&mut self.times, times);
        if let Some(((run, delayed), (run_before, delayed_before))) = times.zip(before) {
            let passed_ns = self.busy_ns.saturating_add(self.rest_ns);
            let delayed_ns = delayed.saturating_sub(delayed_before).min(passed_ns);
            // Under contention, clients wait less for each other because of it. At most RECENT_NS each, so the product
            // fits.
            let delayed_ns = match self.is_on {
                true => delayed_ns,
                false => delayed_ns.min(RECENT_NS) * self.contested_ns.min(self.recent_ns) / self.recent_ns.max(1),
            };
            let in_slices_ns = self.busy_ns.saturating_add(delayed_ns.min(self.rest_ns));
            // Slices last longer than the server runs, if it loses the processor in them. Contention does not end for
            // that: the time may have gone to another virtual machine, which the kernel does not count as a delay.
            let by_kernel_ns = match self.is_on {
                true => u64::MAX,
                false => run.saturating_sub(run_before).saturating_add(delayed_ns),
            };
            let busy_ns = in_slices_ns.min(by_kernel_ns).min(passed_ns);
            let risen = self.known.saturating_add(busy_ns.saturating_mul(100 - BUSY_PERCENT));
            self.level = risen.saturating_sub((passed_ns - busy_ns).saturating_mul(BUSY_PERCENT)).min(FULL);
        }
        (self.known, self.busy_ns, self.rest_ns) = (self.level, 0, 0);
    }

    /// Records that the server waited for one client while others were ready. This does not count as idle time.
    pub fn waited(&mut self, until: Time) {
        self.since = self.since.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    /// A slice while only its client is ready.
    fn alone(start: Time, end: Time) -> BusyTime {
        BusyTime { start, end, others_waited: false, another_waited: false }
    }

    fn contested(start: Time, end: Time) -> BusyTime {
        BusyTime { others_waited: true, ..alone(start, end) }
    }

    /// Keeps the server busy for `busy_us` at the beginning of each period. Returns when contention began and ended, in
    /// milliseconds.
    fn changes(contention: &mut Contention, busy_us: u64, period_us: u64, until_ms: u64) -> Vec<(u64, bool)> {
        let begin = contention.since.0 / 1000;
        let bursts = (begin..until_ms * 1000).step_by(period_us as usize);
        let changes_ms = bursts.filter_map(|at| {
            let (start, end) = (Time(at * 1000), Time((at + busy_us) * 1000));
            contention.served(&alone(start, end), || None).map(|is_on| (end.0 / MS, is_on))
        });
        changes_ms.collect()
    }

    #[test]
    fn contention_begins_after_20_busy_ms_and_ends_after_a_short_pause() {
        let mut contention = Contention::new(Time(0));
        assert_eq!(changes(&mut contention, 1000, 1000, 500), [(20, true)]);
        assert_eq!(contention.served(&alone(Time(503 * MS), Time(504 * MS)), || None), None, "it was idle for 3 ms");
        assert_eq!(contention.served(&alone(Time(508 * MS), Time(509 * MS)), || None), Some(false));
    }

    #[test]
    fn loads_below_the_share_cause_no_contention_however_long_their_bursts() {
        for (busy_us, period_us) in [(15_000, 18_000), (10_000, 16_667), (800, 1000), (40, 50), (15_000, 100_000)] {
            let changes_ms = changes(&mut Contention::new(Time(0)), busy_us, period_us, 5000);
            assert_eq!(changes_ms, [], "{busy_us} us of {period_us}");
        }
    }

    #[test]
    fn a_load_above_the_share_causes_lasting_contention_and_a_larger_one_sooner() {
        let began = |busy_us| changes(&mut Contention::new(Time(0)), busy_us, 1000, 5000);
        assert_eq!((began(900), began(950)), (vec![(58, true)], vec![(29, true)]));
    }

    #[test]
    fn a_wait_for_one_client_does_not_count_as_idle() {
        let mut contention = Contention::new(Time(0));
        for ms in 0..200 {
            contention.served(&alone(Time(ms * MS), Time(ms * MS + MS / 2)), || None);
            contention.waited(Time((ms + 1) * MS));
        }
        assert!(contention.is_on());
        assert_eq!(contention.served(&alone(Time::NEVER, Time::NEVER), || None), Some(false), "no overflow");
    }

    /// The server is busy for `busy_us` of each ms, and has no processor for `delayed_us` of the rest. Returns when
    /// contention began and ended, in milliseconds, and how often the kernel was queried.
    fn changes_with_delays(busy_us: u64, delayed_us: u64) -> (Vec<(u64, bool)>, u64) {
        let (mut contention, mut asked) = (Contention::new(Time(0)), 0);
        let changes_ms = (0..5000).filter_map(|ms| {
            let (start, end) = (Time(ms * MS), Time(ms * MS + busy_us * 1000));
            let ask = || {
                asked += 1;
                Some(((ms + 1) * busy_us * 1000, ms * delayed_us * 1000))
            };
            contention.served(&contested(start, end), ask).map(|is_on| (ms, is_on))
        });
        (changes_ms.collect(), asked)
    }

    #[test]
    fn time_without_a_processor_counts_as_busy() {
        assert_eq!(changes_with_delays(700, 0).0, []);
        assert_eq!(changes_with_delays(700, 300).0, [(25, true)]);
        for (busy_us, delayed_us) in [(700, 100), (400, 400), (100, 600), (800, 40)] {
            assert_eq!(changes_with_delays(busy_us, delayed_us).0, [], "{busy_us} us and {delayed_us} us of 1 ms");
        }
    }

    #[test]
    fn the_kernel_is_asked_every_5_ms_and_not_at_small_loads() {
        let asked = |busy_us| changes_with_delays(busy_us, 0).1;
        assert_eq!((asked(300), asked(450), asked(840)), (0, 999, 999), "in 5 s");
    }

    #[test]
    fn contention_does_not_end_while_the_server_has_no_processor() {
        let mut contention = Contention::new(Time(0));
        assert_eq!(contention.served(&contested(Time(0), Time(20 * MS)), || Some((20 * MS, 0))), Some(true));
        assert_eq!(contention.served(&contested(Time(21 * MS), Time(22 * MS)), || Some((21 * MS, 0))), None);
        let no_question = || unreachable!("5 ms have not passed, and contention goes on");
        assert_eq!(contention.served(&contested(Time(22 * MS), Time(23 * MS)), no_question), None);
        assert_eq!(contention.served(&contested(Time(30 * MS), Time(31 * MS)), || Some((23 * MS, 8 * MS))), None);
        assert_eq!(
            contention.served(&contested(Time(41 * MS), Time(42 * MS)), || Some((24 * MS, 9 * MS))),
            Some(false)
        );
    }

    #[test]
    fn contention_does_not_end_while_another_virtual_machine_has_the_processor() {
        let mut contention = Contention::new(Time(0));
        assert_eq!(contention.served(&contested(Time(0), Time(20 * MS)), || Some((20 * MS, 0))), Some(true));
        assert_eq!(contention.served(&contested(Time(20 * MS), Time(60 * MS)), || Some((25 * MS, 0))), None);
    }

    #[test]
    fn time_without_a_processor_counts_only_while_clients_wait_for_each_other() {
        // In each ms the server is busy for 0.4 ms and has no processor for 0.6 ms.
        let contends = |slices: &dyn Fn(u64) -> Vec<BusyTime>| {
            let mut contention = Contention::new(Time(0));
            (0..1000).any(|ms| {
                slices(ms * 1000)
                    .into_iter()
                    .any(|slice| contention.served(&slice, || Some(((ms + 1) * 400_000, ms * 600_000))) == Some(true))
            })
        };
        let at = |us: u64| Time(us * 1000);
        assert!(!contends(&|us| vec![alone(at(us), at(us + 400))]));
        assert!(contends(&|us| vec![contested(at(us), at(us + 400))]));
        let follows = |slice: BusyTime| BusyTime { another_waited: true, ..slice };
        let one_after_another = |pause_us: u64| {
            contends(&|us| {
                let second = alone(at(us + 390 + pause_us), at(us + 400 + pause_us));
                vec![alone(at(us), at(us + 390)), follows(second)]
            })
        };
        // A slice in which the server loses the processor.
        assert!(!contends(&|us| vec![alone(at(us), at(us + 950))]));
        assert!(contends(&|us| vec![contested(at(us), at(us + 950))]));
        assert!(one_after_another(2), "the second client became ready during the first one's slice");
        assert!(!one_after_another(100), "it became ready later");
    }
}
