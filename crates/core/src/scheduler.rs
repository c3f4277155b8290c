//! The scheduler: reservations above any policy, one decision at a time.
//!
//! Each connected client is in exactly one place:
//!
//! | place | who | order |
//! |---|---|---|
//! | `reserved` | ready, with budget | scheduling deadline |
//! | `waiting` | ready, without reservation or with a depleted soft one | SYNC priority, then the policy's key |
//! | `desktop.ready` | the same, where the desktop rule holds for it ([`crate::desktop`]) | SYNC priority, then the time waited |
//! | `idle` | not ready, to be watched once somebody runs who could be cut short | how it would stand on arrival |
//! | none of them | not ready and watched at its present rank, or held back (depleted and hard, or paced) | - |
//!
//! and a depleted one is in `depleted` besides, by the time of its replenishment; one that is paced ([`crate::pacing`]) in
//! `paced`, by the end of its hold, and ready or not it waits in no queue. [`Scheduler::verify`] checks this.

mod control;
mod snapshot;
mod view;

use crate::admission;
use crate::blocking::Blocking;
use crate::desktop::{Desktop, RESTED_NS, Role};
use crate::heap::Heap;
use crate::pacing::{Hold, Mark, Pacing, SETTLING_NS};
use crate::policy::{Defence, Facts, Key, Policy, PolicyKind, Served};
use crate::{ClientId, Fact, Outcome, ReservationState, Supply, Time, Usage};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A slice longer than this is a hog's: somebody may have had to wait for it.
const HOG_SLICE_NS: u64 = 1_000_000;
/// A client whose last slice was one request, and then it waited, is believed to do so again, for at most so many times as
/// long: whose arrival would end the slice only later is not watched. Watching all of them, the server of a dozen clients
/// that ask and wait was woken for eight thousand arrivals a second that ended nothing.
const LIKELY_TIMES: u64 = 2;
/// For so long after a hog's slice idle clients are watched; without hogs nobody is, and nothing is paid.
const HOG_MEMORY_NS: u64 = 100_000_000;

/// What can be set while the scheduler runs. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Longest slice under `fair` and `fixed`.
    pub slice_ns: u64,
    /// Timer interval of `smart`: the length of a turn.
    pub timer_interval_ns: u64,
    /// Longest slice of a client alone under `smart`.
    pub maximum_slice_ns: u64,
    /// U of the admission test, millionths.
    pub max_utilization_ppm: u32,
    /// B of the admission test; 0: the one observed.
    pub blocking_ns: u64,
}

impl Default for Parameters {
    /// The stock server's intervals, and U = 0.9.
    fn default() -> Self {
        Parameters {
            slice_ns: 5_000_000,
            timer_interval_ns: 5_000_000,
            maximum_slice_ns: 15_000_000,
            max_utilization_ppm: 900_000,
            blocking_ns: 0,
        }
    }
}

/// SYNC priorities are so far apart in [`Rank::tier`]: desktop clients stand between two of them, at odd tiers.
const TIERS: i64 = 2;

/// From which account a slice is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// From the client's reservation.
    Reserved,
    /// Under the policy.
    BestEffort,
}

/// How a client stands in a contest for the running slice; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Reservations first, then SYNC priority; within one, desktop clients first.
    pub tier: i64,
    /// Within the tier: scheduling deadline, or what the policy says.
    pub key: i64,
}

impl Rank {
    const RESERVED: i64 = i64::MIN;
    /// Contests nothing.
    pub const LAST: Rank = Rank { tier: i64::MAX, key: i64::MAX };

    /// Clients without a role, of this SYNC priority.
    fn tier_of(sync_priority: i32) -> i64 {
        -TIERS * i64::from(sync_priority)
    }

    /// An idle client that works for others.
    fn is_desktop(&self) -> bool {
        *self != Rank::LAST && self.tier % TIERS != 0
    }

    /// Watched even when nobody hogs: a client with budget, or one that works for others.
    fn is_always_watched(&self) -> bool {
        self.tier == Rank::RESERVED || self.is_desktop()
    }
}

/// The running slice as arrivals see it. Plain data, so that a watcher can decide without asking the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contest {
    /// How the running client stood when the slice began.
    pub rank: Rank,
    /// When it began.
    pub start: Time,
    /// Its key grows by this many hundredths of a nanosecond for each nanosecond served.
    pub growth: u32,
    /// An arrival must be better by this much.
    pub margin: i64,
    /// From when on a client that works for others ends it.
    pub desktop_turn: Time,
}

