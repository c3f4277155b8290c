// SPDX-License-Identifier: MIT
//! What there is to see: settings, reservations, who is ready, and each client's accounting.

use super::{Client, Scheduler};
use crate::desktop::Role;
use crate::policy::PolicyKind;
use crate::{ClientId, GroupId, Holder, Parameters, Reservation, ReservationState, Time, Usage};

impl Scheduler {
    /// The policy.
    pub fn policy(&self) -> PolicyKind {
        self.policy.kind()
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Connected clients.
    pub fn client_count(&self) -> usize {
        self.connected
    }

    /// All reservations.
    pub fn reservations(&self) -> impl Iterator<Item = (Holder, Reservation)> + '_ {
        self.reservations.iter().map(|(holder, state, _)| (holder, state.reservation))
    }

    /// A group's reservation as it stands.
    pub fn group_reservation(&self, group: GroupId) -> Option<ReservationState> {
        self.reservations.get(Holder::Group(group)).copied()
    }

    /// The reservation from which a client is served: its own, or that of its group.
    pub fn reservation_in_use(&self, client: ClientId) -> Option<ReservationState> {
        self.reservations.state_of(client).copied()
    }

    /// Whether a client is served from the reservation of its group.
    pub fn shares_reservation(&self, client: ClientId) -> bool {
        self.reservations.is_shared(client)
    }

    /// How many reservations there are, of clients and groups.
    pub fn reservation_count(&self) -> usize {
        self.reservation_count
    }

    /// Sum of Q/T, millionths.
    pub fn admitted_utilization_ppm(&self) -> u32 {
        self.admitted_ppm
    }

    /// U as the admission test uses it: what may be promised of what the server gets itself.
    pub fn limit_ppm(&self) -> u32 {
        self.parameters.max_utilization_ppm.min(self.supply.share_ppm())
    }

    /// B as the admission test would use it now, the gaps in what the server gets included.
    pub fn blocking_ns(&self, now: Time) -> u64 {
        let blocking_ns = match self.parameters.blocking_ns {
            0 => self.blocking_observed_ns(now),
            configured => configured,
        };
        blocking_ns.saturating_add(self.supply.gap_ns())
    }

    /// The longest blocking observed lately.
    pub fn blocking_observed_ns(&self, now: Time) -> u64 {
        self.blocking.observed_ns(now)
    }

    /// A client's reservation as it stands.
    pub fn reservation(&self, client: ClientId) -> Option<ReservationState> {
        self.reservation_in_use(client).filter(|_| !self.reservations.is_shared(client))
    }

    /// A client's accounting.
    pub fn usage(&self, client: ClientId) -> Option<Usage> {
        Some(self.client(client)?.usage)
    }

    /// The longest slice of a client; 0: as long as the policy's.
    pub fn slice_us(&self, client: ClientId) -> u32 {
        self.client(client).map_or(0, |record| record.slice_us)
    }

    /// Weight (hundredths) and fixed priority of a client.
    pub fn weight_and_priority(&self, client: ClientId) -> Option<(u32, i32)> {
        self.client(client).map(|record| (record.facts.weight, record.facts.fixed_priority))
    }

    /// What a client does for others.
    pub fn role(&self, client: ClientId) -> Role {
        self.client(client).map_or(Role::NONE, |record| record.role)
    }

    /// For whom a window manager works.
    pub fn works_for(&self, client: ClientId) -> Option<ClientId> {
        self.client(client)?.works_for
    }

    /// Whether a client is served as one that works for others.
    pub fn works_for_others(&self, client: ClientId) -> bool {
        self.is_desktop(client)
    }

    /// The most that clients that work for others get while somebody else waits, millionths; 0: the desktop rule is off.
    pub fn desktop_share_ppm(&self) -> u32 {
        self.desktop.share_ppm
    }

