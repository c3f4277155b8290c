// SPDX-License-Identifier: MIT
//! The engine reports events in the server to the scheduler, and turns the scheduler's decisions into actions.
//!
//! For each decision, after the server has polled ([`Engine::wakeup`], then [`Engine::decide`]), the engine lists the
//! ready clients, asks the scheduler, and lets the host serve the choice. Before the server polls again
//! ([`Engine::block`]), the engine reports what was served. The server always makes these calls before it chooses the
//! next client to serve.
//!
//! Invariants: a client is `linked` if and only if it was ready in the last round, and `held` if and only if the host
//! holds it back on our request.

mod clients;
mod contention;
mod desktop;
mod dormant;
mod entry;
mod exposing;
mod grouping;
mod loan;
mod notify;
mod ready;
mod running;
mod settings;
mod slots;

pub use settings::Target;
pub use slots::{RESOURCE_ID_BITS, Slot};

use crate::mechanism::action::Action;
use crate::mechanism::departed::Departed;
use crate::mechanism::fault::{Fault, FaultCounter};
use crate::mechanism::groups::Groups;
use crate::mechanism::host::{FinishedRest, Host, Work};
use crate::mechanism::longest::{ProcessorTime, RequestRanking};
use crate::mechanism::origins::{DeclaredOrigins, SettingOrigins};
use crate::mechanism::owed_answers::OwedAnswers;
use crate::mechanism::roles::Roles;
use crate::mechanism::settings::{FaultPlace, Settings};
use crate::mechanism::traced_scheduler::TracedScheduler;
use contention::ContentionState;
use dormant::Dormancy;
use running::{RunningSlice, timed_end};
use std::collections::VecDeque;
use xqos_abi::NotifyKind;
use xqos_core::{Choice, ClientId, Fact, FactOutcome, Pacing, PolicyKind, Scheduler, Service, Slice, Time};

/// The maximum charge for a slice without a complete request: the server may have spent the time on input.
const READING_NS: u64 = 50_000;
/// One decision starts to watch at most this many clients. The next decision continues with the remaining ones.
const WATCHED_AT_ONCE: usize = 64;
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub started: Time,
    pub busy_ns: u64,
    pub decisions: u64,
    pub early_ends: u64,
}

#[derive(Debug)]
pub struct Engine<H> {
    pub host: H,
    /// The time of the call that is being handled ([`Engine::at`]).
    pub now: Time,
    /// The actions that the host must carry out next, in this order.
    pub actions: VecDeque<Action>,
    pub scheduler: TracedScheduler,
    pub totals: Totals,
    slots: Vec<Option<Slot>>,
    /// The number of resource ids per client; 0 before the first client connects.
    ids_of_a_client: u32,
    ready: Vec<ClientId>,
    linked: usize,
    round: u32,
    running: Option<RunningSlice>,
    last_served: Option<ClientId>,
    wake_at: Time,
    /// The server waits until then for the next request of a compositor or window manager.
    waits_until: Option<Time>,
    server_known: bool,
    /// The event mask of each client that selected events.
    listeners: Vec<(ClientId, u32)>,
    pub longest: RequestRanking,
    pub departed: Departed,
    processor: ProcessorTime,
    contention: ContentionState,
    dormancy: Dormancy,
    /// The log names a client that holds the server grab for longer than this; 0 disables it.
    grab_limit_ns: u64,
    grab_reported: bool,
    /// The client that holds a long grab. Meanwhile, xqos watches the waiting clients to measure their waits.
    grab_watched: Option<ClientId>,
    pub groups: Groups,
    declared_origins: DeclaredOrigins,
    /// The origins of the server's own settings.
    origins: SettingOrigins,
    roles: Roles,
    poll_roots_at: Time,
    /// Clients that must answer an Expose or input. Recorded only while a client listens for these events.
    owed_answers: OwedAnswers,
    /// The pacing set for all clients. If it is off, the scheduler may still pace some clients.
    pub pacing: Pacing,
    /// The client to hold back when its slice ends, because it uncovers windows of other clients.
    to_hold: Option<ClientId>,
    /// The client that counts as exposing from the end of its slice on, because it marked itself.
    marked: Option<ClientId>,
    /// The number of times that a client was held back because it uncovered others.
    pub holds: u32,
    /// The client that lends the server a real-time priority, and the limit to restore afterwards.
    lender: Option<(ClientId, u32)>,
    faults: FaultCounter,
    /// The time after which a long request is cut to serve other clients; 0: requests are not cut.
    pub part_ns: u64,
    /// The rests of cut requests that were executed in the running slice.
    rests: Vec<Service>,
}

/// The result of a call from the server.
pub type HookResult<H> = Result<(), Fault<<H as Host>::Error>>;

