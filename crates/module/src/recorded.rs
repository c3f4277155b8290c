//! The scheduler with its trace: each call that changes it is written down, so that replay can give it again.
//!
//! Reading goes straight through ([`std::ops::Deref`]); changing is only possible by the methods here, which is what
//! makes a trace complete.

use crate::tracer::{self, note};
use std::ops::Deref;
use xqos_abi::trace::{Reason, What};
use xqos_abi::us;
use xqos_core::{
    Admission, ClientId, Pacing, Parameters, PolicyKind, Reservation, Role, Scheduler, Service, Slice, Supply, Time,
};

#[derive(Debug)]
pub struct Recorded {
    scheduler: Scheduler,
    /// An overrun was written down, and no decision since.
    overran: bool,
}

/// What an Expose has changed.
#[derive(Clone, Copy, Debug)]
pub struct Exposed {
    /// Its client counts as exposing from now on.
    pub is_new: bool,
    /// Who waits for it from now on, at the end of its slice.
    pub held: Option<ClientId>,
}

impl Deref for Recorded {
    type Target = Scheduler;

    fn deref(&self) -> &Scheduler {
        &self.scheduler
    }
}

impl Recorded {
    pub fn new(scheduler: Scheduler) -> Recorded {
        Recorded { scheduler, overran: false }
    }

    // Facts.

    pub fn connected(&mut self, client: ClientId, descriptor: u32, now: Time) {
        note(now, What::Creation { client, descriptor });
        self.scheduler.connected(client, descriptor, now);
    }

    pub fn gone(&mut self, client: ClientId, now: Time) {
        note(now, What::Destruction { client });
        self.scheduler.gone(client, now);
    }

    pub fn arrived(&mut self, client: ClientId, at: Time) {
        let is_news = !self.scheduler.is_ready(client);
        self.scheduler.arrived(client, at);
        if is_news {
            note(at, What::Activation { client });
            self.note_budget(client, at);
        }
    }

    pub fn withdrawn(&mut self, client: ClientId, now: Time) {
        if self.scheduler.is_ready(client) {
            note(now, What::Withdrawal { client });
        }
        self.scheduler.withdrawn(client, now);
    }

    pub fn input(&mut self, client: ClientId, now: Time) {
        note(now, What::Input { client });
        self.scheduler.input(client, now);
    }

    pub fn exposed(&mut self, client: ClientId, cause: Option<ClientId>, now: Time) -> Exposed {
        note(now, What::Exposed { client, cause });
        let was_paced = cause.is_some_and(|cause| self.scheduler.paced_until(cause).is_some());
        let is_new = self.scheduler.exposed(client, cause, now);
        let hold = cause.filter(|_| !was_paced).and_then(|cause| Some((cause, self.scheduler.paced_until(cause)?)));
        if let Some((client, until)) = hold {
            note(now, What::Paced { client, until });
        }
        Exposed { is_new, held: hold.map(|(client, _)| client) }
    }

    pub fn made_work(&mut self, client: ClientId, now: Time) -> bool {
        let counts = self.scheduler.made_work(client);
        if counts {
            note(now, What::MadeWork { client });
        }
        counts
    }

    pub fn grabbed(&mut self, client: Option<ClientId>, now: Time) {
        note(now, What::Grab { client });
        self.scheduler.grabbed(client, now);
    }

    pub fn overran(&mut self, ns: u64, now: Time) {
        note(now, What::Overran { ns });
        self.overran = true;
        self.scheduler.overran(ns);
    }

    pub fn served(&mut self, service: &Service, ended_early: bool) {
        let Service { client, start, end, requests, bytes, last_request, still_ready } = *service;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        note(end, What::Served { client, still_ready, ended_early, requests, last_request, bytes, start });
        self.scheduler.served(service);
        self.note_budget(client, end);
    }

    // Decisions.

    pub fn replenish(&mut self, now: Time) -> Option<ClientId> {
        if self.scheduler.next_replenish().is_some_and(|at| at <= now) {
            note(now, What::Replenish);
        }
        let client = self.scheduler.replenish(now)?;
        self.note_budget(client, now);
        Some(client)
    }