    /// Whether the last fact about it told of contention.
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// From when on clients that work for others go before them.
    pub fn desktop_turn(&self, now: Time) -> Time {
        self.desktop.turn_from(now)
    }

    /// The client whose next request is to be waited for before anybody else is served, and until when: it works for
    /// others, was served last, and its turn goes on.
    pub fn next_request_of(&self, served: ClientId, now: Time) -> Option<Time> {
        let nobody_first = self.next_reserved().is_none() && self.desktop.ready.len() == 0 && self.grab.is_none();
        let waits = !self.is_servers_choice()
            && self.is_desktop(served)
            && nobody_first
            && !self.is_ready(served)
            && self.others_wait();
        self.desktop.waits_until(now).filter(|_| waits)
    }

    /// True where the client has work.
    pub fn is_ready(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.ready)
    }

    /// True where somebody was told to watch the client's socket and it has not arrived since.
    pub fn is_watched(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.watched)
    }

    /// How many clients are watched.
    pub fn watched_count(&self) -> usize {
        self.watched
    }

    /// How many clients are ready and not held back.
    pub fn ready_count(&self) -> usize {
        let is_queued = |&id: &ClientId| self.waiting.contains(id) || self.desktop.ready.contains(id);
        let others = self.reservations.ready().filter(|id| !is_queued(id));
        self.waiting.len() + self.desktop.ready.len() + others.count()
    }

    /// Whether the cap of a client's group is used up, and it is held back for that unless it has budget of a reservation.
    pub fn is_capped(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|record| record.capped)
    }

    /// Whether a group has used up its cap.
    pub fn is_cap_used_up(&self, group: GroupId) -> bool {
        self.caps.is_used_up(group)
    }

    /// Whether any group has a cap.
    pub fn has_caps(&self) -> bool {
        !self.caps.is_empty()
    }

    /// The cap of a group, millionths; 0: it has none.
    pub fn cap_ppm(&self, group: GroupId) -> u32 {
        self.caps.iter().find(|cap| cap.group == group).map_or(0, |cap| cap.ppm)
    }

    /// Since when somebody holds the server grab.
    pub fn grab_began(&self) -> Option<Time> {
        self.client(self.grab?)?.grabbed_at
    }

    /// Who holds the server grab.
    pub fn grab(&self) -> Option<ClientId> {
        self.grab
    }

    /// Memory taken for clients, without the policy's few bytes for each.
    pub fn memory_bytes(&self) -> usize {
        let queues = [
            self.waiting.memory_bytes(),
            self.desktop.ready.memory_bytes(),
            self.idle.memory_bytes(),
            self.paced.memory_bytes(),
        ];
        let reservations = self.reservations.memory_bytes();
        self.clients.capacity() * size_of::<Option<Client>>() + queues.iter().sum::<usize>() + reservations
    }

    /// When [`Fact::Replenish`] has something to do next.
    pub fn next_replenish(&self) -> Option<Time> {
        let hold = self.paced.peek().map(|(at, _)| at);
        hold.into_iter().chain(self.caps.next()).chain(self.reservations.next_replenish()).min()
    }

    /// True for one with a depleted hard reservation, its own or its group's, one whose group has used up its cap and that has no
    /// budget, and a paced one: not to be served until it is replenished or let go. Who holds the server grab is never held back, since
    /// everybody waits for it.
    pub fn is_held_back(&self, client: ClientId) -> bool {
        let reserved = self.reservations.state_of(client);
        let is_depleted = reserved.is_none_or(|state| state.depleted);
        let is_out =
            |record: &Client| record.paced.is_some() || is_depleted && (record.capped || self.has_hard(client));
        self.grab != Some(client) && self.client(client).is_some_and(is_out)
    }

    /// Whether a client's reservation, its own or its group's, is a hard one.
    pub(super) fn has_hard(&self, client: ClientId) -> bool {
        self.reservations.state_of(client).is_some_and(|state| state.reservation.kind.is_hard())
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
}
