// SPDX-License-Identifier: MIT
//! Spellings of the one request that sets something.

use crate::{Control, Result};
use xqos_abi::{Grouping, Label, Paced, ReservationKind, Setting, SettingKind, Subject};

impl Control {
    /// Everything that is set of a client, a group or the server; client 0 is this connection.
    pub fn set(&self, subject: Subject, setting: Setting) -> Result<()> {
        self.send(self.subject(subject).set(setting))
    }

    /// Sets it to what it is at first.
    pub fn clear(&self, subject: Subject, setting: SettingKind) -> Result<()> {
        self.send(self.subject(subject).clear(setting))
    }

    /// `client` 0 is this connection.
    pub fn reserve(&self, client: u32, budget_us: u32, period_us: u32, kind: impl Into<ReservationKind>) -> Result<()> {
        self.set(Subject::Client(client), Setting::reservation(budget_us, period_us, kind))
    }

    pub fn release(&self, client: u32) -> Result<()> {
        self.clear(Subject::Client(client), SettingKind::Reservation)
    }

    /// `weight` in hundredths.
    pub fn set_weight(&self, client: u32, weight: u32) -> Result<()> {
        self.set(Subject::Client(client), Setting::Weight(weight))
    }

    pub fn set_priority(&self, client: u32, priority: i32) -> Result<()> {
        self.set(Subject::Client(client), Setting::Priority(priority))
    }

    /// Clients that uncover others wait for them: for each Expose at most `limit_us` (0: nobody waits), and they come on
    /// once in `floor_us` at least.
    pub fn set_pacing(&self, limit_us: u32, floor_us: u32) -> Result<()> {
        self.set(Subject::Server, Setting::pacing(limit_us, floor_us))
    }

    /// Clients that work for others go first, and get at most `share_ppm` of the server while others wait; 0: they are served
    /// like all others.
    pub fn set_desktop_share(&self, share_ppm: u32) -> Result<()> {
        self.set(Subject::Server, Setting::Desktop(share_ppm))
    }

    /// `user_limit_ppm`: the most that the reservations of one user may sum up to; 0: no limit of its own.
    pub fn set_groups(&self, grouping: Grouping, user_limit_ppm: u32) -> Result<()> {
        self.set(Subject::Server, Setting::UserLimit(user_limit_ppm))?;
        self.set(Subject::Server, Setting::Grouping(grouping))
    }

    /// Puts a client into the group of this name; empty: into that of the grouping.
    pub fn set_client_group(&self, client: u32, name: &str) -> Result<()> {
        self.set(Subject::Client(client), Setting::Group(Label::new(name)))
    }

    /// Of a client's group, in hundredths; 0: that of its heaviest client.
    pub fn set_group_weight(&self, client: u32, weight: u32) -> Result<()> {
        self.set(Subject::Group(client), Setting::Weight(weight))
    }

    /// The most that a client's group gets, millionths; 0: no cap.
    pub fn set_group_cap(&self, client: u32, ppm: u32) -> Result<()> {
        self.set(Subject::Group(client), Setting::Cap(ppm))
    }

    /// Whether a client waits for those that it uncovers.
    pub fn set_client_pacing(&self, client: u32, paced: Paced) -> Result<()> {
        self.set(Subject::Client(client), Setting::Paced(paced))
    }

    /// A reservation that the clients of a client's group use together.
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
