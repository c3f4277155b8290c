// SPDX-License-Identifier: MIT
//! Cuts long requests: executes them in parts, and serves other clients between two parts.
//!
//! A request that consists of many figures or rows is executed part by part through the server's own procedure, each
//! part with a header of its own. If a client waits for the end of the slice (`isItTimeToYield`) between two parts, the
//! request is handed back to the server, which dispatches it again when its client is served next. The remaining parts
//! are the *rest*. If a request of another client could observe the difference, the rest is executed first ([`guard`]).
//! [`crate::parts`] defines which requests have parts.
//!
//! | file | contents |
//! |---|---|
//! | `begin` | whether a new request is cut |
//! | `run` | the execution of parts |
//! | `early` | what finishes a rest before its client is served again |
//!
//! What happens to a rest:
//!
//! | event | rest |
//! |---|---|
//! | its client is served again | continues |
//! | a request that uses the same pixels or resources, a server grab, KillClient | is finished first |
//! | the visible parts of windows change, with or without a request | is finished first |
//! | the connection of any client ends | is finished first |
//! | xqos steps aside, the server resets | is finished |
//! | an event for its client | stays: the event has the sequence number before that of the request |
//! | input, other timers | stays: these neither read nor draw anything that a rest touches |
//!
//! Decision 028 lists what reads or draws pixels without a request. No reference to the state of this module is held
//! during a call into the server, which may call xqos.

mod begin;
mod early;
mod run;

use crate::host::dix::cell::{set_cutting, tables, with_cutting as with};
use crate::host::dix::client::{Head, LiveClient};
use crate::host::dix::cutting::cost::Costs;
use crate::host::dix::cutting::server::CutServer;
use crate::host::dix::cutting::{Cutting, Limit, Majors};
use crate::host::dix::order_of;
use crate::host::dix::symbols::{RequestProc, Symbols, symbols};
use crate::host::dix::tables::{ENTRIES, call};
use crate::host::kernel;
use crate::mechanism::host::CutTotals;
use crate::parts::{DrawingKind, Parts};
pub use early::{admit, gone};
use early::{finish_where, leaves, windows_change};
use run::run;
use xqos_core::ClientId;

/// Requests below 1 / `UNTIMED` of the limit are not timed. Longer ones are timed, to learn their cost.
const UNTIMED: u64 = 4;
/// Core requests after which the server may defer work: those that create, change, map, move or destroy windows, and
/// KillClient.
const CHANGES_WINDOWS: [u8; 12] = [1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13, 113];

#[derive(Clone, Copy, Debug)]
pub struct CutOutcome {
    pub status: i32,
    pub end: End,
}

/// How a dispatch of a request has ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Whole,
    /// The request was executed in parts, which took this processor time (ns) in total.
    InParts(u64),
    /// The request will be dispatched again.
    Returned,
    /// The request was finished earlier, because of another client.
    HadEnded,
}

impl CutOutcome {
    pub fn whole(status: i32) -> CutOutcome {
        CutOutcome { status, end: End::Whole }
    }
}

/// Sets when requests are cut, for this generation of the server. Does nothing if its requests cannot be cut.
pub fn configure(symbols: &Symbols, limit: Limit) {
    if with(|_| ()).is_none() {
        set_cutting(Cutting::new(symbols, limit, leaves));
    }
    with(|state| {
        if state.limit != limit {
            (state.limit, state.costs) = (limit, Costs::new(limit.ns));
        }
    });
    wrap(symbols);
}

/// Finishes all rests, and cuts no request from now on.
pub fn stop(symbols: &Symbols) {
    finish_where(ClientId(0), |_| true);
    with(|state| (state.limit.ns, state.majors.present) = (0, 0));
    wrap(symbols);
}

/// Forgets this generation of the server, whose clients have all disconnected.
pub fn forget() {
    with(|state| state.server.forget_windows());
    set_cutting(None);
}

/// Wraps the requests that may be cut or change windows, and always those of Present.
fn wrap(symbols: &Symbols) {
    let cuts = with(|state| {
        let Majors { render, present, composite } = state.majors;
        let mut cuts = [false; ENTRIES];
        cuts[usize::from(present)] = present != 0;
        // A request that was cut returns through its wrapper.
        if state.limit.ns > 0 || !state.rests.is_empty() {
            let core = DrawingKind::CORE.iter().map(|&(major, _)| major);
            for major in core.chain(CHANGES_WINDOWS).chain([render, composite]) {
                cuts[usize::from(major)] |= major != 0;
            }
        }
        cuts
    });
    tables().set_cuts(symbols, cuts.unwrap_or([false; ENTRIES]));
}

/// The totals; `None` if this server's requests cannot be cut.
pub fn totals() -> Option<CutTotals> {
    with(|state| state.totals)
}

/// Returns true if any cut request has to be dispatched again.
pub fn has_rests() -> bool {
    with(|state| !state.rests.is_empty()) == Some(true)
}