impl Contest {
    /// Nobody's arrival ends a slice of this rank but that of a better tier.
    fn of(rank: Rank, start: Time) -> Contest {
        Contest { rank, start, growth: 0, margin: 0, desktop_turn: start }
    }

    /// From when on an arrival of this rank ends the slice; [`Time::NEVER`] where it does not.
    pub fn ends_for(&self, arrival: Rank) -> Time {
        if arrival.is_desktop() && arrival.tier < self.rank.tier {
            return self.desktop_turn;
        }
        if arrival.tier != self.rank.tier {
            return if arrival.tier < self.rank.tier { self.start } else { Time::NEVER };
        }
        let lead = arrival.key.saturating_add(self.margin).saturating_sub(self.rank.key);
        match (u64::try_from(lead), self.growth) {
            (Err(_), _) => self.start,
            (Ok(_), 0) => Time::NEVER,
            (Ok(lead), growth) => self.start.after(lead.saturating_mul(100) / u64::from(growth)),
        }
    }
}

/// Whom to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This client.
    Client(ClientId, Mode),
    /// Whomever the server's own scheduler picks: policy `stock`, or a server grab.
    Server,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whom to serve.
    pub choice: Choice,
    /// When to end it at the latest (at a request boundary).
    pub until: Time,
    /// End it after so many requests; 0: not limited.
    pub requests: u32,
    /// End it after so many bytes of requests; 0: not limited.
    pub bytes: u32,
    /// How it stands against arrivals.
    pub contest: Contest,
}

/// What happened in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Who ran.
    pub client: ClientId,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Requests executed.
    pub requests: u32,
    /// Bytes of requests, where the slice was limited by them; else 0.
    pub bytes: u64,
    /// The last request: major opcode + 65536 x minor opcode.
    pub last_request: u32,
    /// It has more to do.
    pub still_ready: bool,
}

#[derive(Debug)]
struct Client {
    facts: Facts,
    ready: bool,
    /// Since when it waits to be dispatched, while ready.
    waits_since: Time,
    idle_since: Time,
    role: Role,
    /// How long it was idle before it came, or for ever where it got input; 0 once it made work for a desktop client.
    rested_ns: u64,
    /// How long its next slice is at most, by its last one; at least 1, so that who wins at once is always watched.
    likely_ns: u64,
    /// Somebody watches its socket.
    watched: bool,
    reservation: Option<ReservationState>,
    /// The one before: what was used of it counts against the next.
    past_reservation: Option<ReservationState>,
    grabbed_at: Option<Time>,
    /// An Expose that it has to answer.
    exposing: Option<Mark>,
    /// It uncovered others, and waits for them.
    paced: Option<Hold>,
    /// When its last hold ended.
    resumed: Time,
    usage: Usage,
}

/// All clients, and who of them runs next.
#[derive(Debug)]
pub struct Scheduler {
    clients: Vec<Option<Client>>,
    connected: usize,
    policy: Box<dyn Policy>,
    parameters: Parameters,
    reserved: Heap<Time>,
    waiting: Heap<(i64, Key)>,
    idle: Heap<Rank>,
    depleted: Heap<Time>,
    paced: Heap<Time>,
    pacing: Pacing,
    desktop: Desktop,
    supply: Supply,
    running: Option<(ClientId, Mode)>,
    contest: Contest,
    until: Time,
    grab: Option<ClientId>,
    /// Clients that are watched.
    watched: usize,
    hogged: Option<Time>,
    blocking: Blocking,
    /// By how much the last slice overran; 0 where nothing was to end it.
    overran_ns: u64,
    reservations: usize,
    admitted_ppm: u32,
}

impl Client {
    /// Not to be served, but for the server grab.
    fn is_held_back(&self) -> bool {
        self.paced.is_some() || self.reservation.is_some_and(|state| state.depleted && state.reservation.hard)
    }
}