impl<H: Host> Engine<H> {
    pub fn new(host: H, settings: &Settings, started: Time) -> Engine<H> {
        let mut policy = settings.policy;
        let mut actions = VecDeque::new();
        if policy == PolicyKind::Classic && !host.sees_each_request() {
            policy = PolicyKind::Fair;
            let used = policy.name();
            actions
                .push_back(Action::Log(format!("policy classic cannot count requests on this server; {used} is used")));
        }
        let mut scheduler = Scheduler::new(policy, settings.parameters);
        scheduler.handle(started, Fact::DesktopShare { ppm: settings.desktop_share_ppm });
        let contention = ContentionState::new(settings.contention, started);
        scheduler.handle(started, Fact::Contention { is_on: contention.is_on() });
        Engine {
            host,
            now: started,
            actions,
            scheduler: TracedScheduler::new(scheduler),
            totals: Totals { started, ..Totals::default() },
            slots: Vec::new(),
            ids_of_a_client: 0,
            ready: Vec::new(),
            linked: 0,
            round: 0,
            running: None,
            last_served: None,
            wake_at: Time::NEVER,
            waits_until: None,
            server_known: false,
            listeners: Vec::new(),
            longest: RequestRanking::default(),
            departed: Departed::default(),
            processor: ProcessorTime::default(),
            contention,
            dormancy: Dormancy::default(),
            grab_limit_ns: settings.grab_limit_ns,
            grab_reported: false,
            grab_watched: None,
            groups: Groups::new(settings.grouping),
            declared_origins: DeclaredOrigins::default(),
            origins: SettingOrigins::default(),
            roles: Roles::default(),
            poll_roots_at: Time(0),
            owed_answers: OwedAnswers::default(),
            pacing: Pacing::default(),
            to_hold: None,
            marked: None,
            holds: 0,
            lender: None,
            faults: FaultCounter::new(settings.fault),
            part_ns: settings.part_ns,
            rests: Vec::new(),
        }
    }

