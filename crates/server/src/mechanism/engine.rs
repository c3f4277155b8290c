//! From the server's calls to the scheduler and back.
//!
//! One decision: the wakeup handler looks at the ring of ready clients, asks the scheduler, raises the chosen client's
//! priority; the server picks it and runs it; the block handler reads the clock and tells the scheduler what was
//! served. The server calls them in turns, always both before each of its choices.
//!
//! Invariants: a client is `linked` here when it is in the ring of ready clients as last seen; `ignored` exactly while
//! we hold an IgnoreClient on it; between slices every priority field is what `sync_priority` says it must be.

mod clients;
mod desktop;
mod exposing;
mod loan;
mod priorities;
mod told;

use crate::host::dix::client::Client;
use crate::host::dix::cpu;
use crate::host::dix::per_request;
use crate::host::dix::ready::{Broken, ReadyRing};
use crate::host::dix::symbols::{ExtensionEntry, Host, NotifyFd, RequestProc};
use crate::host::dix::sync_priority::Wrapped;
use crate::host::dix::watcher::{self, Watcher, now};
use crate::mechanism::access::Identity;
use crate::mechanism::attention::Attentions;
use crate::mechanism::fault::Counted;
use crate::mechanism::longest::Longest;
use crate::mechanism::recorded::Recorded;
use crate::mechanism::roles::Roles;
use crate::mechanism::settings::{FaultPlace, Settings};
use std::os::fd::{AsRawFd, OwnedFd};
use xqos_abi::{NotifyKind, Order};
use xqos_core::{
    Choice, ClientId, Fact, Mode, Outcome as FactOutcome, Parameters, PolicyKind, Scheduler, Service, Slice, Time,
};

/// A server's own slice is at most this long: a later end needs no timer of ours.
const SERVER_MAXIMUM_SLICE_NS: u64 = 20_000_000;
/// The server's timer interval: with two ready clients its slice ends by itself.
const SERVER_INTERVAL_NS: u64 = 5_000_000;
/// What a slice without a whole request is charged at most: input may have been processed in that time instead.
const READING_NS: u64 = 50_000;
/// Sockets armed in one decision; the rest follows in the next.
const ARMED_AT_ONCE: usize = 64;
/// Where clients compete with the server for the processors, it gets its turn after this time and not after one of theirs
/// (3 ms): the better half of a reserved client's wait beside twelve of NoOp. Shorter ones gained nothing more.
const KERNEL_SLICE_NS: u64 = 300_000;
/// The bits of a resource id that name a client and its resource (X11, "Connection setup").
pub const RESOURCE_ID_BITS: u32 = 0x1fff_ffff;

/// A connected client as the mechanism sees it.
#[derive(Debug)]
pub struct Slot {
    pub client: Client,
    pub identity: Identity,
    pub program: Box<str>,
    /// What SYNC GetPriority answers.
    pub sync_priority: i32,
    /// Events it selected.
    pub event_mask: u32,
    established: bool,
    linked: bool,
    ignored: bool,
    armed_before: bool,
    /// The last walk that saw it in the ring.
    seen: u32,
    /// Its sequence number when the slice began, where the server chose.
    sequence: u32,
    told: Told,
}

/// What was told of a client's depletions and misses, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    depletions: u32,
    misses: u32,
    at: Time,
}

/// The running slice.
#[derive(Clone, Copy, Debug)]
struct Running {
    choice: Choice,
    start: Time,
    sequence: u32,
    /// Its connection was set up before: setting it up is no request of its.
    established: bool,
}

/// Figures of the whole server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub started: Time,
    pub busy_ns: u64,
    pub decisions: u64,
    pub early_ends: u64,
}