impl Scheduler {
    /// An empty server.
    pub fn new(policy: PolicyKind, parameters: Parameters) -> Self {
        Scheduler {
            clients: Vec::new(),
            connected: 0,
            policy: policy.build(&parameters),
            parameters,
            reserved: Heap::new(),
            waiting: Heap::new(),
            idle: Heap::new(),
            depleted: Heap::new(),
            paced: Heap::new(),
            pacing: Pacing::default(),
            desktop: Desktop::new(),
            supply: Supply::default(),
            running: None,
            contest: Contest::of(Rank::LAST, Time(0)),
            until: Time::NEVER,
            grab: None,
            watched: 0,
            hogged: None,
            blocking: Blocking::default(),
            overran_ns: 0,
            reservations: 0,
            admitted_ppm: 0,
        }
    }

    /// Takes a fact that happened at `now`.
    pub fn handle(&mut self, now: Time, fact: Fact) -> Outcome {
        match fact {
            Fact::Connected { client, descriptor } => self.connected(client, descriptor, now),
            Fact::Gone { client } => self.gone(client, now),
            Fact::Arrived { client } => self.arrived(client, now),
            Fact::Withdrawn { client } => self.withdrawn(client, now),
            Fact::Input { client } => self.input(client, now),
            Fact::Exposed { client, cause } => return Outcome::of(self.exposed(client, cause, now)),
            Fact::MadeWork { client } => return Outcome::of(self.made_work(client)),
            Fact::Grabbed { by } => self.grabbed(by, now),
            Fact::Overran { ns } => self.overran_ns = ns,
            Fact::Served(service) => self.served(&service),
            Fact::Replenish => return self.replenish(now).map_or(Outcome::None, Outcome::Resumed),
            Fact::Policy(kind) => self.set_policy(kind, now),
            Fact::Parameters(parameters) => self.set_parameters(parameters, now),
            Fact::Pacing(pacing) => self.set_pacing(pacing, now),
            Fact::Supply(supply) => self.supply = supply,
            Fact::DesktopShare { ppm } => self.set_desktop_share(ppm, now),
            Fact::SyncPriority { client, priority } => {
                self.change_facts(client, now, |facts| facts.sync_priority = priority);
            }
            Fact::Weight { client, weight } => self.change_facts(client, now, |facts| facts.weight = weight.max(1)),
            Fact::FixedPriority { client, priority } => {
                self.change_facts(client, now, |facts| facts.fixed_priority = priority);
            }
            Fact::Role { client, role } => self.set_role(client, role, now),
            Fact::Reserve { client, reservation } => {
                return self.reserve(client, reservation, now).map_or(Outcome::None, Outcome::Admission);
            }
            Fact::Release { client } => return Outcome::of(self.clear_reservation(client, now)),
        }
        Outcome::None
    }

    fn connected(&mut self, client: ClientId, descriptor: u32, now: Time) {
        self.gone(client, now);
        let slot = client.slot();
        if self.clients.len() <= slot {
            self.clients.resize_with(slot + 1, || None);
        }
        self.reserved.reserve(slot);
        self.waiting.reserve(slot);
        self.desktop.ready.reserve(slot);
        self.idle.reserve(slot);
        self.depleted.reserve(slot);
        self.paced.reserve(slot);
        let facts = Facts { descriptor, weight: 100, fixed_priority: 0, sync_priority: 0 };
        self.clients[slot] = Some(Client {
            facts,
            ready: false,
            waits_since: now,
            idle_since: now,
            role: Role::NONE,
            rested_ns: 0,
            likely_ns: u64::MAX,
            watched: false,
            reservation: None,
            past_reservation: None,
            grabbed_at: None,
            exposing: None,
            paced: None,
            resumed: Time(0),
            usage: Usage { connected: now, ..Usage::default() },
        });
        self.connected += 1;
        self.policy.join(client, &facts);
        self.file(client, now);
    }

    fn gone(&mut self, client: ClientId, now: Time) {
        if self.client(client).is_none() {
            return;
        }
        self.clear_reservation(client, now);
        self.set_role(client, Role::NONE, now);
        self.answered(client, now, 0);
        self.paced.remove(client);
        self.reserved.remove(client);
        self.waiting.remove(client);
        self.desktop.ready.remove(client);
        self.idle.remove(client);
        if self.grab == Some(client) {
            self.grab = None;
        }
        if self.running.is_some_and(|(running, _)| running == client) {
            self.running = None;
        }
        self.unwatch(client);
        self.clients[client.slot()] = None;
        self.connected -= 1;
    }

