// SPDX-License-Identifier: MIT
//! Executes the parts of a request through the server's own procedure.
//!
//! Until a request is done, its client keeps the previous sequence number, as if the server had not begun the request:
//! an event must not report a partly executed request as done. The last part has the request's number.

use super::{CutOutcome, End, learn, update_guard};
use crate::host::dix::cell::{note, with_cutting as with};
use crate::host::dix::client::LiveClient;
use crate::host::dix::cutting::server::CutServer;
use crate::host::dix::cutting::{Cut, Limit};
use crate::host::dix::symbols::{Symbols, symbols, x_error};
use crate::host::dix::tables::call;
use crate::host::kernel;
use crate::parts::MAX_HEADER;
use std::ops::Range;
use xqos_abi::trace::Entry;
use xqos_core::ClientId;

/// The maximum number of pending rests. Beyond it, requests are executed whole.
const MAX_RESTS: usize = 64;

/// Returns true if the request may be handed back to the server now.
fn may_return(server: &CutServer, client: LiveClient, symbols: &Symbols) -> bool {
    let is_allowed = with(|state| state.limit.ns > 0 && state.rests.len() < MAX_RESTS && !state.is_grabbed);
    is_allowed == Some(true)
        && client.request_vector().cast() == symbols.proc_vector.cast_const()
        && !symbols.is_recorded()
        && is_queued(server, client)
}

/// Makes sure that the server calls `leaves` if this client's connection ends.
fn is_queued(server: &CutServer, client: LiveClient) -> bool {
    let Some((is_queued, leaves)) = with(|state| (state.queued.contains(&client), state.leaves)) else { return false };
    if !is_queued && server.queue_work(client, leaves) {
        with(|state| state.queued.push(client));
        return true;
    }
    is_queued
}

/// Executes the parts that are left. If `is_own_turn`, stops when another client waits.
pub(super) fn run(mut cut: Cut, is_own_turn: bool) -> CutOutcome {
    let (Some(server), Ok(symbols)) = (with(|state| state.server), symbols()) else {
        return CutOutcome::whole(x_error::IMPLEMENTATION);
    };
    with(|state| state.totals.requests += u64::from(cut.done == 0));
    let (base, words) = (cut.client.request_start(), server.request_words(cut.client));
    let mut status = x_error::SUCCESS;
    let mut before = kernel::thread_cpu_ns();
    // Each dispatch executes at least one part, so that every request ends.
    let mut has_run = false;
    while cut.done < cut.parts.count && status == x_error::SUCCESS {
        let (Limit { always, .. }, fitting) =
            with(|state| (state.limit, state.costs.work(cut.parts.kind))).unwrap_or((Limit::NONE, u64::MAX));
        if has_run && is_own_turn && may_return(&server, cut.client, symbols) {
            cut.held_ns = 0;
            if always || symbols.should_yield() {
                // SAFETY: this is the request that the server is dispatching.
                unsafe { server.set_request(cut.client, base, words) };
                return hand_back(&server, cut);
            }
        }
        // SAFETY: the request is in the client's buffer, which the server leaves alone until the request is done.
        let request = unsafe { std::slice::from_raw_parts(base, cut.parts.header + cut.parts.payload()) };
        let (count, work) = cut.parts.fitting(request, cut.done, if always { 0 } else { fitting });
        let range = cut.done..cut.done + count;
        cut.done += count;
        has_run = true;
        status = execute_part(&server, &cut, &range, base);
        let now = kernel::thread_cpu_ns();
        let ns = now.saturating_sub(before);
        with(|state| state.totals.parts += 1);
        learn(cut.parts.kind, ns, work);
        cut.used_ns += ns;
        cut.held_ns += ns;
        cut.longest_ns = cut.longest_ns.max(cut.held_ns);
        before = now;
    }
    // SAFETY: this is the request that the server is dispatching.
    unsafe { server.set_request(cut.client, base, words) };
    server.set_sequence(cut.client, cut.head.sequence);
    let outcome = CutOutcome { status, end: End::InParts(cut.used_ns) };
    with(|state| {
        if is_own_turn {
            state.ended = Some((cut.client, cut.used_ns, cut.longest_ns));
        } else {
            cut.result = Some(status);
            state.rests.push(cut);
        }
    });
    outcome
}

/// Hands the request back to the server.
fn hand_back(server: &CutServer, cut: Cut) -> CutOutcome {
    server.return_request(cut.client);
    server.set_sequence(cut.client, cut.head.sequence.wrapping_sub(1));
    let (client, parts) = (ClientId(cut.head.index as u16), cut.parts.count);
    let what = Entry::Cut { client, request: cut.head.request, done: cut.done, parts };
    with(|state| {
        state.totals.cuts += 1;
        state.returned = Some(cut.client);
        state.rests.push(cut);
    });
    update_guard();
    note(kernel::now(), what);
    CutOutcome { status: x_error::SUCCESS, end: End::Returned }
}

fn execute_part(server: &CutServer, cut: &Cut, range: &Range<u32>, base: *mut u8) -> i32 {
    let (length, bytes) = (cut.parts.header, cut.parts.bytes);
    let figures = [0, range.start].map(|part| {
        // SAFETY: as in `run`.
        unsafe { std::slice::from_raw_parts(base.add(length + part as usize * bytes), bytes) }
    });
    let Some(mut header) = cut.parts.header_for(&cut.header, range, figures) else { return x_error::IMPLEMENTATION };
    let words = (length + (range.end - range.start) as usize * bytes) / 4;
    header[2..4].copy_from_slice(&u16::try_from(words).unwrap_or(0).to_ne_bytes());
    // SAFETY: the header goes in front of the part's figures, over the end of those that are done, in the buffer that
    // holds the whole request. The bytes are put back below.
    let (place, saved) = unsafe {
        let place = base.add(range.start as usize * bytes);
        let mut saved = [0; MAX_HEADER];
        std::ptr::copy_nonoverlapping(place, saved.as_mut_ptr(), length);
        std::ptr::copy_nonoverlapping(header.as_ptr(), place, length);
        server.set_request(cut.client, place, words as u32);
        (place, saved)
    };
    let is_last = range.end == cut.parts.count;
    server.set_sequence(cut.client, cut.head.sequence.wrapping_sub(u32::from(!is_last)));
    let quiet = cut.exposes.filter(|_| !is_last);
    if let Some(context) = quiet {
        server.set_exposures(context, false);
    }
    let status = call(cut.procedure, cut.client.raw());
    if let Some(context) = quiet {
        server.set_exposures(context, true);
    }
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(saved.as_ptr(), place, length) };
    status
}
