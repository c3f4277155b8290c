// SPDX-License-Identifier: MIT
//! Queries: settings, reservations, ready clients, and each client's accounting.

use super::{ClientRecord, Scheduler};
use crate::desktop::Role;
use crate::policy::PolicyKind;
use crate::{ClientId, Contest, GroupId, Holder, Parameters, Reservation, ReservationState, Time, Usage};

impl Scheduler {
    pub fn policy(&self) -> PolicyKind {
        self.policy.kind()
    }

    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    pub fn client_count(&self) -> usize {
        self.connected
    }

    pub fn reservations(&self) -> impl Iterator<Item = (Holder, Reservation)> + '_ {
        self.reservations.iter().map(|(holder, state, _)| (holder, state.reservation))
    }

    pub fn group_reservation(&self, group: GroupId) -> Option<ReservationState> {
        self.reservations.get(Holder::Group(group)).copied()
    }

    /// The reservation that serves a client: its own or that of its group.
    pub fn reservation_in_use(&self, client: ClientId) -> Option<ReservationState> {
        self.reservations.state_of(client).copied()
    }

    pub fn shares_reservation(&self, client: ClientId) -> bool {
        self.reservations.is_shared(client)
    }

    pub fn reservation_count(&self) -> usize {
        self.reservation_count
    }

    /// The sum of Q/T of all reservations, in millionths.
    pub fn admitted_utilization_ppm(&self) -> u32 {
        self.admitted_ppm
    }

    /// U of the admission test, limited to the server's own share of the processor.
    pub fn limit_ppm(&self) -> u32 {
        self.parameters.max_utilization_ppm.min(self.supply.share_ppm())
    }

    /// B of the admission test, including the gaps in the server's own processor time.
    pub fn blocking_ns(&self, now: Time) -> u64 {
        let blocking_ns = match self.parameters.blocking_ns {
            0 => self.blocking_observed_ns(now),
            configured => configured,
        };
        blocking_ns.saturating_add(self.supply.gap_ns())
    }

    pub fn blocking_observed_ns(&self, now: Time) -> u64 {
        self.blocking.observed_ns(now)
    }

    /// The current state of a client's own reservation.
    pub fn reservation(&self, client: ClientId) -> Option<ReservationState> {
        self.reservation_in_use(client).filter(|_| !self.reservations.is_shared(client))
    }

    pub fn usage(&self, client: ClientId) -> Option<Usage> {
        Some(self.client(client)?.usage)
    }

    /// The maximum length of a client's slices; 0: that of the policy.
    pub fn slice_us(&self, client: ClientId) -> u32 {
        self.client(client).map_or(0, |record| record.slice_us)
    }

    /// The weight (in hundredths) and the fixed priority of a client.
    pub fn weight_and_priority(&self, client: ClientId) -> Option<(u32, i32)> {
        self.client(client).map(|record| (record.facts.weight, record.facts.fixed_priority))
    }

    pub fn role(&self, client: ClientId) -> Role {
        self.client(client).map_or(Role::NONE, |record| record.role)
    }

    pub fn works_for(&self, client: ClientId) -> Option<ClientId> {
        self.client(client)?.works_for
    }

    /// The largest share of compositors and window managers under contention, in millionths; 0: the desktop rule is
    /// off.
    pub fn desktop_share_ppm(&self) -> u32 {
        self.desktop.share_ppm
    }

    /// True if the last [`Fact::Contention`](crate::Fact::Contention) reported contention, and before the first one.
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// The time from which compositors and window managers are served before other clients.
    pub fn desktop_turn(&self, now: Time) -> Time {
        self.desktop.turn_from(now)
    }

    /// The time until which the server waits for the next request of the client just served; `None`: it does not wait.
    /// It waits only for compositors and window managers, during their turn.
    pub fn next_request_of(&self, served: ClientId, now: Time) -> Option<Time> {
        let nobody_first = self.reservations.first().is_none() && self.desktop.ready.len() == 0 && self.grab.is_none();
        let waits = !self.is_servers_choice()
            && self.is_desktop_client(served)
            && nobody_first
            && !self.is_ready(served)
            && self.others_wait();
        self.desktop.waits_until(now).filter(|_| waits)
    }

    pub fn is_ready(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.ready)
    }

    /// True if the driver watches the client's socket and the client has not become ready since.
    pub fn is_watched(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.watched)
    }

    /// Which arrivals end the current slice early.
    pub fn contest(&self) -> &Contest {
        &self.contest
    }

    pub fn watched_count(&self) -> usize {
        self.watched
    }

    /// The number of ready clients that are not held back.
    pub fn ready_count(&self) -> usize {
        let is_queued = |&id: &ClientId| self.waiting.contains(id) || self.desktop.ready.contains(id);
        let others = self.reservations.ready().filter(|id| !is_queued(id));
        self.waiting.len() + self.desktop.ready.len() + others.count()
    }

    /// True if the cap of a client's group is used up. The client is then held back unless it has reservation budget.
    pub fn is_capped(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.capped)
    }

    pub fn is_cap_used_up(&self, group: GroupId) -> bool {
        self.caps.is_used_up(group)
    }

    pub fn has_caps(&self) -> bool {
        !self.caps.is_empty()
    }

    /// The cap of a group, in millionths; 0: none.
    pub fn cap_ppm(&self, group: GroupId) -> u32 {
        self.caps.ppm(group)
    }

    pub fn grab_began(&self) -> Option<Time> {
        self.client(self.grab?)?.grabbed_at
    }

    pub fn grab(&self) -> Option<ClientId> {
        self.grab
    }

    /// Memory used for clients, except for the policy's few bytes per client.
    pub fn memory_bytes(&self) -> usize {
        let queues = [
            self.waiting.memory_bytes(),
            self.desktop.ready.memory_bytes(),
            self.idle.memory_bytes(),
            self.paced.memory_bytes(),
        ];
        let reservations = self.reservations.memory_bytes() + self.unsettled.capacity() * size_of::<ClientId>();
        self.clients.capacity() * size_of::<Option<ClientRecord>>() + queues.iter().sum::<usize>() + reservations
    }

    /// The next time at which [`Fact::Replenish`](crate::Fact::Replenish) has an effect.
    pub fn next_replenish(&self) -> Option<Time> {
        let hold = self.paced.peek().map(|(at, _)| at);
        hold.into_iter().chain(self.caps.next()).chain(self.reservations.next_replenish()).min()
    }

    /// True if a client must not be served now: it is paced, its hard reservation (or that of its group) is depleted,
    /// or its group's cap is used up and it has no reservation budget. The holder of the server grab is never held
    /// back, because all clients wait for it.
    pub fn is_held_back(&self, client: ClientId) -> bool {
        let reserved = self.reservations.state_of(client);
        let is_depleted = reserved.is_none_or(|state| state.depleted);
        let is_out =
            |record: &ClientRecord| record.paced.is_some() || is_depleted && (record.capped || self.has_hard(client));
        self.grab != Some(client) && self.client(client).is_some_and(is_out)
    }

    /// True if a client's reservation, its own or its group's, is hard.
    pub(super) fn has_hard(&self, client: ClientId) -> bool {
        self.reservations.state_of(client).is_some_and(|state| state.reservation.kind.is_hard())
    }

    /// The latest end of a paced client's hold.
    pub fn paced_until(&self, client: ClientId) -> Option<Time> {
        Some(self.client(client)?.paced?.until)
    }

    /// True from an Expose until the client has answered it or the limit has passed.
    pub fn is_exposing(&self, client: ClientId, now: Time) -> bool {
        now < self.exposing_until(client)
    }

    /// The time by which a client should answer its last Expose; 0 if it has answered.
    pub fn exposing_until(&self, client: ClientId) -> Time {
        self.client(client).and_then(|record| record.exposing).map_or(Time(0), |mark| mark.until)
    }
}
