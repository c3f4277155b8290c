// SPDX-License-Identifier: MIT
//! Cuts long requests: executes them in parts and lets other clients in between two parts.
//!
//! A request that consists of many figures or rows is executed part by part through the server's own procedure, each
//! part with a header of its own. If a client waits for the end of the slice (`isItTimeToYield`) between two parts, the
//! request is handed back to the server, which dispatches it again when its client is served next. What is left of it
//! is the *rest*. Requests of other clients that could tell the difference make the rest run first ([`guard`]).
//! [`crate::parts`] says which requests have parts.
//!
//! | file | contents |
//! |---|---|
//! | `begin` | whether a new request is cut |
//! | `run` | the execution of parts |
//! | `cost` | the measured cost of each kind of request |
//! | `guard`, `requests.txt` | which requests of other clients may run while a rest is pending |
//! | `server` | the server's records, through the shim |
//!
//! What happens to a rest:
//!
//! | event | rest |
//! |---|---|
//! | its client is served again | goes on |
//! | a request that touches the same things, a server grab, KillClient | is finished first |
//! | xqos steps aside | is finished |
//! | another client's connection ends, and with it its windows | is finished first |
//! | its client's connection breaks, the server resets | is dropped, as requests that were not read yet are |
//! | input, timers, the server's own drawing | stays: none of them reads or draws a client's pixels |
//! | someone resizes the screen of a nested server | goes on, but an image that no longer fits ends with BadMatch |

mod begin;
mod cost;
mod guard;
mod run;
mod server;

use crate::host::CutTotals;
use crate::host::dix::client::{Client, Head};
use crate::host::dix::hooks::with_engine;
use crate::host::dix::order_of;
use crate::host::dix::per_request::{self, ENTRIES, call, set_cuts, set_guard};
use crate::host::dix::symbols::{RequestProc, Symbols, symbols};
use crate::host::engine_cell::OnServerThread;
use crate::host::kernel;
use crate::parts::{Extensions, Kind, MAX_HEADER, Parts};
use begin::{Plan, UNTIMED};
use cost::Costs;
use guard::{Footprint, Guard};
use run::run;
use server::{CutServer, Image, Used};
use xqos_abi::trace::Entry;
use xqos_core::{ClientId, Time};

/// When requests are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The time that a part should take, in nanoseconds; 0: nothing is cut.
    pub ns: u64,
    /// For tests: each part is one figure or row, and each request is cut after each part.
    pub always: bool,
}

#[derive(Debug)]
struct Cut {
    client: Client,
    procedure: RequestProc,
    header: [u8; MAX_HEADER],
    parts: Parts,
    done: u32,
    head: Head,
    footprint: Footprint,
    image: Option<ReadImage>,
    /// CopyArea: the graphics context whose exposure events are due with the last part.
    exposes: Option<u32>,
    /// The status of the request, once it is finished.
    result: Option<i32>,
    /// Processor time up to now, and of the longest part.
    used_ns: u64,
    longest_ns: u64,
    /// Processor time since the request could last be handed back.
    held_ns: u64,
}

#[derive(Debug)]
struct ReadImage {
    drawable: Used,
    whole: Image,
    row_bytes: u32,
    /// Empty if the server writes into shared memory.
    data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: i32,
    pub end: End,
}

/// How a dispatch of a request has ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Whole,
    /// The request was executed in parts, which took this processor time (ns) in all.
    InParts(u64),
    /// The request will be dispatched again.
    Returned,
    /// The request had ended before, for another client's sake.
    HadEnded,
}

impl Outcome {
    pub fn whole(status: i32) -> Outcome {
        Outcome { status, end: End::Whole }
    }
}

struct State {
    server: CutServer,
    guard: Guard,
    extensions: Extensions,
    limit: Limit,
    costs: Costs,
    rests: Vec<Cut>,
    totals: CutTotals,
    /// Rests that were executed in another client's slice, not yet charged.
    finished: Vec<(Client, u32, u64)>,
    /// The request executed in parts that ended last: its client, its processor time and that of its longest part.
    ended: Option<(Client, u64, u64)>,
    /// The client whose request was handed back last, until the slice has ended.
    returned: Option<Client>,
    record: Option<u8>,
    /// RECORD may have exchanged the request tables of clients.
    may_record: bool,
    dri3: Option<u8>,
    /// The memory of the last image, for the next one: new memory costs as much time as reading the image. Freed when a
    /// client leaves.
    spare: Vec<u8>,
    /// Clients may have made pixmaps of memory that other pixmaps share.
    may_share: bool,
    is_grabbed: bool,
}