    fn arrived(&mut self, client: ClientId, at: Time) {
        let Some(record) = self.client_mut(client) else { return };
        if record.ready {
            return;
        }
        record.ready = true;
        record.waits_since = at;
        let idle_ns = at.since(record.idle_since);
        record.rested_ns = record.rested_ns.max(idle_ns);
        if let Some(state) = record.reservation.as_mut() {
            state.arrived(at);
        }
        self.policy.ready(client, idle_ns);
        self.unwatch(client);
        self.file(client, at);
    }

    fn withdrawn(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client_mut(client) else { return };
        if record.ready {
            record.ready = false;
            record.idle_since = now;
            self.file(client, now);
        }
    }

    fn input(&mut self, client: ClientId, now: Time) {
        if let Some(record) = self.client_mut(client) {
            record.rested_ns = u64::MAX;
            self.policy.noticed(client, true);
            self.file(client, now);
        }
    }

    fn exposed(&mut self, client: ClientId, cause: Option<ClientId>, now: Time) -> bool {
        let Some(record) = self.client(client) else { return false };
        let is_marked = record.exposing.is_some_and(|mark| now < mark.until);
        self.policy.noticed(client, false);
        self.file(client, now);
        if is_marked {
            return false;
        }
        let limit_ns = self.pacing.mark_ns();
        let before = self.client(client).and_then(|record| record.exposing);
        let behind = before.is_some_and(|mark| mark.leaves_behind(limit_ns, now));
        self.answered(client, now, 0);
        let cause = cause.filter(|&cause| cause != client && self.pacing.is_on());
        let holds = cause.and_then(|cause| Some((cause, self.hold(cause, now)?)));
        let until = self.pacing.marked_until(now);
        if let Some(record) = self.client_mut(client) {
            record.exposing = Some(Mark { until, holds, behind, caught_up: false });
        }
        true
    }

    fn made_work(&mut self, client: ClientId) -> bool {
        let is_rested = |record: &&mut Client| record.rested_ns >= RESTED_NS && !record.role.is_any();
        let Some(record) = self.client_mut(client).filter(is_rested) else { return false };
        record.rested_ns = 0;
        self.desktop.called();
        true
    }

    fn grabbed(&mut self, by: Option<ClientId>, now: Time) {
        if let Some(record) = self.grab.and_then(|client| self.client_mut(client)) {
            if let Some(since) = record.grabbed_at.take() {
                record.usage.grabbed_ns = record.usage.grabbed_ns.saturating_add(now.since(since));
            }
        }
        let by = by.filter(|&client| self.client(client).is_some());
        self.grab = by;
        if let Some(record) = by.and_then(|client| self.client_mut(client)) {
            record.grabbed_at = Some(now);
            record.usage.grabs += 1;
        }
    }

    fn served(&mut self, service: &Service) {
        let picked = self.running.take();
        let Some(record) = self.client_mut(service.client) else { return };
        let length_ns = service.end.since(service.start);
        let mode = match picked {
            Some((client, mode)) if client == service.client => mode,
            _ => Mode::BestEffort,
        };
        record.usage.waited(service.start.since(record.waits_since));
        record.usage.served(service, mode);
        record.waits_since = service.end;
        let asked_and_waits = service.requests == 1 && !service.still_ready;
        record.likely_ns = if asked_and_waits { length_ns.saturating_mul(LIKELY_TIMES).max(1) } else { u64::MAX };
        if !service.still_ready {
            record.ready = false;
            record.idle_since = service.end;
            record.rested_ns = 0;
        }
        let mut has_answered = !service.still_ready && service.requests > 0 && record.exposing.is_some();
        if let Some(mark) = record.exposing.as_mut().filter(|mark| has_answered && mark.behind && !mark.caught_up) {
            (mark.caught_up, has_answered) = (true, false);
        }
        if mode == Mode::Reserved {
            if let Some(state) = record.reservation.as_mut() {
                record.usage.misses += u32::from(state.misses(service.end));
                if state.charge(length_ns) {
                    let deadline = state.deadline;
                    record.usage.depletions += 1;
                    self.depleted.set(service.client, deadline);
                }
            }
        } else if !self.is_desktop(service.client) {
            let served = Served { length_ns, requests: service.requests, bytes: service.bytes };
            self.policy.served(service.client, &served);
        } else if self.others_wait() {
            self.desktop.served(service.start, service.end);
        }
        if length_ns > HOG_SLICE_NS {
            self.hogged = Some(service.end);
        }
        self.file(service.client, service.end);
        if has_answered {
            self.answered(service.client, service.end, SETTLING_NS);
        }
    }