    /// Sets the time (CLOCK_MONOTONIC) of the call that follows. The mechanism reads no clock.
    pub fn at(&mut self, now: Time) -> &mut Engine<H> {
        self.now = now;
        self
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub fn log(&mut self, line: String) {
        self.act(Action::Log(line));
    }

    /// Returns the host, after [`step_back`](Self::step_back).
    #[cfg(test)]
    pub fn into_host(self) -> H {
        self.host
    }

    /// Undoes every change that the server would notice, except those of the host. Can be called in any state.
    pub fn step_back(&mut self) {
        self.awaken();
        self.scheduler.trace.close(self.now);
        self.end_loan();
        for id in self.ids() {
            if self.slot_mut(id).is_some_and(|slot| std::mem::take(&mut slot.held)) {
                self.act(Action::Resume(id));
            }
        }
    }

    // Decisions.

    /// Called before the server polls. Ends the slice.
    pub fn block(&mut self) -> HookResult<H> {
        self.faults.pass(FaultPlace::Block)?;
        if let Some(running) = self.running {
            self.end_slice();
            if let Choice::Client(id, _) = running.choice {
                self.wait_for_next_request(id);
            }
        }
        if !self.dormancy.is_on() {
            self.program_wakeup();
        }
        Ok(())
    }

    /// Called after the server has polled. Ends holds that are over.
    pub fn wakeup(&mut self) -> HookResult<H> {
        self.faults.pass(FaultPlace::Wakeup)?;
        self.faults.pass(FaultPlace::Check)?;
        let now = self.now;
        if self.dormancy.is_on() {
            self.poll_root_windows(now);
            return Ok(());
        }
        if let Some(until) = self.waits_until.take() {
            self.contention.waited(until.min(now));
        }
        loop {
            match self.scheduler.handle(now, Fact::Replenish) {
                FactOutcome::Resumed(client) => self.sync_hold(client),
                FactOutcome::GroupResumed(group) => self.group_resumed(group),
                _ => break,
            }
        }
        self.watch_grab(now);
        self.poll_root_windows(now);
        Ok(())
    }

    /// Called after `wakeup` with the same time, once its actions are carried out. Decides which client is served next.
    pub fn decide(&mut self) -> HookResult<H> {
        let now = self.now;
        self.ready.clear();
        self.host.ready(&mut self.ready)?;
        if self.doze(now) {
            return Ok(());
        }
        self.note_ready(now);
        let slice = self.scheduler.decide(now);
        if self.lender.is_some() {
            self.raise_or_lower(slice.as_ref(), now);
        }
        if let Some(slice) = slice {
            self.begin_slice(&slice, now);
        }
        Ok(())
    }

    pub fn server_is_known(&mut self, server: &str) {
        self.server_known = true;
        self.observe_requests();
        self.act(Action::Cut { part_ns: self.part_ns });
        let (policy, version) = (self.scheduler.policy().name(), env!("CARGO_PKG_VERSION"));
        self.log(format!("version {version} serves this server ({server}); policy {policy}"));
    }

    fn begin_slice(&mut self, slice: &Slice, now: Time) {
        self.totals.decisions += 1;
        self.act(Action::Serve { slice: *slice, at: now });
        let timed = timed_end(slice, now, self.is_capped(slice));
        let until = if self.host.ends_slices_itself() { timed } else { slice.until };
        let whole_at = if timed == until { Time::NEVER } else { until };
        let is_traced = self.scheduler.trace.is_on();
        let read_ns = self.processor.slice_begins(now, self.totals.busy_ns, is_traced, || self.host.cpu_ns());
        let cpu_ns = is_traced.then_some(read_ns);
        self.running = Some(RunningSlice { whole_at, cpu_ns, ..self.new_slice(slice.choice, now) });
        let to_watch = self.scheduler.next_to_watch(now);
        let server_fds_may_preempt = self.server_fds_may_preempt(slice, now);
        if until != Time::NEVER || self.scheduler.watched_count() > 0 || server_fds_may_preempt {
            self.act(Action::Watch { contest: slice.contest, until });
        }
        if server_fds_may_preempt {
            self.act(Action::WatchServer { at: now });
        }
        let mut next = to_watch;
        for _ in 0..WATCHED_AT_ONCE {
            let Some((id, rank)) = next else { break };
            self.watch_client(id, rank);
            next = self.scheduler.next_to_watch(now);
        }
        // The scheduler counts each client that it returns as watched, so watch the last one as well.
        if let Some((id, rank)) = next {
            self.watch_client(id, rank);
        }
    }

    fn end_slice(&mut self) {
        let now = self.now;
        let Some(running) = self.running.take() else { return };
        let marked = self.marked.take();
        let overran_ns = self.host.unwatch().filter(|_| now < running.whole_at);
        if let Some(overran_ns) = overran_ns {
            self.totals.early_ends += 1;
            self.scheduler.handle(now, Fact::Overran { ns: overran_ns });
        }
        let Some(work) = self.host.finish().filter(|work| self.slot(work.client).is_some()) else { return };
        let (id, start) = (work.client, running.start);
        let is_reading = work.requests == 0 && work.still_ready && !work.is_cut && work.in_parts_ns.is_none();
        let end = if is_reading { now.min(start.after(READING_NS)) } else { now };
        let end = self.charge_rests(start, end);
        self.totals.busy_ns += end.since(start);
        self.measure_contention(&running.busy_until(end));
        self.last_served = Some(id);
        if self.dormancy.is_on() && self.dozed(&work, start, end) {
            return;
        }
        let (Work { requests, bytes, last_request, still_ready, .. }, ended_early) = (work, overran_ns.is_some());
        let service = Service { client: id, start, end, requests, bytes, last_request, still_ready, ended_early };
        self.note_processor(&service, running.cpu_ns);
        self.scheduler.handle(end, Fact::Served(service));
        while let Some(rest) = self.rests.pop() {
            self.totals.busy_ns += rest.end.since(rest.start);
            self.scheduler.handle(rest.end, Fact::Served(rest));
        }
        if work.is_cut {
            if let Some(slot) = self.slot_mut(id) {
                slot.cuts = slot.cuts.wrapping_add(1);
            }
        }
        if requests == 1 && !work.is_cut || work.in_parts_ns.is_some() {
            self.note_longest(id, &service, work.in_parts_ns);
        }
        if !still_ready {
            self.set_linked(id, false);
        }
        if self.scheduler.reservation_count() > 0 {
            self.sync_hold(id);
            self.notify_depletion(id, now);
            // If no other client is busy, no further slice begins in which this client would be watched.
            if self.lender.is_some() && !still_ready {
                self.watch_client(id, self.scheduler.rank_on_arrival(id, now));
            }
        }
        // Check the whole group: a compositor's slice also uses up the cap of the other clients in its group.
        let is_used_up = self.slot(id).is_some_and(|slot| self.scheduler.is_cap_used_up(slot.group));
        if is_used_up || self.is_held_with_group(id) {
            self.sync_holds();
        }
        if let Some(marked) = marked {
            self.exposed(marked, None);
        }
        if let Some(held) = self.to_hold.take() {
            self.sync_hold(held);
        }
        if !still_ready && requests > 0 && !self.scheduler.is_exposing(id, now) && self.owed_answers.end(id) {
            self.notify(NotifyKind::Answered, id, 0);
        }
    }

    /// Charges the rests of cut requests that were executed in this slice to their clients. Returns the end of the time
    /// that is left for the slice's own client.
    fn charge_rests(&mut self, start: Time, end: Time) -> Time {
        let mut own_end = end;
        while let Some(FinishedRest { client, request, ns }) = self.host.take_finished() {
            let begin = Time(own_end.0.saturating_sub(ns).max(start.0));
            let rest = Service {
                requests: 1,
                last_request: request,
                still_ready: true,
                ..Service::new(client, begin, own_end)
            };
            self.rests.push(rest);
            own_end = begin;
        }
        own_end
    }
}
