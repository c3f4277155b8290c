// SPDX-License-Identifier: MIT
//! Decides whether a new request is cut, and prepares it.
//!
//! A request is cut only if its parts together have exactly the same result, and if only requests can see or change
//! what it touches.

use crate::host::dix::cell::with_cutting as with;
use crate::host::dix::client::{Head, LiveClient};
use crate::host::dix::cutting::Cut;
use crate::host::dix::cutting::guard::{Footprint, Guard};
use crate::host::dix::cutting::server::{CutServer, Used};
use crate::host::dix::order_of;
use crate::host::dix::symbols::{RequestProc, symbols};
use crate::parts::{DrawingKind, Parts, i16_at, u16_at, u32_at};

/// The last operator of RENDER whose result does not depend on how much of a picture is drawn at a time: Add.
const LAST_EXACT_OPERATOR: u8 = 12;

/// Prepares a request that is to be executed in parts; `None` if it has to be executed whole.
pub(super) fn begin(
    (server, guard): (CutServer, &Guard),
    client: LiveClient,
    head: &Head,
    procedure: RequestProc,
    parts: Parts,
) -> Option<Cut> {
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    let (parts, exposes) = exact_parts(&server, parts, request)?;
    let footprint = guard.footprint(&server, head.request, request, order_of(client))?;
    let is_exact = footprint.is_private() && !footprint.reads_what_it_writes(parts.kind == DrawingKind::CopyArea);
    let may_be_cut = is_exact && !is_seen(&server, &footprint) && !owes_text(&server);
    may_be_cut.then(|| Cut {
        client,
        procedure,
        header: parts.header_of(request),
        parts,
        done: 0,
        head: *head,
        footprint,
        exposes,
        result: None,
        used_ns: 0,
        held_ns: 0,
        longest_ns: 0,
    })
}

/// The parts in their order, if they have exactly the same result: no part may see or change what another part draws.
/// For CopyArea also the graphics context whose NoExpose event is due with the last part.
fn exact_parts(server: &CutServer, parts: Parts, request: &[u8]) -> Option<(Parts, Option<u32>)> {
    match parts.kind {
        // Wide arcs that touch are joined, and a dash pattern continues.
        DrawingKind::Arcs => (server.context(u32_at(request, 8))?.is_thin != 0).then_some((parts, None)),
        DrawingKind::CopyArea => {
            let context = u32_at(request, 12);
            let [source, written] = [4, 8].map(|at| server.drawable(u32_at(request, at)));
            let (source, written, used) = (source?, written?, server.context(context)?);
            let is_same = source.drawable == written.drawable;
            // If two drawables share their memory, the server copies one clip rectangle after the other, not row by
            // row.
            (is_same || source.backing != written.backing).then_some(())?;
            // Where the source has no pixels, the server paints the background after it has copied the rest.
            let place = [i16_at(request, 16), i16_at(request, 18)];
            server.is_there(&source, place, [u16_at(request, 24), u16_at(request, 26)]).then_some(())?;
            let parts = if is_same { parts.within_one_drawable(request) } else { parts };
            Some((parts, (used.has_exposures != 0).then_some(context)))
        }
        DrawingKind::Composite => {
            let is_plain = |used: &Used| used.is_plain != 0 && used.is_window == 0;
            let sources = [8, 12].map(|at| u32_at(request, at)).into_iter().filter(|&id| id != 0);
            let are_plain = request[4] <= LAST_EXACT_OPERATOR && { sources }
                .all(|id| server.picture(id).as_ref().is_some_and(is_plain));
            // Whether pixman keeps or clears the unused bits of a pixel depends on where the source ends.
            let has_all_bits = server.picture(u32_at(request, 16)).is_some_and(|used| used.has_all_bits != 0);
            (are_plain && has_all_bits && fits_pixman(request, parts.count)).then_some((parts, None))
        }
        DrawingKind::Trapezoids => parts.has_headers(request).then_some((parts, None)),
        _ => Some((parts, None)),
    }
}

/// Returns true if the server may, without another request, draw to what this request touches or report it to clients.
fn is_seen(server: &CutServer, footprint: &Footprint) -> bool {
    let written = || footprint.used().filter(|&(_, is_written)| is_written).map(|(used, _)| used);
    let is_expected = with(|state| {
        // The server does the work deferred by the last change of windows after this slice.
        state.windows_changed || footprint.used().any(|(used, _)| state.presented.contains(used))
    });
    // A pixmap without a name may have been presented under its former name.
    is_expected != Some(false) || written().any(|used| used.id == 0 || server.is_watched(used))
}

/// Returns true if pixman draws this RENDER Composite. Pixman draws nothing if the area of the source or the mask, with
/// the margin that its filter reads, exceeds 16 bits.
fn fits_pixman(request: &[u8], rows: u32) -> bool {
    const AROUND: i64 = 8;
    let fits = |at: i64| i16::try_from(at).is_ok();
    let mut tops = [22, 26].map(|at| i64::from(i16_at(request, at))).into_iter();
    tops.all(|top| fits(top - AROUND) && fits(top + i64::from(rows) + AROUND))
}

/// Returns true if a client waits for a font, and will draw text later without a request.
fn owes_text(server: &CutServer) -> bool {
    let Ok(symbols) = symbols() else { return true };
    symbols.live_clients().any(|client| server.owes_text(client))
}

impl Footprint {
    /// Returns true if only requests can see or change what this request touches.
    fn is_private(&self) -> bool {
        let is_private = |used: &Used| used.is_private != 0 && !(used.is_window != 0 && used.has_inferiors != 0);
        !self.is_unknown() && self.used().all(|(used, _)| is_private(used))
    }

    /// Returns true if a part could see what an earlier one has drawn. The parts of a copy within one drawable are
    /// ordered so that they cannot.
    fn reads_what_it_writes(&self, is_copy: bool) -> bool {
        let read = || self.used().filter(|(_, is_written)| !is_written);
        self.used().filter(|(_, is_written)| *is_written).any(|(written, _)| {
            read().any(|(read, _)| read.backing == written.backing && !(is_copy && read.drawable == written.drawable))
        })
    }
}
