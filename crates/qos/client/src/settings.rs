// SPDX-License-Identifier: MIT
//! The requests that change settings, with shorthands for settings whose values have units.

use crate::{Control, Result};
use xqos_abi::{ReservationKind, Setting, SettingKind, Subject};

impl Control {
    /// Sets a property of a client, a group or the server; client 0 is this connection.
    pub fn set(&self, subject: Subject, setting: Setting) -> Result<()> {
        self.send(self.subject(subject).set(setting))
    }

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

    /// Sets the pacing of clients that uncover others: they wait for at most `limit_us` per Expose (0: no pacing), and
    /// continue at least once per `floor_us`.
    pub fn set_pacing(&self, limit_us: u32, floor_us: u32) -> Result<()> {
        self.set(Subject::Server, Setting::pacing(limit_us, floor_us))
    }
}