    /// Lets one go on whose time has come.
    fn replenish(&mut self, now: Time) -> Option<ClientId> {
        if let Some((_, client)) = self.paced.peek().filter(|&(at, _)| at <= now) {
            self.let_go(client, now);
            return Some(client);
        }
        while let Some((at, client)) = self.depleted.peek().filter(|&(at, _)| at <= now) {
            let Some(state) = self.client_mut(client).and_then(|record| record.reservation.as_mut()) else {
                self.depleted.remove(client);
                continue;
            };
            debug_assert_eq!(state.deadline, at);
            if state.replenish(now) {
                self.depleted.remove(client);
                self.file(client, now);
                return Some(client);
            }
            let next = state.deadline;
            self.depleted.set(client, next);
        }
        None
    }

    // Decisions.

    /// Decides whom to serve now; `None` where nobody is ready.
    pub fn decide(&mut self, now: Time) -> Option<Slice> {
        self.running = None;
        let overran_ns = core::mem::take(&mut self.overran_ns);
        let mut slice = if self.grab.is_some() || (self.reserved.len() == 0 && !self.policy.decides()) {
            self.leave_to_server(now)?
        } else if let Some((deadline, client)) = self.reserved.peek() {
            self.pick_reserved(client, deadline, now)
        } else {
            match self.next_desktop(now) {
                Some(client) => self.pick_desktop(client, now),
                None => self.pick_best_effort(self.waiting.peek()?.1, now),
            }
        };
        if matches!(slice.choice, Choice::Client(_, Mode::Reserved)) && overran_ns > 0 {
            self.blocking.note(overran_ns, now);
        }
        // A client that is held back comes again: decide anew then.
        if let Some(at) = self.next_replenish() {
            slice.until = slice.until.min(at.max(now));
        }
        self.until = slice.until;
        self.contest = slice.contest;
        Some(slice)
    }

    /// The next idle client whose arrival would end the slice just picked early: its socket is to be watched, with
    /// [`rank_on_arrival`](Self::rank_on_arrival), until it arrives; it is named again when that may have changed. Without
    /// a hog only reserved clients are named, and beside a client that asks and waits only who wins soon enough.
    pub fn next_to_watch(&mut self, now: Time) -> Option<ClientId> {
        let (rank, client) = self.idle.peek()?;
        if !rank.is_always_watched() && !self.is_hogged(now) {
            return None;
        }
        let running = self.running.and_then(|(client, _)| self.client(client));
        let likely_ns = running.map_or(u64::MAX, |record| record.likely_ns);
        let slice_end = self.until.min(self.contest.start.after(likely_ns.min(self.parameters.slice_ns)));
        // Those after it in the queue may win sooner than one that works for others and has just had its turn.
        let comes_first = rank.is_desktop() && rank.tier < self.contest.rank.tier;
        let ends_at = if comes_first { self.contest.start } else { self.contest.ends_for(rank) };
        if ends_at >= slice_end {
            return None;
        }
        self.idle.remove(client);
        let was_watched = core::mem::replace(&mut self.client_mut(client)?.watched, true);
        self.watched += usize::from(!was_watched);
        Some(client)
    }

    /// Somebody had a long slice lately, so that others may have to wait.
    pub fn is_hogged(&self, now: Time) -> bool {
        self.hogged.is_some_and(|end| now.since(end) < HOG_MEMORY_NS)
    }

    /// How this client would contest a slice if it arrived now.
    pub fn rank_on_arrival(&self, client: ClientId, now: Time) -> Rank {
        let Some(record) = self.client(client) else { return Rank::LAST };
        let tier = self.tier(client);
        match &record.reservation {
            _ if record.paced.is_some() => Rank::LAST,
            Some(state) if !state.depleted || now >= state.deadline => {
                let key = i64::try_from(state.deadline_at_arrival(now).0).unwrap_or(i64::MAX);
                Rank { tier: Rank::RESERVED, key }
            }
            Some(state) if state.reservation.hard => Rank::LAST,
            _ if self.is_desktop(client) => Rank { tier, key: 0 },
            _ => match self.policy.challenge(client) {
                Some(key) => Rank { tier, key },
                None => Rank::LAST,
            },
        }
    }