/// The client whose request has been handed back since the last call.
pub fn take_returned() -> Option<LiveClient> {
    with(|state| state.returned.take()).flatten()
}

/// The processor time of a request and of its longest part, if a request of this client that was executed in parts has
/// ended since the last call.
pub fn take_ended(client: LiveClient) -> Option<(u64, u64)> {
    let (of, used_ns, longest_ns) = with(|state| state.ended.take())??;
    (of == client).then_some((used_ns, longest_ns))
}

/// The next rest that was executed in another client's slice: its client, opcodes, and time.
pub fn take_finished() -> Option<(LiveClient, u32, u64)> {
    with(|state| state.finished.pop())?
}

pub fn grabbed(is_grabbed: bool) {
    with(|state| state.is_grabbed = is_grabbed);
}

/// The server has done its deferred work.
pub fn slice_ended() {
    with(|state| state.windows_changed = false);
}

/// Returns true if no rest is pending for the client, and the sizes in its request show that the request is short.
/// [`execute`] would find the same, but more slowly.
pub fn is_short(client: LiveClient, head: &Head) -> bool {
    let (major, minor) = (head.request as u8, (head.request >> 16) as u8);
    with(|state| {
        let kind = DrawingKind::of(major, minor, state.majors.render)?;
        (state.rests.is_empty() && !state.limit.always && head.swapped == 0).then_some(())?;
        // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
        let work = kind.work_at_most(unsafe { client.request_bytes() })?;
        (work < state.costs.work(kind) / UNTIMED).then_some(())
    })
    .flatten()
    .is_some()
}

/// Executes a request of a kind that may have parts, or continues its rest. `may_cut`: a new request may be cut.
pub fn execute(client: LiveClient, head: &Head, procedure: RequestProc, may_cut: bool) -> CutOutcome {
    let whole = || CutOutcome::whole(call(procedure, client.raw()));
    let of_client = |state: &mut Cutting| {
        let at = state.rests.iter().position(|rest| rest.client == client)?;
        Some((state.rests.swap_remove(at), state.server))
    };
    if let Some((rest, server)) = with(of_client).flatten() {
        update_guard();
        // Each dispatch increments the sequence number, but a finished request has its number already.
        if let Some(status) = rest.result {
            server.set_sequence(client, rest.head.sequence);
            with(|state| state.ended = Some((client, rest.used_ns, rest.longest_ns)));
            return CutOutcome { status, end: End::HadEnded };
        }
        return run(rest, true);
    }
    let Some((server, guard, majors, limit)) =
        with(|state| (state.server, state.guard.clone(), state.majors, state.limit))
    else {
        return whole();
    };
    if majors.present != 0 && head.request == u32::from(majors.present) | (1 << 16) {
        note_presented(&server, client);
    }
    let (major, minor) = (head.request as u8, (head.request >> 16) as u8);
    if CHANGES_WINDOWS.contains(&major) || major == majors.composite {
        with(|state| state.windows_changed = true);
    }
    let is_possible = may_cut && limit.ns > 0 && head.swapped == 0;
    let Some(kind) = DrawingKind::of(major, minor, majors.render).filter(|_| is_possible) else { return whole() };
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    let Some(parts) = Parts::of(kind, request) else { return whole() };
    if !limit.always {
        let enough = with(|state| state.costs.work(kind)).unwrap_or(u64::MAX - 1);
        let work = parts.work_up_to(request, enough + 1);
        if work < enough / UNTIMED {
            return whole();
        }
        if work <= enough {
            let before = kernel::thread_cpu_ns();
            let outcome = whole();
            learn(kind, kernel::thread_cpu_ns() - before, work);
            return outcome;
        }
    }
    match begin::begin((server, &guard), client, head, procedure, parts) {
        Some(cut) => run(cut, true),
        None => whole(),
    }
}

/// Remembers the drawables of the PresentPixmap that is being dispatched.
fn note_presented(server: &CutServer, client: LiveClient) {
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    for at in [4, 8] {
        let Some(id) = order_of(client).u32(request, at) else { return };
        let Some(used) = server.drawable(id) else { continue };
        if let Some(mut names) = with(|state| state.presented.add(id, &used)).flatten() {
            names.retain(|&id, &mut record| server.drawable(id).is_some_and(|used| used.drawable == record));
            with(|state| state.presented.swept(names));
        }
    }
}

/// Guards all requests, and watches the windows, while any rest is pending.
fn update_guard() {
    let pending = with(|state| (state.server, state.rests.iter().any(|rest| rest.result.is_none())));
    if let (Some((server, is_pending)), Ok(symbols)) = (pending, symbols()) {
        tables().set_guard(symbols, is_pending);
        server.watch_windows(is_pending.then_some(windows_change));
        if with(|state| state.limit.ns == 0 && state.rests.is_empty()) == Some(true) {
            wrap(symbols);
        }
    }
}

fn learn(kind: DrawingKind, ns: u64, work: u64) {
    with(|state| state.costs.learn(kind, ns, work));
}
