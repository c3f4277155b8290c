// SPDX-License-Identifier: MIT
//! Extracts the bursts of one client from a trace and determines what each burst waited for.
//!
//! A burst begins when the server learns of it and ends when the client's queue is empty. In between, the server serves
//! the client, serves other clients, or does neither because it polls or the kernel runs another task.

use super::data::{Figures, named};
use crate::trace::events;
use std::collections::BTreeMap;
use xqos_abi::ring::RingReader;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service};

/// The first burst in the chart, the time that is shown before it, and the total time that is shown.
const DRAWN_BURST: usize = 5;
const LEAD_NS: u64 = 5_000_000;
const DRAWN_NS: u64 = 150_000_000;
/// Gaps much smaller than a pixel are closed in the chart.
const CLOSED_NS: u64 = 20_000;

#[derive(Debug, Default)]
pub(super) struct BurstRecorder {
    base: u32,
    /// Indices into `slices`.
    places: BTreeMap<ClientId, usize>,
    /// Slices of the client, then of each other client except those of this process.
    slices: Vec<Vec<TimedSlice>>,
    /// Scheduling deadlines of its reservation, and when each was set.
    deadlines_ns: Vec<(u64, u64)>,
    bursts: Vec<MeasuredBurst>,
    lost: u64,
    /// The burst in progress, and other clients' slices since the previous burst.
    burst: Option<MeasuredBurst>,
    others: Vec<TimedSlice>,
    /// Times at which the client sent its bursts, if it records them, and the index of the first one without a burst.
    turns: Vec<u64>,
    next_turn: usize,
    /// Processor time of the next recorded slice, if it is much less than the slice's length.
    worked_ns: Option<u64>,
}

impl BurstRecorder {
    /// `base`: the client's resource base, which identifies it.
    pub fn new(base: u32) -> BurstRecorder {
        BurstRecorder { base, slices: vec![Vec::new()], ..BurstRecorder::default() }
    }

    pub fn read(&mut self, trace: &mut RingReader) {
        let (events, lost) = events(trace);
        self.lost += lost;
        events.into_iter().for_each(|event| self.take(event));
    }

    fn take(&mut self, event: Event) {
        let at_ns = event.at.0;
        let is_own = |client: ClientId| self.places.get(&client) == Some(&0);
        match event.what {
            Entry::Identity { client, pid, base, .. } => self.identify(client, pid, base),
            Entry::Fact(Fact::Arrived { client }) if is_own(client) => {
                self.burst.get_or_insert(MeasuredBurst { arrived_ns: at_ns, ..MeasuredBurst::default() });
            }
            Entry::Budget { client, deadline, depleted, .. } if is_own(client) => {
                self.deadlines_ns.push((at_ns, deadline.0));
                if let Some(burst) = &mut self.burst {
                    burst.deadline_ns.get_or_insert(deadline.0);
                    burst.depleted |= depleted;
                }
            }
            // The burst waits for the rest of another client's cut request, which runs in the burst's own slice.
            Entry::Finished { by, ns, .. } if is_own(by) => {
                if let Some(burst) = &mut self.burst {
                    burst.finished_ns += ns;
                }
            }
            Entry::Processor { ns, .. } => self.worked_ns = Some(ns),
            Entry::Fact(Fact::Served(Service { client, start, still_ready, .. })) => {
                let worked_ns = self.worked_ns.take().unwrap_or(u64::MAX);
                let slice = TimedSlice { begin_ns: start.0, end_ns: at_ns, worked_ns };
                let place = self.places.get(&client).copied();
                if let Some(place) = place {
                    self.slices[place].push(slice);
                }
                if place == Some(0) { self.serve(slice, still_ready) } else { self.others.push(slice) }
            }
            _ => {}
        }
    }

    /// Counts only the bursts that the client sends at these times.
    pub fn of_turns(base: u32, turns: Vec<u64>) -> BurstRecorder {
        BurstRecorder { turns, ..BurstRecorder::new(base) }
    }