    /// When [`Fact::Replenish`] has something to do next.
    pub fn next_replenish(&self) -> Option<Time> {
        let (budget, hold) = (self.depleted.peek(), self.paced.peek());
        [budget, hold].into_iter().flatten().map(|(at, _)| at).min()
    }

    /// True for a depleted hard client and for a paced one: not to be served until it is replenished or let go. Who holds
    /// the server grab is never held back, since everybody waits for it.
    pub fn is_held_back(&self, client: ClientId) -> bool {
        self.grab != Some(client) && self.client(client).is_some_and(Client::is_held_back)
    }

    /// Until when a paced client is held at most.
    pub fn paced_until(&self, client: ClientId) -> Option<Time> {
        Some(self.client(client)?.paced?.until)
    }

    /// True from an Expose until its answer, or until its limit.
    pub fn is_exposing(&self, client: ClientId, now: Time) -> bool {
        now < self.exposing_until(client)
    }

    /// The limit of a client's last Expose; 0 where that was answered.
    pub fn exposing_until(&self, client: ClientId) -> Time {
        self.client(client).and_then(|record| record.exposing).map_or(Time(0), |mark| mark.until)
    }

    // Inside.

    fn client(&self, client: ClientId) -> Option<&Client> {
        self.clients.get(client.slot())?.as_ref()
    }

    fn client_mut(&mut self, client: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(client.slot())?.as_mut()
    }

    /// Puts a client where it belongs by its present state.
    fn file(&mut self, client: ClientId, now: Time) {
        let Some(record) = self.client(client) else { return };
        let (ready, waits_since, is_desktop) = (record.ready, record.waits_since, self.is_desktop(client));
        let tier = Rank::tier_of(record.facts.sync_priority);
        let with_budget = record.reservation.filter(|state| !state.depleted && record.paced.is_none());
        let reserved_until = with_budget.map(|state| state.deadline);
        let held_back = record.is_held_back();
        match reserved_until.filter(|_| ready) {
            Some(deadline) => self.reserved.set(client, deadline),
            None => {
                self.reserved.remove(client);
            }
        }
        let is_waiting = ready && reserved_until.is_none() && !held_back;
        if is_waiting && !is_desktop {
            self.waiting.set(client, (tier, self.policy.key(client)));
        } else {
            self.waiting.remove(client);
        }
        if is_waiting && is_desktop {
            self.desktop.ready.set(client, (tier, waits_since));
        } else {
            self.desktop.ready.remove(client);
        }
        if ready {
            self.idle.remove(client);
        } else {
            // Also where it is watched already: its rank may have changed, and its watcher is to be told.
            let rank = self.rank_on_arrival(client, now);
            self.idle.set(client, rank);
        }
    }

    /// Holds a client that uncovers another one. Since when; `None` where it is not to be held.
    fn hold(&mut self, client: ClientId, now: Time) -> Option<Time> {
        let pacing = self.pacing;
        let record = self.client_mut(client).filter(|record| record.reservation.is_none())?;
        if let Some(hold) = record.paced.as_mut() {
            hold.awaited += 1;
            return Some(hold.since);
        }
        let Some(until) = pacing.held_until(record.resumed, now) else {
            record.resumed = now;
            return None;
        };
        record.paced = Some(Hold { since: now, until, awaited: 1 });
        self.paced.set(client, until);
        self.file(client, now);
        Some(now)
    }

    /// A client has redrawn, or will not; who waits for it goes on after `settling_ns`.
    fn answered(&mut self, client: ClientId, now: Time, settling_ns: u64) {
        let Some(mark) = self.client_mut(client).and_then(|record| record.exposing.take()) else { return };
        let Some((cause, since)) = mark.holds else { return };
        let hold = self.client_mut(cause).and_then(|record| record.paced.as_mut());
        let Some(hold) = hold.filter(|hold| hold.since == since && hold.awaited > 0) else { return };
        hold.awaited -= 1;
        if hold.awaited == 0 {
            self.release(cause, now.after(settling_ns));
        }
    }

    /// A paced client is let go at that time, if not earlier.
    fn release(&mut self, client: ClientId, at: Time) {
        if let Some(hold) = self.client_mut(client).and_then(|record| record.paced.as_mut()) {
            hold.until = hold.until.min(at);
            let until = hold.until;
            self.paced.set(client, until);
        }
    }