#[derive(Debug)]
pub struct Engine {
    pub host: &'static Host,
    pub scheduler: Recorded,
    pub totals: Totals,
    slots: Vec<Option<Slot>>,
    ring: ReadyRing,
    ready: Vec<ClientId>,
    linked: usize,
    walk: u32,
    running: Option<Running>,
    watcher: Watcher,
    release_timer: OwnedFd,
    release_at: Time,
    /// Clients with a SYNC priority other than 0.
    prioritized: Vec<ClientId>,
    priorities_shown: bool,
    sync: Option<Wrapped>,
    server_checked: bool,
    record_checked: bool,
    listeners: Vec<ClientId>,
    /// The requests are counted for `classic`, or timed for a trace.
    sees_requests: bool,
    pub longest: Longest,
    /// After how long the log names who holds the server grab; 0: never.
    grab_limit_ns: u64,
    grab_reported: bool,
    roles: Roles,
    /// The root windows of all screens; none before the server has made them.
    roots: Vec<u32>,
    /// Whether the server's windows can be looked at.
    windows_known: bool,
    look_at_roots_at: Time,
    /// Clients that have to answer an Expose, or input beside one, for as long as somebody listens.
    attention: Attentions,
    /// Held when its slice ends: it uncovers others.
    to_hold: Option<ClientId>,
    /// How often a client was held for that.
    pub holds: u32,
    /// Who lends the server a real-time priority, and the limit to set afterwards.
    lender: Option<(ClientId, u32)>,
    first_event: u8,
    pub first_error: u8,
    xinput_opcode: i32,
    faults: Counted,
}

type Outcome = Result<(), String>;

impl Engine {
    pub fn new(host: &'static Host, settings: &Settings, extension: &ExtensionEntry) -> Result<Engine, String> {
        let faults = Counted::new(settings.fault);
        let mut scheduler = Scheduler::new(settings.policy, settings.parameters);
        scheduler.handle(now(), Fact::DesktopShare { ppm: settings.desktop_share_ppm });
        let release_timer = watcher::new_timer().map_err(|error| format!("no timer could be made: {error}"))?;
        let watcher =
            Watcher::start(|| host.end_slice(), release_timer.as_raw_fd(), faults.in_watcher(), KERNEL_SLICE_NS)
                .map_err(|error| format!("the watcher could not be started: {error}"))?;
        Ok(Engine {
            host,
            scheduler: Recorded::new(scheduler),
            totals: Totals { started: now(), ..Totals::default() },
            slots: Vec::new(),
            ring: ReadyRing::new(),
            ready: Vec::new(),
            linked: 0,
            walk: 0,
            running: None,
            watcher,
            release_timer,
            release_at: Time::NEVER,
            prioritized: Vec::new(),
            priorities_shown: true,
            sync: None,
            server_checked: false,
            record_checked: false,
            listeners: Vec::new(),
            sees_requests: false,
            longest: Longest::default(),
            grab_limit_ns: settings.grab_limit_ns,
            grab_reported: false,
            roles: Roles::default(),
            roots: Vec::new(),
            windows_known: false,
            look_at_roots_at: Time(0),
            attention: Attentions::default(),
            to_hold: None,
            holds: 0,
            lender: None,
            first_event: extension.event_base as u8,
            first_error: extension.error_base as u8,
            xinput_opcode: 0,
            faults,
        })
    }

    /// Stands before SYNC, and has the server poll our timer.
    pub fn hook(&mut self, sync_request: RequestProc, release_timer: NotifyFd) -> Outcome {
        self.sync = Wrapped::install(self.host, sync_request);
        cpu::ask_for_slices(KERNEL_SLICE_NS);
        // SAFETY: our own descriptor, taken back in `let_go` before it is closed.
        let set = unsafe {
            (self.host.set_notify_fd)(self.release_timer.as_raw_fd(), release_timer, 1, std::ptr::null_mut())
        };
        if set == 0 { Err("the server does not poll our timer".to_owned()) } else { Ok(()) }
    }

    /// Undoes everything that the server would notice. Works from any state.
    pub fn let_go(&mut self) {
        self.scheduler.trace.close(now());
        per_request::want(self.host, false, false);
        self.end_loan();
        cpu::ask_for_slices(0);
        if let Some(sync) = self.sync.take() {
            sync.remove(self.host);
        }
        self.show_priorities();
        for id in self.ids() {
            if let Some(slot) = self.slot_mut(id).filter(|slot| slot.ignored) {
                slot.ignored = false;
                let client = slot.client;
                self.attend(client);
            }
        }
        unsafe extern "C" fn nobody(_: i32, _: i32, _: *mut std::ffi::c_void) {}
        // SAFETY: a mask of 0 takes the descriptor out of the server's poll.
        unsafe { (self.host.set_notify_fd)(self.release_timer.as_raw_fd(), nobody, 0, std::ptr::null_mut()) };
    }

    // Decisions.

    /// Before the server polls: the slice is over.
    pub fn block(&mut self) -> Outcome {
        self.faults.pass(FaultPlace::Block)?;
        if let Some(running) = self.running {
            self.end_slice(now());
            if let Choice::Client(id, _) = running.choice {
                self.wait_for_next_request(id);
            }
        }
        self.program_release();
        Ok(())
    }

