// SPDX-License-Identifier: MIT
//! Decides whether a new request is cut, and prepares it.
//!
//! A request is cut only if its parts are exactly the whole: no part may see or change what another one draws.

use super::server::{Image, Used};
use super::{Cut, ReadImage, State};
use crate::host::dix::client::{Client, Head};
use crate::host::dix::order_of;
use crate::host::dix::symbols::RequestProc;
use crate::parts::{Kind, Parts, i16_at, u16_at, u32_at};

/// A request below this part of the limit is not timed. A longer one is, so that its cost becomes known.
pub(super) const UNTIMED: u64 = 4;
/// The images of all pending GetImage requests have at most this many bytes.
const MAX_IMAGE_BYTES: usize = 64 << 20;

/// How a new request is executed.
pub(super) enum Plan {
    Whole,
    /// Short enough, but long enough to learn its cost.
    Timed(Kind, u64),
    Cut(Box<Cut>),
}

impl State {
    pub(super) fn begin(&mut self, client: Client, head: &Head, procedure: RequestProc) -> Plan {
        let (major, minor) = (head.request as u8, (head.request >> 16) as u8);
        let kind = Kind::of(major, minor, self.extensions).filter(|_| self.limit.ns > 0 && head.swapped == 0);
        let Some(kind) = kind else { return Plan::Whole };
        // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
        let request = unsafe { client.request_bytes() };
        let Some(parts) = Parts::of(kind, request) else { return Plan::Whole };
        let limit = self.costs.work(kind);
        if !self.limit.always {
            let work = parts.work_up_to(request, limit + 1);
            if work <= limit {
                return if work < limit / UNTIMED { Plan::Whole } else { Plan::Timed(kind, work) };
            }
        }
        self.cut(client, head, procedure, parts, request).map_or(Plan::Whole, |cut| Plan::Cut(Box::new(cut)))
    }

    /// A request that is to be executed in parts; `None` if its parts are not exactly the whole.
    fn cut(
        &mut self,
        client: Client,
        head: &Head,
        procedure: RequestProc,
        parts: Parts,
        request: &[u8],
    ) -> Option<Cut> {
        let mut exposes = None;
        let mut image = None;
        match parts.kind {
            // Wide arcs that touch are joined, and a dash pattern continues.
            Kind::Arcs => (self.server.context(u32_at(request, 8))?.is_thin != 0).then_some(())?,
            Kind::CopyArea => {
                let context = u32_at(request, 12);
                let [source, written] = [4, 8].map(|at| self.server.drawable(u32_at(request, at)));
                let (source, written, used) = (source?, written?, self.server.context(context)?);
                // With two names of one memory, the server copies one rectangle of the clip after the other, not row by
                // row. Windows are clipped to different parts of the memory unless they include their inferiors.
                let are_apart = source.is_window != 0 && written.is_window != 0 && used.has_inferiors == 0;
                let is_same = source.drawable == written.drawable;
                (is_same || are_apart || source.backing != written.backing).then_some(())?;
                if used.has_exposures != 0 {
                    // Then one NoExpose event is due. It is only certain if all of the source is there.
                    let copied = Image {
                        x: i16_at(request, 16),
                        y: i16_at(request, 18),
                        width: u16_at(request, 24),
                        height: u16_at(request, 26),
                        planes: 0,
                    };
                    self.server.is_within(&source, &copied).then_some(())?;
                    exposes = Some(context);
                }
            }
            Kind::Composite => {
                let pictures = [8, 12].map(|at| self.server.picture(u32_at(request, at)));
                let written = self.server.picture(u32_at(request, 16))?;
                // A part would see what an earlier one has drawn.
                let overlaps = |used: &Used| !used.drawable.is_null() && used.backing == written.backing;
                (!pictures.iter().flatten().any(overlaps)).then_some(())?;
            }
            Kind::GetImage | Kind::ShmGetImage => image = Some(self.image(client, parts, request)?),
            Kind::Trapezoids => parts.has_headers(request).then_some(())?,
            _ => {}
        }
        let header = parts.header_of(request);
        let footprint = self.guard.footprint(&self.server, head.request, request, order_of(client))?;
        Some(Cut {
            client,
            procedure,
            header,
            parts,
            done: 0,
            head: *head,
            footprint,
            image,
            exposes,
            result: None,
            used_ns: 0,
            held_ns: 0,
            longest_ns: 0,
        })
    }

    fn image(&mut self, client: Client, parts: Parts, request: &[u8]) -> Option<ReadImage> {
        let drawable = self.server.drawable(u32_at(request, 4))?;
        let (x, y) = (i16_at(request, 8), i16_at(request, 10));
        let (width, height) = (u16_at(request, 12), u16_at(request, 14));
        let whole = Image { x, y, width, height, planes: u32_at(request, 16) };
        let row_bytes = self.server.row_bytes(client, &drawable, &whole);
        let bytes = (row_bytes as usize).checked_mul(height.into())?;
        let pending: usize = self.rests.iter().flat_map(|rest| &rest.image).map(|image| image.data.len()).sum();
        (row_bytes > 0 && pending + bytes <= MAX_IMAGE_BYTES).then_some(())?;
        let data = if parts.kind == Kind::GetImage {
            let mut data = std::mem::take(&mut self.spare);
            // Without this memory, the server reads the image piece by piece.
            data.try_reserve_exact(bytes.saturating_sub(data.len())).ok()?;
            data.resize(bytes, 0);
            data
        } else {
            Vec::new()
        };
        Some(ReadImage { drawable, whole, row_bytes, data })
    }
}