static STATE: OnServerThread<Option<State>> = OnServerThread::new(None);

/// The reference must not be held across a call into the server.
fn state() -> Option<&'static mut State> {
    // SAFETY: this runs on the server's thread, and one function at a time holds the reference, as required above.
    unsafe { (*STATE.get()).as_mut() }
}

/// Sets when requests are cut, for this generation of the server. Does nothing if its requests cannot be cut.
pub fn configure(symbols: &Symbols, limit: Limit) {
    if state().is_none_or(|state| state.rests.is_empty()) {
        let new = State::new(symbols, limit).map(|new| match state() {
            // A change of the setting forgets neither the totals nor what was noticed.
            Some(&mut State { totals, may_record, may_share, is_grabbed, .. }) => {
                State { totals, may_record, may_share, is_grabbed, ..new }
            }
            None => new,
        });
        // SAFETY: as in `state`.
        unsafe { *STATE.get() = new };
    }
    if let Some(state) = state() {
        if state.limit != limit {
            (state.limit, state.costs) = (limit, Costs::new(limit.ns));
        }
    }
    wrap(symbols);
}

/// Executes what is pending, and cuts nothing from now on.
pub fn stop(symbols: &Symbols) {
    finish_where(ClientId(0), |_| true);
    if let Some(state) = state() {
        state.limit.ns = 0;
    }
    wrap(symbols);
}

fn wrap(symbols: &Symbols) {
    let mut cuts = [false; ENTRIES];
    // A request that was cut returns through its wrapper.
    if let Some(state) = state().filter(|state| state.limit.ns > 0 || !state.rests.is_empty()) {
        let others = [Some(state.extensions.shm), Some(state.extensions.render), state.record, state.dri3];
        for major in Kind::CORE.iter().map(|&(major, _)| major).chain(others.into_iter().flatten()) {
            cuts[usize::from(major)] = major != 0;
        }
    }
    set_cuts(symbols, cuts);
}

/// The totals; `None` if this server's requests cannot be cut.
pub fn totals() -> Option<CutTotals> {
    state().map(|state| state.totals)
}

/// Returns true if any cut request has to be dispatched again.
pub fn has_rests() -> bool {
    state().is_some_and(|state| !state.rests.is_empty())
}

/// Returns true if a request of this client has been handed back since the last call.
pub fn take_returned(client: Client) -> bool {
    state().and_then(|state| state.returned.take()) == Some(client)
}

/// If a request of this client that was executed in parts has ended since the last call: its processor time, and that
/// of its longest part.
pub fn take_ended(client: Client) -> Option<(u64, u64)> {
    let (of, used_ns, longest_ns) = state()?.ended.take()?;
    (of == client).then_some((used_ns, longest_ns))
}

/// The next rest that was executed in another client's slice: its client, opcodes, and time.
pub fn take_finished() -> Option<(Client, u32, u64)> {
    state()?.finished.pop()
}

pub fn grabbed(is_grabbed: bool) {
    if let Some(state) = state() {
        state.is_grabbed = is_grabbed;
    }
}

/// A client's connection is closed, and its windows are about to be destroyed.
pub fn gone(client: Client) {
    finish_where(ClientId(client.index() as u16), |rest| rest.client != client);
    if let Some(state) = state() {
        state.rests.retain(|rest| rest.client != client);
        state.finished.retain(|&(of, ..)| of != client);
        state.spare = Vec::new();
        update_guard();
    }
}

/// Returns true if this request and no rest is pending for its client, and its sizes alone say that it is short. This
/// is quicker than [`execute`], which finds out the same.
pub fn is_short(client: Client, head: &Head) -> bool {
    let Some(state) = state().filter(|state| state.rests.is_empty() && !state.limit.always) else { return false };
    let (major, minor) = (head.request as u8, (head.request >> 16) as u8);
    let Some(kind) = Kind::of(major, minor, state.extensions).filter(|_| head.swapped == 0) else { return false };
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    kind.work_at_most(unsafe { client.request_bytes() }).is_some_and(|work| work < state.costs.work(kind) / UNTIMED)
}