    /// The hold is over.
    fn let_go(&mut self, client: ClientId, now: Time) {
        self.paced.remove(client);
        if let Some(record) = self.client_mut(client) {
            (record.paced, record.resumed) = (None, now);
        }
        self.file(client, now);
    }

    /// It has arrived, or is gone.
    fn unwatch(&mut self, client: ClientId) {
        if let Some(record) = self.client_mut(client) {
            let was_watched = core::mem::take(&mut record.watched);
            self.watched -= usize::from(was_watched);
        }
    }

    /// For a new policy: its state of each client.
    fn rejoin(&mut self, now: Time) {
        for slot in 0..self.clients.len() {
            let client = ClientId(slot as u16);
            if let Some(record) = &self.clients[slot] {
                self.policy.join(client, &record.facts);
                self.file(client, now);
            }
        }
    }

    fn change_facts(&mut self, client: ClientId, now: Time, change: impl FnOnce(&mut Facts)) {
        let Some(record) = self.client_mut(client) else { return };
        change(&mut record.facts);
        let facts = record.facts;
        self.policy.changed(client, &facts);
        self.file(client, now);
    }

    fn count_reservations(&mut self) {
        self.reservations = self.reservations().count();
        let sum = self.reservations().map(|(_, reservation)| admission::utilization_ppm(reservation));
        self.admitted_ppm = sum.fold(0, u32::saturating_add);
    }

    /// True where there was one.
    fn end_reservation(&mut self, client: ClientId) -> bool {
        let Some(record) = self.client_mut(client) else { return false };
        let Some(ended) = record.reservation.take() else { return false };
        record.past_reservation = Some(ended);
        self.depleted.remove(client);
        // It comes to the policy as from idleness: time paid from a reservation saves nothing up.
        self.policy.ready(client, 0);
        true
    }

    fn pick_reserved(&mut self, client: ClientId, deadline: Time, now: Time) -> Slice {
        self.running = Some((client, Mode::Reserved));
        let until = match self.client_mut(client) {
            Some(record) => match record.reservation.as_mut() {
                Some(state) => {
                    record.usage.misses += u32::from(state.misses(now));
                    state.budget_end(now)
                }
                None => Time::NEVER,
            },
            None => Time::NEVER,
        };
        let rank = Rank { tier: Rank::RESERVED, key: i64::try_from(deadline.0).unwrap_or(i64::MAX) };
        let contest = Contest::of(rank, now);
        Slice { choice: Choice::Client(client, Mode::Reserved), until, requests: 0, bytes: 0, contest }
    }

    fn pick_best_effort(&mut self, client: ClientId, now: Time) -> Slice {
        let alone = self.waiting.len() + self.desktop.ready.len() == 1;
        let Defence { key, growth, margin } = self.policy.defence(client);
        let allowance = self.policy.picked(client, alone, now);
        // The head start of input is spent with this pick, so that its place in the queue changes.
        self.file(client, now);
        self.running = Some((client, Mode::BestEffort));
        let tier = self.tier(client);
        let desktop_turn = self.desktop.turn_from(now);
        let mut until = now.after(allowance.slice_ns);
        if self.desktop.ready.peek().is_some_and(|((waiting, _), _)| waiting <= tier) {
            until = until.min(desktop_turn);
        }
        Slice {
            choice: Choice::Client(client, Mode::BestEffort),
            until,
            requests: allowance.requests,
            bytes: allowance.bytes,
            contest: Contest { rank: Rank { tier, key }, start: now, growth, margin, desktop_turn },
        }
    }

    /// The client that works for others and is to be served now, if that is anybody's turn.
    fn next_desktop(&self, now: Time) -> Option<ClientId> {
        let ((tier, _), client) = self.desktop.ready.peek()?;
        let Some(((others, _), _)) = self.waiting.peek() else { return Some(client) };
        (self.desktop.turn_from(now) <= now && tier <= others).then_some(client)
    }

    /// No longer than its turn while others wait. No arrival of a client that waits for it ends the slice.
    fn pick_desktop(&mut self, client: ClientId, now: Time) -> Slice {
        self.running = Some((client, Mode::BestEffort));
        let slice_end = now.after(self.parameters.slice_ns);
        let until = if self.others_wait() { slice_end.min(now.after(self.desktop.left_ns(now))) } else { slice_end };
        let rank = Rank { tier: self.tier(client), key: i64::MIN };
        Slice {
            choice: Choice::Client(client, Mode::BestEffort),
            until,
            requests: 0,
            bytes: 0,
            contest: Contest::of(rank, now),
        }
    }

