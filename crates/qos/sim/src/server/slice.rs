// SPDX-License-Identifier: MIT
//! One slice: serves requests one after the other until something ends the slice.

use super::{BurstResult, Observer, Polling, SimulatedServer, Task, id_of};
use std::collections::VecDeque;
use xqos_abi::trace::{Entry, Event, Reason};
use xqos_core::{BusyTime, Choice, ClientId, Contest, Fact, Service, Slice, Time};

/// Minimum time between two slices that are ended by polled input, as in the real server's watcher.
const INPUT_ENDS_EVERY_NS: u64 = 1_000_000;

/// The core requests that the server can execute in parts: CopyArea to GetImage, except lines, polygons and planes.
const WITH_PARTS: [u32; 9] = [62, 64, 66, 67, 68, 70, 71, 72, 73];

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    requests: u32,
    bytes: u64,
    last_request: u32,
}

impl SimulatedServer {
    pub(super) fn slice(&mut self, slice: &Slice, until: Time, observer: &mut impl Observer) {
        let start = self.now;
        observer.record(Event { at: start, what: Entry::dispatch(slice, Reason::for_slice(slice, &self.scheduler)) });
        let Some(client) = self.chosen(slice) else {
            // Not expected: the server can choose any client that the scheduler counts as ready.
            self.now = start.after(1);
            return;
        };
        let index = usize::from(client.0) - 1;
        let end = slice.until.min(self.stock.slice_end(start));
        let mut done = Done::default();
        let ended_early = self.serve(index, slice, (end, until), &mut done, observer);
        self.finish(client, start, done, ended_early, observer);
    }

    fn chosen(&mut self, slice: &Slice) -> Option<ClientId> {
        match slice.choice {
            Choice::Client(client, _) => Some(client),
            Choice::Server => {
                let scheduler = &self.scheduler;
                self.stock.choose(self.now, |client| !scheduler.is_held_back(client))
            }
        }
    }

    /// Returns whether an arrival or input ended the slice.
    fn serve(
        &mut self,
        index: usize,
        slice: &Slice,
        (end, until): (Time, Time),
        done: &mut Done,
        observer: &mut impl Observer,
    ) -> bool {
        let limit = end.min(until);
        let mut cut = self.cut(index, &slice.contest, limit);
        loop {
            let cut_by_input = self.cut_by_input(slice);
            let stop = cut.min(cut_by_input);
            if self.now >= stop {
                self.last_input_end = if self.now >= cut_by_input { self.now } else { self.last_input_end };
                return self.now < end;
            }
            let seen = if self.polling == Polling::BetweenRequests { self.next_input() } else { Time::NEVER };
            if self.now >= seen {
                self.take_input(observer);
                cut = self.cut(index, &slice.contest, limit);
                continue;
            }
            if self.execute_part(index, limit.min(stop), done) {
                if self.now >= limit {
                    return false;
                }
                continue;
            }
            if !self.advance(index, limit.min(stop).min(seen), slice, done, observer) || self.now >= limit {
                return false;
            }
        }
    }

    /// The time at which an arrival ends the slice. `NEVER` if none does before the limit.
    fn cut(&self, runs: usize, contest: &Contest, limit: Time) -> Time {
        let mut cut = Time::NEVER;
        if !self.watches {
            return cut;
        }
        for arrival in &self.arrivals {
            if arrival.at >= cut.min(limit) {
                break;
            }
            if arrival.index != runs && self.clients[arrival.index].tasks.is_empty() {
                let rank = self.scheduler.rank_on_arrival(id_of(arrival.index), arrival.at);
                cut = cut.min(contest.ends_for(rank).max(arrival.at));
            }
        }
        cut
    }

    /// The time at which input ends the slice, if the server reads input only between slices. As in the real server, it
    /// applies neither when the server chooses nor under `classic`.
    fn cut_by_input(&self, slice: &Slice) -> Time {
        let is_ours = matches!(slice.choice, Choice::Client(..)) && slice.requests == 0;
        if self.polling == Polling::BetweenSlices && self.watches && is_ours {
            self.next_input().max(self.last_input_end.after(INPUT_ENDS_EVERY_NS))
        } else {
            Time::NEVER
        }
    }

