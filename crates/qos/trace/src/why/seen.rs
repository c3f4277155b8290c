// SPDX-License-Identifier: MIT
//! Collects the candidates for the worst wait in one pass over the records, then chooses one and finds its cause.

use super::blocks::{Block, Blocker, Blocks};
use super::links::{self, Links};
use super::processor::Processor;
use super::{Cause, Diagnosis, Party, Ran, Served, Wait, WaitQuery, shared_ns};
use crate::model::{self, Burst, Client, Model};
use crate::names::Names;
use std::collections::BTreeMap;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{Fact, Service, Time};

#[derive(Clone, Copy, Debug)]
struct SeenSlice {
    key: usize,
    span: (Time, Time),
    requests: u32,
    request: u32,
    /// Time of the slice in which the server had no processor.
    absent_ns: u64,
}

#[derive(Debug)]
pub struct Seen<'a> {
    question: &'a WaitQuery,
    names: &'a Names,
    model: Model,
    blocks: Blocks,
    links: Links,
    processor: Processor,
    slices: Vec<SeenSlice>,
    worked_ns: Option<u64>,
    /// The measured absences ([`Question::absences`]) that have not been reached yet.
    absences: &'a [(Time, Time)],
    /// The last decision, which proves that the server ran.
    decided: Time,
    light: Option<Burst>,
    busy: Option<Burst>,
    block: Option<Block>,
}

/// A client of the process that asks, or of xqos itself.
pub fn is_own(client: &Client, asker: u32) -> bool {
    (asker != 0 && client.identity.pid == asker) || client.identity.program == "xqos"
}

/// True if a slice probably consists of one long request. The server ends a slice only between requests, so at most the
/// last request is long.
fn is_long(requests: u32, ns: u64) -> bool {
    const LONG_NS: u64 = 5_000_000;
    requests <= 1 || ns / u64::from(requests) >= LONG_NS
}