    /// The last turn that began at or before this time and belongs to no earlier burst.
    fn turn_until(&mut self, end_ns: u64) -> Option<u64> {
        let mut found = None;
        while let Some(&turn) = self.turns.get(self.next_turn).filter(|&&turn| turn <= end_ns) {
            (found, self.next_turn) = (Some(turn), self.next_turn + 1);
        }
        found
    }

    /// Figures of the bursts and of the charted part of the trace, in milliseconds from the beginning of that part.
    pub fn figures(&self) -> Figures {
        let first = self.bursts.get(DRAWN_BURST).or(self.bursts.last());
        let from_ns = first.map_or(0, |burst| burst.arrived_ns.saturating_sub(LEAD_NS));
        // Microseconds are precise enough for the page, and the numbers stay short.
        let place = |ns: u64| (ns.saturating_sub(from_ns).min(DRAWN_NS) / 1000) as f64 / 1e3;
        let is_drawn = |ns: &u64| (from_ns..from_ns + DRAWN_NS).contains(ns);
        let each = |ns: fn(&MeasuredBurst) -> u64| self.bursts.iter().map(ns);
        let ms = |ns: fn(&MeasuredBurst) -> u64| each(ns).map(|ns| ns as f64 / 1e6).collect();
        let spacing =
            self.bursts.windows(2).map(|pair| pair[1].arrived_ns.saturating_sub(pair[0].arrived_ns) as f64 / 1e6);
        let told = self.deadlines_ns.iter().filter(|(at_ns, _)| is_drawn(at_ns));
        let mut deadlines: Vec<u64> = told.map(|&(_, deadline_ns)| deadline_ns).collect();
        deadlines.dedup();
        let mut samples = named([
            ("burst", ms(MeasuredBurst::delay_ns)),
            ("burst_spacing", spacing.collect()),
            ("burst_served", ms(|burst| burst.served_ns)),
            ("burst_behind", ms(|burst| burst.behind_ns)),
            ("burst_neither", ms(MeasuredBurst::neither_ns)),
            ("burst_behind_work", ms(|burst| burst.behind_work_ns)),
            ("burst_behind_work_sent", ms(|burst| burst.behind_work_sent_ns)),
            ("slices.arrivals", each(|burst| burst.arrived_ns).filter(is_drawn).map(place).collect()),
            ("slices.ends", each(|burst| burst.done_ns).filter(is_drawn).map(place).collect()),
            ("slices.deadlines", deadlines.into_iter().filter(is_drawn).map(place).collect()),
        ]);
        let drawn = |slices: &Vec<TimedSlice>| {
            let is_drawn = |slice: &&TimedSlice| slice.end_ns > from_ns && slice.begin_ns < from_ns + DRAWN_NS;
            let mut closed: Vec<TimedSlice> = Vec::new();
            for &slice in slices.iter().filter(is_drawn) {
                match closed.last_mut() {
                    Some(last) if slice.begin_ns.saturating_sub(last.end_ns) < CLOSED_NS => last.end_ns = slice.end_ns,
                    _ => closed.push(slice),
                }
            }
            closed.iter().flat_map(|slice| [place(slice.begin_ns), place(slice.end_ns)]).collect()
        };
        let lanes = self.slices.iter().enumerate().map(|(lane, slices)| (format!("slices.{lane}"), drawn(slices)));
        let count = |holds: fn(&MeasuredBurst) -> bool| self.bursts.iter().filter(|burst| holds(burst)).count() as f64;
        let mut values = named([("lost", self.lost as f64)]);
        if !self.deadlines_ns.is_empty() {
            let is_late = |burst: &MeasuredBurst| burst.deadline_ns.is_some_and(|deadline| burst.done_ns > deadline);
            values.extend(named([("burst_late", count(is_late)), ("burst_depleted", count(|burst| burst.depleted))]));
        }
        samples.extend(lanes);
        (samples, values)
    }

    fn identify(&mut self, client: ClientId, pid: u32, base: u32) {
        if base == self.base {
            self.places.insert(client, 0);
        } else if !self.places.contains_key(&client) && pid != std::process::id() {
            self.places.insert(client, self.slices.len());
            self.slices.push(Vec::new());
        }
    }