    /// After the server polled: decide.
    pub fn wakeup(&mut self) -> Outcome {
        self.faults.pass(FaultPlace::Wakeup)?;
        self.faults.pass(FaultPlace::Check)?;
        if !self.watcher.is_alive() {
            return Err("the watcher's thread ended by a fault".to_owned());
        }
        if !self.server_checked {
            self.check_server()?;
        }
        let now = now();
        while let FactOutcome::Resumed(client) = self.scheduler.handle(now, Fact::Replenish) {
            self.sync_hold(client);
        }
        self.watch_grab(now);
        self.look_at_roots(now);
        self.look(now)?;
        let slice = self.scheduler.decide(now);
        if self.lender.is_some() {
            self.raise_or_lower(slice.as_ref(), now);
        }
        if let Some(slice) = slice {
            self.begin_slice(&slice, now);
        }
        Ok(())
    }

    fn begin_slice(&mut self, slice: &Slice, now: Time) {
        self.totals.decisions += 1;
        let (mut sequence, mut established) = (0, true);
        match slice.choice {
            Choice::Client(id, _) => {
                self.hide_priorities();
                if let Some(slot) = self.slot(id) {
                    slot.client.set_priority(1);
                    (sequence, established) = (slot.client.sequence(), slot.established);
                }
            }
            Choice::Server => {
                self.show_priorities();
                for at in 0..self.ready.len() {
                    if let Some(slot) = self.slot_mut(self.ready[at]) {
                        slot.sequence = slot.client.sequence();
                    }
                }
            }
        }
        if self.sees_requests {
            per_request::slice_begins(slice.requests, slice.bytes, now);
        }
        self.running = Some(Running { choice: slice.choice, start: now, sequence, established });
        let (until, to_watch) = (timed_end(slice, now), self.scheduler.next_to_watch(now));
        let minds_server = self.minds_server(slice, now);
        if until != Time::NEVER || self.scheduler.watched_count() > 0 || minds_server {
            self.watcher.slice_begins(&slice.contest, until);
        }
        if minds_server {
            self.watcher.mind_server(now);
        }
        let mut next = to_watch;
        for _ in 0..ARMED_AT_ONCE {
            let Some(id) = next else { break };
            self.arm(id, now);
            next = self.scheduler.next_to_watch(now);
        }
        // Who was named counts as watched.
        if let Some(id) = next {
            self.arm(id, now);
        }
    }

    /// Whether input and whatever else the server polls for itself ends this slice. Where the server chooses, it does not:
    /// that is how stock servers are; nor under `classic`, whose turns are short.
    fn minds_server(&self, slice: &Slice, now: Time) -> bool {
        matches!(slice.choice, Choice::Client(..)) && slice.requests == 0 && self.scheduler.is_hogged(now)
    }

    fn end_slice(&mut self, now: Time) {
        let Some(running) = self.running.take() else { return };
        let overran_ns = self.watcher.slice_ends();
        if let Some(overran_ns) = overran_ns {
            self.totals.early_ends += 1;
            self.scheduler.handle(now, Fact::Overran { ns: overran_ns });
        }
        let (id, before) = match running.choice {
            Choice::Client(id, _) => {
                if let Some(slot) = self.slot(id).filter(|_| !self.priorities_shown) {
                    slot.client.set_priority(0);
                }
                (id, running.sequence)
            }
            Choice::Server => match self.who_ran() {
                Some(ran) => ran,
                None => return,
            },
        };
        let Some(slot) = self.slot(id) else { return };
        let client = slot.client;
        let requests = client.sequence().wrapping_sub(before);
        // The server takes a request back that has to wait, and counts it again when it is its turn.
        let established = running.established && slot.established;
        let requests = if requests > u32::MAX / 2 || !established { 0 } else { requests };
        let still_ready = client.is_linked();
        let end = if requests == 0 && still_ready { now.min(running.start.after(READING_NS)) } else { now };
        self.totals.busy_ns += end.since(running.start);
        let bytes = if self.sees_requests { per_request::bytes() } else { 0 };
        let last_request = client.last_request();
        let start = running.start;
        let service = Service { client: id, start, end, requests, bytes, last_request, still_ready };
        self.scheduler.served(&service, overran_ns.is_some());
        if requests == 1 && end.since(start) > self.longest.floor_ns() {
            self.note_longest(id, &service);
        }
        if !still_ready {
            self.set_linked(id, false);
        }
        if self.scheduler.reservation_count() > 0 {
            self.sync_hold(id);
            self.tell_depletion(id, now);
            // Where nobody else is busy no slice follows that would arm it.
            if self.lender.is_some() && !still_ready {
                self.arm(id, now);
            }
        }
        if let Some(held) = self.to_hold.take() {
            self.sync_hold(held);
        }
        if !still_ready && requests > 0 && !self.scheduler.is_exposing(id, now) && self.attention.end(id) {
            self.tell(NotifyKind::Answered, id, 0);
        }
    }

