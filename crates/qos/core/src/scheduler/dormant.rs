// SPDX-License-Identifier: MIT
//! Dormancy: the driver reports only what was served, and the queues stay as they are.
//!
//! A decision is not needed while the server's own order is used, or while a single client is ready whose slice no
//! arrival would end. The driver then reports no arrivals. It calls [`Scheduler::served_dormant`] for each service, and
//! [`Scheduler::awaken`] before the next fact that is not an event of a client.

use super::{LONG_SLICE_NS, Scheduler};
use crate::pacing::SETTLING_NS;
use crate::policy::Served;
use crate::{ClientId, Mode, Service, Time};

impl Scheduler {
    /// True if the driver need not report arrivals, as long as only these clients are ready.
    pub fn can_be_dormant(&self, ready: &[ClientId], now: Time) -> bool {
        let nobody_first = self.ready_count() == 0
            && self.overran_ns == 0
            && self.reservation_count == 0
            && self.caps.is_empty()
            && self.grab.is_none()
            && !self.pacing.is_on()
            && self.paced.peek().is_none();
        let has_whole_slices = |&id: &ClientId| self.slice_us(id) == 0 && !self.policy.has_head_start(id);
        let nobody_ends_it = ready.len() <= 1
            && ready.iter().all(has_whole_slices)
            && self.policy.needs_contention()
            && self.watched == 0
            && self.desktop.members.is_empty()
            && !self.had_long_slice(now);
        nobody_first && (self.is_servers_choice() || nobody_ends_it)
    }

    /// A slice of this client begins, and no other client is ready.
    pub fn dormant_slice_begins(&mut self, client: ClientId, now: Time) {
        if !self.is_servers_choice() {
            let idle_ns = self.client(client).map_or(0, |record| now.since(record.idle_since));
            self.policy.ready(client, idle_ns);
            self.policy.picked(client, 1, now);
        }
    }

    /// Records the service of a client that arrived at `arrived` and has no more requests.
    pub fn served_dormant(&mut self, service: &Service, arrived: Time) {
        let is_free = self.is_servers_choice();
        let is_desktop = self.is_desktop_client(service.client);
        let Some(record) = self.client_mut(service.client) else { return };
        let length_ns = service.end.since(service.start);
        record.account(service, arrived, Mode::BestEffort);
        let has_answered = service.requests > 0 && record.exposing.is_some();
        if is_free && !is_desktop {
            record.unpaid_ns = record.unpaid_ns.saturating_add(length_ns);
        }
        if !core::mem::replace(&mut record.is_unsettled, true) {
            self.unsettled.push(service.client);
        }
        if length_ns > LONG_SLICE_NS {
            self.last_long_slice = Some(service.end);
        }
        if is_desktop {
            self.charge_cause(service.client, length_ns, service.end);
        } else if !is_free {
            let served = Served { length_ns, requests: service.requests, bytes: service.bytes };
            self.policy.served(service.client, &served);
        } else if self.policy.has_head_start(service.client) {
            // It is used up.
            self.policy.picked(service.client, 1, service.start);
        }
        if has_answered {
            self.redrawn(service.client, service.end);
        }
    }

    /// Brings the payments and queues up to date.
    pub fn awaken(&mut self, now: Time) {
        while let Some(client) = self.unsettled.pop() {
            let Some(record) = self.client_mut(client) else { continue };
            record.is_unsettled = false;
            let length_ns = core::mem::take(&mut record.unpaid_ns);
            if length_ns > 0 {
                self.policy.served_freely(client, length_ns);
            }
            self.requeue(client, now);
        }
    }

    /// The client has been served after an Expose. If it was redrawing at the Expose, only its next service answers it.
    pub(super) fn redrawn(&mut self, client: ClientId, at: Time) {
        let mark = self.client_mut(client).and_then(|record| record.exposing.as_mut());
        match mark.filter(|mark| mark.mid_redraw && !mark.redraw_ended) {
            Some(mark) => mark.redraw_ended = true,
            None => self.answered(client, at, SETTLING_NS),
        }
    }
}