    fn serve(&mut self, slice: TimedSlice, still_ready: bool) {
        let Some(mut burst) = self.burst.take() else { return };
        burst.served_ns += slice.length_since(burst.arrived_ns);
        if still_ready {
            self.burst = Some(burst);
            return;
        }
        burst.done_ns = slice.end_ns;
        burst.served_ns = burst.served_ns.saturating_sub(burst.finished_ns);
        let others: Vec<TimedSlice> = self.others.drain(..).collect();
        let behind = |ns: &dyn Fn(&TimedSlice) -> u64| others.iter().map(ns).sum::<u64>() + burst.finished_ns;
        burst.behind_ns = behind(&|other| other.length_since(burst.arrived_ns));
        burst.behind_work_ns = behind(&|other| other.work_since(burst.arrived_ns));
        let turn = self.turn_until(burst.done_ns);
        if let Some(sent_ns) = turn {
            burst.behind_work_sent_ns = behind(&|other| other.work_since(sent_ns));
        }
        if turn.is_some() || self.turns.is_empty() {
            self.bursts.push(burst);
        }
    }
}

/// Times on the server's clock.
#[derive(Clone, Copy, Debug)]
struct TimedSlice {
    begin_ns: u64,
    end_ns: u64,
    /// Processor time of the server, which may exceed the length.
    worked_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MeasuredBurst {
    arrived_ns: u64,
    done_ns: u64,
    served_ns: u64,
    /// Total time of other clients' slices since the burst arrived, and of their requests in its own slices.
    behind_ns: u64,
    /// Total time of other clients' requests that had to be finished in its own slices.
    finished_ns: u64,
    /// Processor time of others since the burst arrived, and since the client sent it.
    behind_work_ns: u64,
    behind_work_sent_ns: u64,
    /// The deadline when the burst arrived; `None` without a reservation.
    deadline_ns: Option<u64>,
    depleted: bool,
}

impl MeasuredBurst {
    fn delay_ns(&self) -> u64 {
        self.done_ns.saturating_sub(self.arrived_ns)
    }