impl<'a> Seen<'a> {
    pub fn new(question: &'a WaitQuery, names: &'a Names) -> Seen<'a> {
        Seen {
            question,
            names,
            model: Model::new(),
            blocks: Blocks::default(),
            links: Links::default(),
            processor: Processor::default(),
            slices: Vec::new(),
            worked_ns: None,
            absences: &question.absences,
            decided: Time(0),
            light: None,
            busy: None,
            block: None,
        }
    }

    pub fn take(&mut self, event: &Event) {
        let burst = self.model.take(event);
        if let Some((from, to)) = self.processor.take(event) {
            self.blocks.absent(from, to);
        }
        while let Some((_, rest)) = self.absences.split_first().filter(|(absence, _)| absence.1 <= event.at) {
            self.offer_absence(event.at);
            self.absences = rest;
        }
        if matches!(event.what, Entry::Dispatch { .. }) {
            self.offer_absence(event.at);
            self.decided = event.at;
        }
        let block = self.blocks.take(event, &self.model);
        block.into_iter().for_each(|block| self.offer(block));
        self.follow(event);
        burst.into_iter().for_each(|burst| self.consider(burst));
    }

    /// Offers the part of the current measured absence that lies between two decisions. An absence may include times
    /// with a processor, if the process that measured it had no processor either.
    fn offer_absence(&mut self, now: Time) {
        let Some(&(from, to)) = self.absences.first() else { return };
        let (from, to) = (from.max(self.decided), to.min(now));
        if from < to {
            self.blocks.absent(from, to);
        }
    }

    /// Records slices, and the activity of clients after replies.
    fn follow(&mut self, event: &Event) {
        match event.what {
            Entry::Processor { ns, .. } => self.worked_ns = Some(ns),
            Entry::Fact(Fact::Served(Service { client, start, end, requests, last_request, still_ready, .. })) => {
                let Some(key) = self.model.key(client) else { return };
                let span = (start.min(end), end);
                let absent_ns = self.worked_ns.take().map_or(0, |ns| span.1.since(span.0).saturating_sub(ns));
                self.slices.push(SeenSlice { key, span, requests, request: last_request, absent_ns });
                let identity = &self.model.clients()[key].identity;
                if !still_ready && requests > 0 && links::is_remote(identity.pid, &identity.program) {
                    self.links.served(key, &self.names.of(last_request), end);
                }
            }
            Entry::Fact(Fact::Arrived { client }) => {
                self.model.key(client).into_iter().for_each(|key| self.links.arrived(key, event.at));
            }
            Entry::Fact(Fact::Input { client }) => {
                self.model.key(client).into_iter().for_each(|key| self.links.input(key));
            }
            _ => {}
        }
    }

    fn consider(&mut self, burst: Burst) {
        let Some(client) = self.model.clients().get(burst.key).filter(|&one| !is_own(one, self.question.asker)) else {
            return;
        };
        let worst = if client.is_busy() { &mut self.busy } else { &mut self.light };
        if burst.waited_ns > worst.as_ref().map_or(0, |worst| worst.waited_ns) {
            *worst = Some(burst);
        }
    }

    fn offer(&mut self, mut block: Block) {
        let clients = self.model.clients();
        block.waiting.retain(|&key| !is_own(&clients[key], self.question.asker));
        let is_likely = block.to >= self.model.now || block.by == Blocker::NoProcessor;
        let counts = !block.waiting.is_empty() || is_likely && block.ns() > self.question.limit_ns;
        if counts && self.block.as_ref().is_none_or(|worst| worst.ns() < block.ns()) {
            self.block = Some(block);
        }
    }

    pub fn conclude(mut self) -> Diagnosis {
        let now = self.model.now;
        if let Some(Event { at, what: Entry::Fact(Fact::Served(service)) }) = self.model.unfinished() {
            self.take(&Event { at, what: Entry::Fact(Fact::Served(Service { requests: 1, ..service })) });
        }
        let last = std::mem::take(&mut self.blocks).finish(now);
        last.into_iter().for_each(|block| self.offer(block));
        self.model.end_bursts().into_iter().for_each(|burst| self.consider(burst));
        let worst = self.choose();
        let (served, absent_ns) = worst.as_ref().map_or_else(Default::default, |(wait, _)| self.meanwhile(wait));
        Diagnosis {
            worst,
            served,
            absent_ns,
            span_ns: self.model.span_ns(),
            lost: self.model.lost,
            kernel: self.model.kernel,
            policy: self.model.policy,
        }
    }

    fn choose(&mut self) -> Option<(Wait, Cause)> {
        let limit_ns = self.question.limit_ns;
        let is_long = |ns: u64| ns > limit_ns;
        let burst_ns = self.light.as_ref().map_or(0, |burst| burst.waited_ns);
        // Prefer the burst, which names its client with certainty, unless the block is twice as long.
        let block = self.block.take().filter(|block| block.ns() / 2 > burst_ns);
        let waited = match (block, self.light.take()) {
            (Some(block), _) => Some(self.of_block(block)),
            (None, light) => light.map(|burst| self.of_burst(burst, false)),
        };
        let link = self.of_link().filter(|(wait, _)| is_long(wait.ns));
        // Over a slow link, a client seems to wait while the rest of its request is on the way.
        let is_of_link = |(wait, cause): &(Wait, Cause)| {
            matches!(cause, Cause::Server { .. }) && link.as_ref().is_some_and(|(of_link, _)| of_link.who == wait.who)
        };
        if waited.as_ref().is_some_and(|waited| is_long(waited.0.ns) && !is_of_link(waited)) {
            return waited;
        }
        let busy = self.busy.take().filter(|burst| is_long(burst.waited_ns) || waited.is_none());
        link.or_else(|| busy.map(|burst| self.of_burst(burst, true))).or(waited)
    }

    fn of_link(&mut self) -> Option<(Wait, Cause)> {
        let clients = self.model.clients();
        let is_remote = |key: usize| links::is_remote(clients[key].identity.pid, &clients[key].identity.program);
        let (key, stretch) = std::mem::take(&mut self.links).longest(is_remote)?;
        let (round_trips, median_ns) = (stretch.round_trips(), stretch.median_ns());
        let (from, to, ns) = (stretch.from, stretch.to, stretch.ns);
        let wait = Wait { who: vec![self.party(key)], from, to, ns, is_busy: false, is_at_most: false };
        Some((wait, Cause::SlowLink { round_trips, median_ns }))
    }

    fn of_block(&self, block: Block) -> (Wait, Cause) {
        let (span, ns) = ((block.from, block.to), block.ns());
        let cause = match block.by {
            _ if self.absent_ns(span) > ns / 2 => self.no_processor(self.absent_ns(span), span),
            Blocker::NoProcessor => self.no_processor(ns, span),
            Blocker::Grab { key } => Cause::Grab { who: self.party(key), ns },
            Blocker::Slice { key, requests, request } if is_long(requests, ns) => self.long_request(key, request, ns),
            Blocker::Slice { .. } => Cause::Busy { clients: 1, ns },
        };
        let who = block.waiting.iter().map(|&key| self.party(key)).collect();
        (Wait { who, from: span.0, to: span.1, ns, is_busy: false, is_at_most: true }, cause)
    }

    fn of_burst(&self, burst: Burst, is_busy: bool) -> (Wait, Cause) {
        let span = (burst.activation, burst.end);
        let sum = |is: fn(&model::Cause) -> bool| -> u64 {
            burst.causes.iter().filter(|(cause, _)| is(cause)).map(|(_, ns)| ns).sum()
        };
        let grab_ns = sum(|cause| matches!(cause, model::Cause::Grab { .. }));
        let held_ns = sum(|cause| matches!(cause, model::Cause::HeldBack));
        let known_ns = sum(|cause| matches!(cause, model::Cause::Kernel));
        let elsewhere_ns = self.absent_elsewhere_ns(span);
        let absent_ns = known_ns.max(elsewhere_ns.min(burst.waited_ns));
        let unknown_ns = absent_ns.saturating_sub(known_ns);
        // The model has counted `unknown_ns` as time of other clients or of the server.
        let clients_ns = sum(|cause| matches!(cause, model::Cause::Client { .. }));
        let server_ns = sum(|cause| matches!(cause, model::Cause::Server));
        let server_ns = server_ns.saturating_sub(unknown_ns.saturating_sub(clients_ns));
        let clients_ns = clients_ns.saturating_sub(unknown_ns);
        let most_ns = grab_ns.max(held_ns).max(absent_ns).max(clients_ns).max(server_ns);
        let cause = match most_ns {
            0 => Cause::Server { ns: burst.waited_ns },
            ns if ns == grab_ns => self.grab(&burst, ns),
            ns if ns == absent_ns => self.no_processor(ns, span),
            ns if ns == held_ns => Cause::HeldBack { ns },
            ns if ns == clients_ns => self.requests(&burst, ns, span),
            ns => Cause::Server { ns },
        };
        let (from, to) = span;
        let who = vec![self.party(burst.key)];
        (Wait { who, from, to, ns: burst.waited_ns, is_busy, is_at_most: false }, cause)
    }

    fn grab(&self, burst: &Burst, ns: u64) -> Cause {
        let holder = burst.causes.iter().find_map(|(cause, _)| match cause {
            model::Cause::Grab { key } => Some(self.party(*key)),
            _ => None,
        });
        Cause::Grab { who: holder.unwrap_or_default(), ns }
    }

    /// The requests of other clients: one long request if it took at least half of the time, otherwise many.
    fn requests(&self, burst: &Burst, clients_ns: u64, span: (Time, Time)) -> Cause {
        let of_others = || self.slices.iter().filter(|slice| slice.key != burst.key);
        let others = || of_others().map(move |slice| (slice, shared_ns(slice.span, span)));
        let longest = others().max_by_key(|&(_, ns)| ns).filter(|&(_, ns)| ns >= clients_ns.div_ceil(2));
        if let Some((&SeenSlice { key, requests, request, span: (start, end), .. }, _)) = longest {
            if is_long(requests, end.since(start)) {
                return self.long_request(key, request, end.since(start));
            }
        }
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        others().for_each(|(slice, ns)| *sums.entry(slice.key).or_default() += ns);
        let clients = sums.values().filter(|&&ns| ns > 0 && ns >= clients_ns / 100).count();
        // Elapsed time, like the sum of each client.
        let ns = sums.values().sum::<u64>().max(clients_ns).min(burst.waited_ns);
        Cause::Busy { clients, ns }
    }

    fn long_request(&self, key: usize, request: u32, ns: u64) -> Cause {
        let request = if request == 0 { String::new() } else { self.names.of(request) };
        Cause::LongRequest { who: self.party(key), request, ns }
    }

    fn no_processor(&self, ns: u64, span: (Time, Time)) -> Cause {
        let mut ran: Vec<Ran> = self.processor.ran_instead(span, &self.model);
        ran.truncate(3);
        Cause::NoProcessor { ns, ran }
    }

    /// The time in which the server had no processor: the maximum of the kernel's records, the measured absences and
    /// the slices, because each may be incomplete.
    fn absent_ns(&self, span: (Time, Time)) -> u64 {
        self.processor.absent_ns(span).max(self.absent_elsewhere_ns(span))
    }

    /// The same without the kernel's records.
    fn absent_elsewhere_ns(&self, span: (Time, Time)) -> u64 {
        let of_question = self.question.absences.iter().map(|&absence| shared_ns(absence, span)).sum::<u64>();
        let within = |slice: &SeenSlice| slice.absent_ns.min(shared_ns(slice.span, span));
        of_question.max(self.slices.iter().map(within).sum())
    }

    /// The other clients that were served during the wait, and the time without a processor.
    fn meanwhile(&self, wait: &Wait) -> (Vec<Served>, u64) {
        let span = (wait.from, wait.to);
        let mut sums: BTreeMap<usize, (u64, u64, BTreeMap<u32, u64>)> = BTreeMap::new();
        for slice in &self.slices {
            let ns = shared_ns(slice.span, span);
            if ns == 0 {
                continue;
            }
            let (all_ns, requests, kinds) = sums.entry(slice.key).or_default();
            *all_ns += ns;
            *requests += u64::from(slice.requests);
            *kinds.entry(slice.request).or_default() += ns;
        }
        let is_waiting = |key: usize| wait.who.contains(&self.party(key));
        let served = |(key, (ns, requests, kinds)): (usize, (u64, u64, BTreeMap<u32, u64>))| {
            let request = kinds.into_iter().max_by_key(|&(_, ns)| ns).map_or(0, |(request, _)| request);
            let request = if request == 0 { String::new() } else { self.names.of(request) };
            Served { who: self.party(key), ns, requests, request }
        };
        let mut all: Vec<Served> = sums.into_iter().filter(|&(key, _)| !is_waiting(key)).map(served).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.ns));
        (all, self.absent_ns(span))
    }

    fn party(&self, key: usize) -> Party {
        let client = &self.model.clients()[key];
        let (pid, base, role) = (client.identity.pid, client.identity.base, client.role);
        Party { name: self.model.name(key), pid, base, role }
    }
}
