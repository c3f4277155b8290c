// SPDX-License-Identifier: MIT
//! Executes the parts of a request through the server's own procedure.

use super::server::Image;
use super::{Cut, End, Outcome, State, note, state, state_learns, update_guard};
use crate::host::dix::client::Client;
use crate::host::dix::per_request::call;
use crate::host::dix::symbols::{Symbols, symbols, x_error};
use crate::host::kernel;
use crate::parts::MAX_HEADER;
use std::ops::Range;
use xqos_abi::trace::Entry;
use xqos_core::ClientId;

/// At most this many rests are pending; then requests are executed whole.
const MAX_RESTS: usize = 64;

impl State {
    /// Returns true if the request may be handed back to the server now.
    fn may_return(&mut self, client: Client, symbols: &Symbols) -> bool {
        self.rests.len() < MAX_RESTS
            && !self.is_grabbed
            && client.request_vector().cast() == symbols.proc_vector.cast_const()
            && !(self.may_record && symbols.is_recorded())
    }
}

/// Executes the parts that are left. If `may_return`, stops when another client waits.
pub(super) fn run(mut cut: Cut, may_return: bool) -> Outcome {
    let (Some(here), Ok(symbols)) = (state(), symbols()) else { return Outcome::whole(x_error::IMPLEMENTATION) };
    here.totals.requests += u64::from(cut.done == 0);
    let (base, words) = (cut.client.request_start(), here.server.request_words(cut.client));
    let mut status = x_error::SUCCESS;
    let mut before = kernel::thread_cpu_ns();
    // Each dispatch executes a part, so that the request ends whatever happens.
    let mut has_run = false;
    while cut.done < cut.parts.count && status == x_error::SUCCESS {
        let Some(here) = state() else { break };
        let is_returnable = has_run && may_return && here.may_return(cut.client, symbols);
        if is_returnable {
            cut.held_ns = 0;
        }
        if is_returnable && (here.limit.always || symbols.should_yield()) {
            here.totals.cuts += 1;
            // SAFETY: this is the request that the server is dispatching.
            unsafe { here.server.set_request(cut.client, base, words) };
            here.server.return_request(cut.client);
            let (client, parts) = (ClientId(cut.head.index as u16), cut.parts.count);
            let what = Entry::Cut { client, request: cut.head.request, done: cut.done, parts };
            here.returned = Some(cut.client);
            here.rests.push(cut);
            update_guard();
            note(kernel::now(), what);
            return Outcome { status, end: End::Returned };
        }
        let limit = if here.limit.always { 0 } else { here.costs.work(cut.parts.kind) };
        // SAFETY: the request is in the client's buffer, which the server leaves alone until the request is done.
        let request = unsafe { std::slice::from_raw_parts(base, cut.parts.header + cut.parts.payload()) };
        let (count, work) = cut.parts.fitting(request, cut.done, limit);
        here.totals.parts += 1;
        let range = cut.done..cut.done + count;
        cut.done += count;
        has_run = true;
        status = execute_part(&mut cut, range, base);
        let now = kernel::thread_cpu_ns();
        let ns = now.saturating_sub(before);
        state_learns(cut.parts.kind, ns, work);
        cut.used_ns += ns;
        cut.held_ns += ns;
        cut.longest_ns = cut.longest_ns.max(cut.held_ns);
        before = now;
    }
    let outcome = Outcome { status, end: End::InParts(cut.used_ns) };
    let Some(here) = state() else { return outcome };
    // SAFETY: this is the request that the server is dispatching.
    unsafe { here.server.set_request(cut.client, base, words) };
    if let Some(image) = cut.image.take().filter(|_| status == x_error::SUCCESS) {
        let bytes = image.row_bytes * u32::from(image.whole.height);
        let data = Some(image.data.as_slice()).filter(|data| !data.is_empty());
        here.server.send_image(cut.client, &image.drawable, bytes, data);
        if let Some(here) = state() {
            here.spare = image.data;
        }
    }
    if may_return {
        here.ended = Some((cut.client, cut.used_ns, cut.longest_ns));
    } else {
        cut.result = Some(status);
        here.rests.push(cut);
    }
    outcome
}

fn execute_part(cut: &mut Cut, range: Range<u32>, base: *mut u8) -> i32 {
    let Some(here) = state() else { return x_error::IMPLEMENTATION };
    let rows = cut.parts.rows(&range);
    if let Some(image) = cut.image.as_mut().filter(|image| !image.data.is_empty()) {
        // Someone may have resized the screen, as in a window of Xephyr. No image is left that has this size.
        if here.server.row_bytes(cut.client, &image.drawable, &image.whole) != image.row_bytes {
            return x_error::MATCH;
        }
        let Image { y, .. } = image.whole;
        let part = Image { y: y + rows.start as i16, height: (rows.end - rows.start) as u16, ..image.whole };
        let bytes = |row: u32| row as usize * image.row_bytes as usize;
        here.server.read_rows(cut.client, &image.drawable, &part, &mut image.data[bytes(rows.start)..bytes(rows.end)]);
        return x_error::SUCCESS;
    }
    let figures = [0, range.start].map(|part| {
        // SAFETY: as in `run`.
        unsafe {
            std::slice::from_raw_parts(base.add(cut.parts.header + part as usize * cut.parts.bytes), cut.parts.bytes)
        }
    });
    let row_bytes = cut.image.as_ref().map_or(0, |image| image.row_bytes);
    let Some(mut header) = cut.parts.header_for(&cut.header, &range, figures, row_bytes) else {
        return x_error::IMPLEMENTATION;
    };
    let length = cut.parts.header;
    let words = (length + (range.end - range.start) as usize * cut.parts.bytes) / 4;
    header[2..4].copy_from_slice(&u16::try_from(words).unwrap_or(0).to_ne_bytes());
    // SAFETY: the header goes in front of the part's figures, over the end of those that are done, in the buffer that
    // holds the whole request. The bytes are put back below.
    let (place, saved) = unsafe {
        let place = base.add(range.start as usize * cut.parts.bytes);
        let mut saved = [0; MAX_HEADER];
        std::ptr::copy_nonoverlapping(place, saved.as_mut_ptr(), length);
        std::ptr::copy_nonoverlapping(header.as_ptr(), place, length);
        here.server.set_request(cut.client, place, words as u32);
        (place, saved)
    };
    let is_last = range.end == cut.parts.count;
    let status = match (cut.exposes, &cut.image) {
        (Some(context), _) if !is_last => {
            here.server.set_exposures(context, false);
            let status = call(cut.procedure, cut.client.raw());
            here.server.set_exposures(context, true);
            status
        }
        // The reply is sent at the end.
        (_, Some(_)) => here.server.muted(cut.client, || call(cut.procedure, cut.client.raw())),
        _ => call(cut.procedure, cut.client.raw()),
    };
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(saved.as_ptr(), place, length) };
    status
}