    /// Where the server chose: who executed a request, and the sequence number before.
    fn who_ran(&self) -> Option<(ClientId, u32)> {
        self.ready.iter().find_map(|&id| {
            let slot = self.slot(id)?;
            (slot.client.sequence() != slot.sequence).then_some((id, slot.sequence))
        })
    }

    /// Looks who is ready, and tells the scheduler what changed.
    fn look(&mut self, now: Time) -> Outcome {
        if !self.ring.is_known() && !self.find_ring()? {
            return Ok(());
        }
        self.walk = self.walk.wrapping_add(1);
        self.ready.clear();
        let (slots, ready, walk) = (&mut self.slots, &mut self.ready, self.walk);
        let mut arrivals = 0;
        let walked = self.ring.walk(|client| {
            let index = client.index();
            let slot = slots.get_mut(index).and_then(Option::as_mut).filter(|slot| slot.client == client);
            let slot = slot.ok_or(Broken)?;
            slot.seen = walk;
            arrivals += usize::from(!slot.linked);
            ready.push(ClientId(index as u16));
            Ok(())
        });
        walked.map_err(|Broken| "the list of ready clients is not what it was".to_owned())?;
        if self.linked + arrivals != self.ready.len() {
            self.withdraw_unseen(now);
        }
        if arrivals > 0 {
            for at in 0..self.ready.len() {
                let id = self.ready[at];
                if self.slot(id).is_some_and(|slot| !slot.linked) {
                    self.set_linked(id, true);
                    let seen_at = if self.scheduler.is_watched(id) { self.watcher.arrival(id) } else { None };
                    self.scheduler.handle(seen_at.unwrap_or(now), Fact::Arrived { client: id });
                }
            }
        }
        Ok(())
    }

    /// Clients that left the ring without running: a server grab, or the server ignores them.
    fn withdraw_unseen(&mut self, now: Time) {
        for id in self.ids() {
            let walk = self.walk;
            if self.slot(id).is_some_and(|slot| slot.linked && slot.seen != walk) {
                self.set_linked(id, false);
                self.scheduler.handle(now, Fact::Withdrawn { client: id });
            }
        }
    }

    fn find_ring(&mut self) -> Result<bool, String> {
        if self.scheduler.grab().is_some() {
            return Ok(false);
        }
        let Some(ready) = self.slots.iter().flatten().map(|slot| slot.client).find(|client| client.is_linked()) else {
            return Ok(false);
        };
        let slots = &self.slots;
        self.ring
            .find(ready, |candidate| slots.iter().flatten().any(|slot| slot.client == candidate))
            .map_err(|Broken| "the server's list of ready clients was not found".to_owned())?;
        Ok(true)
    }