    /// Executes the next request up to the first part boundary after `stop`. Returns false if the request ends before
    /// that, or has no parts.
    fn execute_part(&mut self, index: usize, stop: Time, done: &mut Done) -> bool {
        let Some(task) = self.clients[index].tasks.front_mut() else { return false };
        let Some(run) = task.runs.front().filter(|run| self.part_ns > 0 && WITH_PARTS.contains(&run.request)) else {
            return false;
        };
        let parts = stop.since(self.now).div_ceil(self.part_ns).max(1);
        let ns = parts.saturating_mul(self.part_ns);
        if ns >= run.request_ns - task.done_ns {
            return false;
        }
        done.requests += u32::from(task.done_ns == 0);
        done.last_request = run.request;
        task.done_ns += ns;
        self.now = self.now.after(ns);
        true
    }

    /// Serves equal requests until `to`, including the one that crosses it. Returns whether the slice continues.
    fn advance(
        &mut self,
        index: usize,
        to: Time,
        slice: &Slice,
        done: &mut Done,
        observer: &mut impl Observer,
    ) -> bool {
        let Some(task) = self.clients[index].tasks.front_mut() else { return false };
        let (requests, bytes) = (slice.requests, slice.bytes);
        if let Some(run) = task.runs.front_mut() {
            let fit = to.since(self.now).div_ceil(run.request_ns.max(1)).max(1);
            let mut count = fit.min(run.requests.into());
            if requests > 0 {
                count = count.min(u64::from(requests.saturating_sub(done.requests)).max(1));
            }
            if bytes > 0 {
                let left = u64::from(bytes).saturating_sub(done.bytes);
                count = count.min(left.div_ceil(u64::from(run.bytes.max(1))).max(1));
            }
            let before_ns = std::mem::take(&mut task.done_ns);
            self.now = self.now.after(count.saturating_mul(run.request_ns) - before_ns);
            done.requests = done.requests.saturating_add(count as u32 - u32::from(before_ns > 0));
            done.bytes += count * u64::from(run.bytes);
            done.last_request = run.request;
            run.requests -= count as u32;
            if run.requests == 0 {
                task.runs.pop_front();
            }
        }
        if task.runs.is_empty() {
            self.task_done(index, observer);
        }
        let is_limited = (requests > 0 && done.requests >= requests) || (bytes > 0 && done.bytes >= u64::from(bytes));
        !is_limited && !self.clients[index].tasks.is_empty()
    }

    fn task_done(&mut self, index: usize, observer: &mut impl Observer) {
        let now = self.now;
        let client = &mut self.clients[index];
        let Some(Task { asked, seen, .. }) = client.tasks.pop_front() else { return };
        if client.generator.is_busy() {
            if let Some(runs) = client.generator.next_runs(now) {
                let runs: VecDeque<_> = runs.iter().copied().collect();
                client.tasks.push_back(Task { asked: now, seen: now, runs, done_ns: 0 });
            }
            return;
        }
        observer.burst(&BurstResult { client: id_of(index), asked, seen, done: Some(now) });
        if client.generator.queues() {
            self.take_own(index, observer);
        } else {
            let next = client.generator.after(now);
            self.expect(index, next);
        }
    }

    /// Reads bursts of the running client that arrived during its slice.
    fn take_own(&mut self, index: usize, observer: &mut impl Observer) {
        while let Some(own) = self.arrivals.iter().take_while(|one| one.at <= self.now).find(|one| one.index == index) {
            let own = *own;
            self.arrivals.remove(&own);
            self.arrive(&own, observer);
        }
    }

    fn finish(&mut self, client: ClientId, start: Time, done: Done, ended_early: bool, observer: &mut impl Observer) {
        let end = self.now;
        let Done { requests, bytes, last_request } = done;
        let still_ready = !self.clients[usize::from(client.0) - 1].tasks.is_empty();
        self.stock.served(client, start, end, still_ready);
        let service = Service { client, start, end, requests, bytes, last_request, still_ready, ended_early };
        self.tell(end, Fact::Served(service), observer);
        if let Some(is_on) =
            self.contention.served(&BusyTime { start, end, others_waited: false, another_waited: false }, || None)
        {
            self.tell(end, Fact::Contention { is_on }, observer);
        }
        if let Some(state) = self.scheduler.reservation(client) {
            observer.record(Event { at: end, what: Entry::budget(client, &state) });
        }
        if let Some(until) = self.scheduler.next_request_of(client, end) {
            self.wait_for(client, until);
        }
    }

    /// Waits for the next request of a compositor or window manager, until `until` or until a reserved client arrives.
    fn wait_for(&mut self, client: ClientId, until: Time) {
        let is_preferred = |other: ClientId| other == client || self.scheduler.reservation(other).is_some();
        let next =
            self.arrivals.iter().find(|arrival| is_preferred(id_of(arrival.index))).map_or(Time::NEVER, |one| one.at);
        self.now = until.min(next.max(self.now));
        self.contention.waited(self.now);
    }
}