    /// Whether the desktop rule holds for this client now.
    fn is_desktop(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.role.is_any())
            && self.desktop.is_on()
            && self.policy.favours_desktop()
    }

    /// Where a client stands in a contest without budget of a reservation.
    fn tier(&self, client: ClientId) -> i64 {
        let sync_priority = self.client(client).map_or(0, |record| record.facts.sync_priority);
        Rank::tier_of(sync_priority) - i64::from(self.is_desktop(client))
    }

    /// Whether anybody without a role is ready and could be served.
    fn others_wait(&self) -> bool {
        let is_queued = |id: &&ClientId| self.waiting.contains(**id) || self.reserved.contains(**id);
        let members = self.desktop.members.iter().filter(is_queued).count();
        self.waiting.len() + self.reserved.len() > members
    }

    /// The desktop rule begins or ends for those that have a role.
    fn requeue_desktop(&mut self, now: Time) {
        for at in 0..self.desktop.members.len() {
            self.file(self.desktop.members[at], now);
        }
    }

    fn leave_to_server(&self, now: Time) -> Option<Slice> {
        if self.ready_count() == 0 && self.grab.is_none() {
            return None;
        }
        // Under a grab nobody else can be served, so nobody's arrival ends the slice.
        let tier = if self.grab.is_some() { i64::MIN } else { i64::MAX };
        let contest = Contest::of(Rank { tier, key: i64::MIN }, now);
        Some(Slice { choice: Choice::Server, until: Time::NEVER, requests: 0, bytes: 0, contest })
    }

    /// Panics unless every client is in its place; for tests.
    pub fn verify(&self) {
        self.reserved.check();
        self.waiting.check();
        self.desktop.ready.check();
        self.idle.check();
        self.depleted.check();
        self.paced.check();
        let queued = self.reserved.ids().chain(self.waiting.ids()).chain(self.idle.ids()).chain(self.depleted.ids());
        let queued = queued.chain(self.paced.ids()).chain(self.desktop.ready.ids());
        for id in queued {
            assert!(self.client(id).is_some(), "{id:?} is queued and not connected");
        }
        assert_eq!(self.clients.iter().flatten().count(), self.connected);
        assert_eq!(self.clients.iter().flatten().filter(|record| record.watched).count(), self.watched);
        for (slot, record) in self.clients.iter().enumerate() {
            let (Some(record), id) = (record, ClientId(slot as u16)) else { continue };
            let depleted = record.reservation.is_some_and(|state| state.depleted);
            let hard = record.reservation.is_some_and(|state| state.reservation.hard);
            let has_budget = record.reservation.is_some() && !depleted;
            assert_eq!(self.depleted.contains(id), depleted, "{id:?} depleted");
            let paced = record.paced.is_some();
            assert_eq!(self.paced.contains(id), paced, "{id:?} paced");
            assert_eq!(self.reserved.contains(id), record.ready && has_budget && !paced, "{id:?} reserved");
            let is_out = paced || (depleted && hard);
            let waits = record.ready && !has_budget && !is_out;
            let is_desktop = self.is_desktop(id);
            assert_eq!(self.waiting.contains(id), waits && !is_desktop, "{id:?} waiting");
            assert_eq!(self.desktop.ready.contains(id), waits && is_desktop, "{id:?} waiting, desktop");
            assert!(!(record.ready && record.watched), "{id:?} has arrived and is watched");
            assert!(!(record.ready && self.idle.contains(id)), "{id:?} idle");
            assert!(record.ready || record.watched || self.idle.contains(id), "{id:?} idle");
            assert_eq!(self.desktop.members.contains(&id), record.role.is_any(), "{id:?} has a role");
            if let Some(state) = record.reservation {
                assert_eq!(state.budget_left_ns > 0, !depleted, "{id:?} budget and depletion");
                assert!(state.budget_left_ns <= state.reservation.budget_ns as i64, "{id:?} has more than Q");
            }
        }
        assert!(self.admitted_ppm <= self.parameters.max_utilization_ppm, "more is admitted than may be");
    }
}