    fn arm(&mut self, id: ClientId, now: Time) {
        let rank = self.scheduler.rank_on_arrival(id, now);
        let Some(slot) = self.slots.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return };
        if slot.client.is_gone() {
            return;
        }
        // SAFETY: a client whose connection is open.
        let fd = unsafe { (self.host.get_client_fd)(slot.client.raw()) };
        // A socket that cannot be watched is noticed at the end of the slice, as in a server without us.
        let loan_ns = self.scheduler.reservation(id).map_or(0, |state| state.reservation.budget_ns);
        if fd >= 0 && self.watcher.arm(id, fd, slot.armed_before, rank, loan_ns).is_ok() {
            slot.armed_before = true;
        }
    }

    // Holding back.

    /// Ignores or attends a client as the scheduler wants it.
    pub fn sync_hold(&mut self, id: ClientId) {
        let held = self.scheduler.is_held_back(id);
        let Some(slot) = self.slot_mut(id).filter(|slot| slot.ignored != held && !slot.client.is_gone()) else {
            return;
        };
        slot.ignored = held;
        let client = slot.client;
        if held {
            // SAFETY: a client whose connection is open; undone by `attend`.
            unsafe { (self.host.ignore_client)(client.raw()) };
            self.set_linked(id, false);
        } else {
            self.attend(client);
        }
    }

    fn attend(&self, client: Client) {
        if !client.is_gone() {
            // SAFETY: a client that we ignored before.
            unsafe { (self.host.attend_client)(client.raw()) };
        }
    }

    /// Has the server wake up when a held client is replenished; without one it sleeps as long as it likes.
    fn program_release(&mut self) {
        let at = self.scheduler.next_replenish().filter(|_| self.slots.iter().flatten().any(|slot| slot.ignored));
        let at = at.unwrap_or(Time::NEVER).min(self.grab_report_at());
        if at != self.release_at {
            self.release_at = at;
            watcher::set_timer(&self.release_timer, at);
        }
    }

    // Control, for the extension.

    pub fn set_policy(&mut self, policy: Option<PolicyKind>, parameters: Parameters) {
        let at = now();
        self.scheduler.handle(at, Fact::Parameters(parameters));
        if let Some(policy) = policy {
            self.scheduler.handle(at, Fact::Policy(policy));
            self.see_requests();
        }
    }

    /// What the kernel gives the server's thread, before a reservation is judged.
    pub fn look_at_supply(&mut self) {
        self.scheduler.handle(now(), Fact::Supply(cpu::supply()));
    }

    /// A client's reservation changed: hold it back or attend it, and decide anew, since it may be the one that runs.
    pub fn reservation_changed(&mut self, id: ClientId) {
        self.sync_hold(id);
        self.host.end_slice();
    }

    // What there is to see.

    pub fn slot(&self, id: ClientId) -> Option<&Slot> {
        self.slots.get(usize::from(id.0))?.as_ref()
    }

    fn slot_mut(&mut self, id: ClientId) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(id.0))?.as_mut()
    }

    pub fn id_of(&self, client: Client) -> Option<ClientId> {
        let id = ClientId(u16::try_from(client.index()).ok()?);
        self.slot(id).filter(|slot| slot.client == client).map(|_| id)
    }

    /// The connected client that a resource belongs to: ids are dealt out in equal blocks by the client's index.
    pub fn owner_of(&self, resource: u32) -> Option<ClientId> {
        let (at, slot) = self.slots.iter().enumerate().find_map(|(at, slot)| Some((at, slot.as_ref()?)))?;
        let block = slot.client.base() / (at as u32).max(1);
        let index = (resource & RESOURCE_ID_BITS) / block.max(1);
        let id = ClientId(u16::try_from(index).ok()?);
        self.slot(id).map(|_| id)
    }

    /// Indices that may hold a client; does not borrow, so that the engine can be changed on the way.
    pub fn ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.slots.len() as u16).map(ClientId)
    }

    pub fn xinput_opcode(&self) -> i32 {
        self.xinput_opcode
    }

    /// Memory that we take for clients, about.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Option<Slot>>() + self.ready.capacity() * size_of::<ClientId>();
        size_of::<Self>() + slots + Watcher::memory_bytes() + self.scheduler.memory_bytes()
    }

    pub fn fail_on_purpose(&mut self) -> Outcome {
        self.faults.pass(FaultPlace::Request)
    }

    fn set_linked(&mut self, id: ClientId, linked: bool) {
        let Some(slot) = self.slot_mut(id) else { return };
        if slot.linked != linked {
            slot.linked = linked;
            if linked { self.linked += 1 } else { self.linked -= 1 }
        }
    }
}

/// A client's byte order.
pub fn order_of(client: Client) -> Order {
    if client.is_swapped() { Order::Swapped } else { Order::Native }
}

/// When our timer must end a slice: not where the server does so by itself.
fn timed_end(slice: &Slice, now: Time) -> Time {
    let length_ns = slice.until.since(now);
    let is_best_effort = matches!(slice.choice, Choice::Client(_, Mode::BestEffort));
    // The policy's own end; an end for somebody's replenishment is not on it.
    let is_a_whole_slice = is_best_effort && length_ns == SERVER_INTERVAL_NS;
    if length_ns >= SERVER_MAXIMUM_SLICE_NS || is_a_whole_slice { Time::NEVER } else { slice.until }
}