    pub fn pick(&mut self, now: Time) -> Option<Slice> {
        let slice = self.scheduler.pick(now);
        match &slice {
            Some(slice) if tracer::is_on() => note(now, What::dispatch(slice, Reason::of(slice, &self.scheduler))),
            // Also a decision for nobody uses an overrun up.
            None if self.overran => note(now, What::Overran { ns: 0 }),
            _ => {}
        }
        self.overran = false;
        slice
    }

    pub fn next_to_watch(&mut self, now: Time) -> Option<ClientId> {
        self.scheduler.next_to_watch(now)
    }

    // Control.

    pub fn set_policy(&mut self, kind: PolicyKind, now: Time) {
        note(now, What::Policy { kind });
        self.scheduler.set_policy(kind, now);
    }

    pub fn set_parameters(&mut self, parameters: Parameters, now: Time) {
        let Parameters { slice_ns, timer_interval_ns, maximum_slice_ns, max_utilization_ppm, blocking_ns } = parameters;
        let (slice_us, timer_interval_us) = (us(slice_ns), us(timer_interval_ns));
        note(now, What::Intervals { slice_us, timer_interval_us, maximum_slice_us: us(maximum_slice_ns) });
        note(now, What::Limits { max_utilization_ppm, blocking_us: us(blocking_ns) });
        self.scheduler.set_parameters(parameters, now);
    }

    pub fn set_pacing(&mut self, pacing: Pacing, now: Time) {
        note(now, What::Pacing { limit_us: us(pacing.limit_ns), floor_us: us(pacing.floor_ns) });
        self.scheduler.set_pacing(pacing, now);
    }

    /// Nothing is written down where it is as before.
    pub fn set_role(&mut self, client: ClientId, role: Role, now: Time) {
        if role != self.scheduler.role(client) {
            note(now, What::Role { client, role });
            self.scheduler.set_role(client, role, now);
        }
    }

    pub fn set_desktop_share(&mut self, share_ppm: u32, now: Time) {
        note(now, What::Desktop { share_ppm });
        self.scheduler.set_desktop_share(share_ppm, now);
    }

    /// Nothing is written down where it is as before.
    pub fn set_supply(&mut self, supply: Supply, now: Time) {
        if supply != self.scheduler.supply() {
            note(now, What::Supply { budget_ns: supply.budget_ns, period_ns: supply.period_ns });
            self.scheduler.set_supply(supply);
        }
    }

    pub fn set_sync_priority(&mut self, client: ClientId, priority: i32, now: Time) {
        note(now, What::SyncPriority { client, priority });
        self.scheduler.set_sync_priority(client, priority, now);
    }

    pub fn set_weight(&mut self, client: ClientId, weight: u32, now: Time) {
        note(now, What::Weight { client, weight });
        self.scheduler.set_weight(client, weight, now);
    }

    pub fn set_fixed_priority(&mut self, client: ClientId, priority: i32, now: Time) {
        note(now, What::FixedPriority { client, priority });
        self.scheduler.set_fixed_priority(client, priority, now);
    }

    pub fn reserve(&mut self, client: ClientId, reservation: Reservation, now: Time) -> Option<Admission> {
        let admission = self.scheduler.reserve(client, reservation, now)?;
        let admitted = matches!(admission, Admission::Admitted(_));
        note(now, What::Reserve { client, reservation, admitted });
        self.note_budget(client, now);
        Some(admission)
    }

    pub fn clear_reservation(&mut self, client: ClientId, now: Time) -> bool {
        note(now, What::Clear { client });
        self.scheduler.clear_reservation(client, now)
    }

    /// For readers that do not compute it.
    fn note_budget(&self, client: ClientId, now: Time) {
        if !tracer::is_on() {
            return;
        }
        if let Some(state) = self.scheduler.reservation(client) {
            note(now, What::budget(client, &state));
        }
    }
}