    fn neither_ns(&self) -> u64 {
        self.delay_ns().saturating_sub(self.served_ns + self.behind_ns)
    }
}

impl TimedSlice {
    fn length_since(self, since_ns: u64) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns.max(since_ns))
    }

    /// Upper bound for the processor time of the slice since then.
    fn work_since(self, since_ns: u64) -> u64 {
        self.length_since(since_ns).min(self.worked_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::ReservationKind;
    use xqos_core::Time;

    const OWN: ClientId = ClientId(3);
    const OTHER: ClientId = ClientId(4);
    const MS: u64 = 1_000_000;

    fn identity(client: ClientId, pid: u32, base: u32) -> (u64, Entry) {
        (0, Entry::Identity { client, pid, base, uid: 0 })
    }

    fn arrived(at_ms: u64) -> (u64, Entry) {
        (at_ms, Entry::Fact(Fact::Arrived { client: OWN }))
    }

    fn served(client: ClientId, from_ms: u64, to_ms: u64, still_ready: bool) -> (u64, Entry) {
        let service = Service::new(client, Time(from_ms * MS), Time(to_ms * MS));
        (to_ms, Entry::Fact(Fact::Served(Service { requests: 1, last_request: 70, bytes: 24, still_ready, ..service })))
    }

    fn budget(at_ms: u64, left_ms: i64, deadline_ms: u64) -> (u64, Entry) {
        let (left_ns, deadline) = (left_ms * MS as i64, Time(deadline_ms * MS));
        (at_ms, Entry::Budget { client: OWN, kind: ReservationKind::Hard, depleted: left_ms <= 0, left_ns, deadline })
    }

    /// A recorder for a trace with these events, whose times are in milliseconds.
    fn recorder(events: &[(u64, Entry)]) -> BurstRecorder {
        let mut recorder = BurstRecorder::new(0x40);
        let own = std::process::id();
        let known = [identity(OWN, own, 0x40), identity(OTHER, 1, 0x60), identity(ClientId(5), own, 0x80)];
        for &(at_ms, what) in known.iter().chain(events) {
            recorder.take(Event { at: Time(at_ms * MS), what });
        }
        recorder
    }

    #[test]
    fn waits_of_a_burst_are_separated_by_cause() {
        let events = [
            served(OTHER, 2, 4, true),
            // The record of the slice in progress precedes that of the arrival.
            served(OTHER, 5, 13, true),
            arrived(10),
            budget(10, 3, 20),
            served(OWN, 14, 15, true),
            served(OTHER, 15, 16, false),
            served(OWN, 17, 21, false),
            budget(21, -2, 30),
            served(OTHER, 21, 25, true),
        ];
        let expected = MeasuredBurst {
            arrived_ns: 10 * MS,
            done_ns: 21 * MS,
            served_ns: 5 * MS,
            behind_ns: 4 * MS,
            finished_ns: 0,
            behind_work_ns: 4 * MS,
            behind_work_sent_ns: 0,
            deadline_ns: Some(20 * MS),
            depleted: false,
        };
        assert_eq!(recorder(&events).bursts, [expected]);
        assert_eq!((expected.delay_ns(), expected.neither_ns()), (11 * MS, 2 * MS));
    }

    #[test]
    fn a_cut_request_that_a_burst_has_to_finish_counts_as_waiting() {
        let finished = Entry::Finished { client: OTHER, request: 70, by: OWN, ns: MS };
        let events = [arrived(10), served(OTHER, 9, 11, true), (14, finished), served(OWN, 12, 15, false)];
        let bursts = recorder(&events).bursts;
        assert_eq!((bursts[0].behind_ns, bursts[0].served_ns, bursts[0].neither_ns()), (2 * MS, 2 * MS, MS));
    }

    #[test]
    fn only_bursts_of_turns_count_if_the_turns_are_known() {
        let mut recorder = BurstRecorder::of_turns(0x40, vec![18 * MS, 30 * MS]);
        let known = identity(OWN, std::process::id(), 0x40);
        let first = [arrived(5), served(OWN, 5, 6, false)];
        let worked = Entry::Processor { client: OTHER, ns: 3 * MS };
        let second = [(22, worked), served(OTHER, 17, 22, true), arrived(20), served(OWN, 22, 23, false)];
        for (at_ms, what) in [&[known][..], &first, &second].concat() {
            recorder.take(Event { at: Time(at_ms * MS), what });
        }
        let (samples, _) = recorder.figures();
        assert_eq!((&samples["burst_behind"], &samples["burst_behind_work"]), (&vec![2.0], &vec![2.0]));
        assert_eq!(samples["burst_behind_work_sent"], [3.0], "the kernel ran something else for 2 of 5 ms");
    }

    #[test]
    fn a_burst_that_ends_after_its_deadline_is_counted() {
        let burst = |ms, took| [arrived(ms), budget(ms, 3, ms + 10), served(OWN, ms, ms + took, false)];
        let (samples, values) = recorder(&[burst(10, 2), burst(30, 11)].concat()).figures();
        assert_eq!((&samples["burst"], values["burst_late"], values["burst_depleted"]), (&vec![2.0, 11.0], 1.0, 0.0));
    }

    #[test]
    fn each_client_has_a_lane_from_5_ms_before_the_sixth_burst_on() {
        let burst = |ms| [arrived(ms), budget(ms, 3, ms + 10), served(OWN, ms, ms + 2, false)];
        let mut events: Vec<_> = (1..20).flat_map(|turn| burst(turn * 12)).collect();
        events.push(served(OTHER, 80, 82, false));
        let (samples, _) = recorder(&events).figures();
        assert_eq!((&samples["slices.0"][..2], &samples["slices.1"]), (&[5.0, 7.0][..], &vec![13.0, 15.0]));
        let first = |name: &str| samples[&format!("slices.{name}")][0];
        assert_eq!([first("arrivals"), first("ends"), first("deadlines")], [5.0, 7.0, 15.0]);
        assert!(samples["slices.0"].iter().all(|&at| at <= 150.0) && !samples.contains_key("slices.2"));
    }
}