/// Executes a request of a kind that may have parts, or goes on with its rest. `may_cut`: it may be cut if it is new.
pub fn execute(client: Client, head: &Head, procedure: RequestProc, may_cut: bool) -> Outcome {
    let whole = || Outcome::whole(call(procedure, client.raw()));
    let Some(state) = state() else { return whole() };
    if !state.rests.is_empty() {
        if let Some(at) = state.rests.iter().position(|rest| rest.client == client) {
            let rest = state.rests.swap_remove(at);
            update_guard();
            if rest.head.sequence.wrapping_add(1) == head.sequence && rest.head.request == head.request {
                // The server has counted the request again. The numbers of events must not go back meanwhile, so the
                // request kept its number.
                state.server.set_sequence(client, rest.head.sequence);
                return match rest.result {
                    Some(status) => {
                        state.ended = Some((client, rest.used_ns, rest.longest_ns));
                        Outcome { status, end: End::HadEnded }
                    }
                    None => run(rest, true),
                };
            }
        }
    }
    state.notice(head);
    if !may_cut {
        return whole();
    }
    match state.begin(client, head, procedure) {
        Plan::Whole => whole(),
        Plan::Timed(kind, work) => {
            let before = kernel::thread_cpu_ns();
            let outcome = whole();
            state_learns(kind, kernel::thread_cpu_ns() - before, work);
            outcome
        }
        Plan::Cut(cut) => run(*cut, true),
    }
}

/// Another client's request is about to run. Finishes the rests that it could tell from whole requests.
pub fn admit(client: Client, head: &Head) {
    let Some(state) = state().filter(|state| !state.rests.is_empty()) else { return };
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    let Some(footprint) = state.guard.footprint(&state.server, head.request, request, order_of(client)) else { return };
    let by = ClientId(head.index as u16);
    let may_share = state.may_share;
    finish_where(by, |rest| rest.client != client && footprint.touches(&rest.footprint, may_share));
}

fn finish_where(by: ClientId, is_meant: impl Fn(&Cut) -> bool) {
    let next = || state()?.rests.iter().position(|rest| rest.result.is_none() && is_meant(rest));
    while let Some(at) = next() {
        finish(at, by);
    }
    update_guard();
}

/// Executes a rest now, because of a request of client `by`. Its client's next dispatch returns the status.
fn finish(at: usize, by: ClientId) {
    let Some(here) = state() else { return };
    here.totals.finished += 1;
    let rest = here.rests.swap_remove(at);
    let (client, head, began) = (rest.client, rest.head, kernel::now());
    let End::InParts(used_ns) = run(rest, false).end else { return };
    let now = kernel::now();
    let ns = now.since(began);
    if let Some(here) = state() {
        here.finished.push((client, head.request, ns));
    }
    per_request::note_request(&head, now, used_ns);
    note(now, Entry::Finished { client: ClientId(head.index as u16), request: head.request, by, ns });
}

/// Records an event in the trace, if there is one.
pub fn note(at: Time, what: Entry) {
    with_engine(|engine| {
        engine.scheduler.trace.note(at, what);
        Ok(())
    });
}

fn update_guard() {
    if let (Some(state), Ok(symbols)) = (state(), symbols()) {
        set_guard(symbols, state.rests.iter().any(|rest| rest.result.is_none()));
    }
}

fn state_learns(kind: Kind, ns: u64, work: u64) {
    if let Some(state) = state() {
        state.costs.learn(kind, ns, work);
    }
}

impl State {
    fn new(symbols: &Symbols, limit: Limit) -> Option<State> {
        let opcode = |name| symbols.extension(name).and_then(|entry| u8::try_from(entry.base).ok());
        Some(State {
            server: CutServer::find(symbols)?,
            guard: Guard::new(symbols),
            extensions: Extensions { shm: opcode(c"MIT-SHM").unwrap_or(0), render: opcode(c"RENDER").unwrap_or(0) },
            limit,
            costs: Costs::new(limit.ns),
            rests: Vec::new(),
            totals: CutTotals::default(),
            finished: Vec::new(),
            ended: None,
            returned: None,
            record: opcode(c"RECORD"),
            may_record: false,
            dri3: opcode(c"DRI3"),
            spare: Vec::new(),
            may_share: false,
            is_grabbed: false,
        })
    }

    /// Remembers requests after which the rules for other requests are different.
    fn notice(&mut self, head: &Head) {
        let (major, minor) = (head.request as u8, head.request >> 16);
        self.may_record |= self.record == Some(major) && minor != 0;
        // MIT-SHM CreatePixmap, DRI3 PixmapFromBuffer and PixmapFromBuffers.
        self.may_share |= self.extensions.shm == major && minor == 5;
        self.may_share |= self.dri3 == Some(major) && matches!(minor, 2 | 7);
    }
}
