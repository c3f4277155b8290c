// SPDX-License-Identifier: MIT
//! Shorthands for the request that changes a setting.

use crate::{Control, Result};
use xqos_abi::{Grouping, Label, Paced, ReservationKind, Setting, SettingKind, Subject};

impl Control {
    /// Sets a property of a client, a group or the server; client 0 is this connection.
    pub fn set(&self, subject: Subject, setting: Setting) -> Result<()> {
        self.send(self.subject(subject).set(setting))
    }

    /// Resets a setting to its initial value.
    pub fn clear(&self, subject: Subject, setting: SettingKind) -> Result<()> {
        self.send(self.subject(subject).clear(setting))
    }

    /// Sets a client's reservation; client 0 is this connection.
    pub fn reserve(&self, client: u32, budget_us: u32, period_us: u32, kind: impl Into<ReservationKind>) -> Result<()> {
        self.set(Subject::Client(client), Setting::reservation(budget_us, period_us, kind))
    }

    pub fn release(&self, client: u32) -> Result<()> {
        self.clear(Subject::Client(client), SettingKind::Reservation)
    }

    /// Sets a client's weight, in hundredths.
    pub fn set_weight(&self, client: u32, weight: u32) -> Result<()> {
        self.set(Subject::Client(client), Setting::Weight(weight))
    }

    pub fn set_priority(&self, client: u32, priority: i32) -> Result<()> {
        self.set(Subject::Client(client), Setting::Priority(priority))
    }

    /// Sets the pacing of clients that uncover others: they wait for at most `limit_us` per Expose (0: no pacing), and
    /// continue at least once per `floor_us`.
    pub fn set_pacing(&self, limit_us: u32, floor_us: u32) -> Result<()> {
        self.set(Subject::Server, Setting::pacing(limit_us, floor_us))
    }

    /// Sets the largest share of compositors and window managers under contention, in millionths; 0: they are served
    /// like other clients.
    pub fn set_desktop_share(&self, share_ppm: u32) -> Result<()> {
        self.set(Subject::Server, Setting::Desktop(share_ppm))
    }

    /// Sets the time after which a long request lets other clients in; 0: requests are not cut.
    pub fn set_cut(&self, part_us: u32) -> Result<()> {
        self.set(Subject::Server, Setting::Cut(part_us))
    }

    /// Sets the grouping. `user_limit_ppm`: the largest sum of one user's reservations; 0: no limit per user.
    pub fn set_groups(&self, grouping: Grouping, user_limit_ppm: u32) -> Result<()> {
        self.set(Subject::Server, Setting::UserLimit(user_limit_ppm))?;
        self.set(Subject::Server, Setting::Grouping(grouping))
    }

    /// Moves a client to the group of this name; an empty name restores the group that the grouping determines.
    pub fn set_client_group(&self, client: u32, name: &str) -> Result<()> {
        self.set(Subject::Client(client), Setting::Group(Label::new(name)))
    }

    /// Sets the weight of a client's group, in hundredths; 0: the weight of its heaviest client.
    pub fn set_group_weight(&self, client: u32, weight: u32) -> Result<()> {
        self.set(Subject::Group(client), Setting::Weight(weight))
    }

    /// Sets the cap of a client's group, in millionths; 0: no cap.
    pub fn set_group_cap(&self, client: u32, ppm: u32) -> Result<()> {
        self.set(Subject::Group(client), Setting::Cap(ppm))
    }

    /// Sets whether a client waits for the clients that it uncovers.
    pub fn set_client_pacing(&self, client: u32, paced: Paced) -> Result<()> {
        self.set(Subject::Client(client), Setting::Paced(paced))
    }

    /// Sets a reservation that the clients of a client's group share.
    pub fn reserve_group(
        &self,
        client: u32,
        budget_us: u32,
        period_us: u32,
        kind: impl Into<ReservationKind>,
    ) -> Result<()> {
        self.set(Subject::Group(client), Setting::reservation(budget_us, period_us, kind))
    }

    /// Ends the reservation of a client's group.
    pub fn release_group(&self, client: u32) -> Result<()> {
        self.clear(Subject::Group(client), SettingKind::Reservation)
    }
}
