// SPDX-License-Identifier: MIT
//! Ways to make requests and settings, and the settings' initial values.

use crate::label::Label;
use crate::protocol::{Grouping, Paced, Request, Setting, SettingKind};
use crate::values::{NO_RESERVATION, Subject, reservation};
use xqos_core::{DEFAULT_SHARE_PPM, Pacing, ReservationKind};
use xqos_x11::ByteOrder;

impl Request {
    /// The request's bytes in this machine's order; byte 0 is the major opcode.
    pub fn encode(&self, major_opcode: u8) -> Vec<u8> {
        self.encode_as(major_opcode, ByteOrder::NATIVE)
    }
}

impl Subject {
    pub fn set(self, setting: Setting) -> Request {
        Request::Set { subject: self, setting }
    }

    pub fn clear(self, setting: SettingKind) -> Request {
        Request::Clear { subject: self, setting }
    }
}

impl Setting {
    /// [`Setting::Reservation`] in microseconds, the unit on the wire.
    pub fn reservation(budget_us: u32, period_us: u32, kind: impl Into<ReservationKind>) -> Setting {
        Setting::Reservation(reservation(budget_us, period_us, kind))
    }

    /// [`Setting::Pacing`] in microseconds, the unit on the wire.
    pub fn pacing(limit_us: u32, floor_us: u32) -> Setting {
        let [limit_ns, floor_ns] = [limit_us, floor_us].map(|us| u64::from(us) * 1000);
        Setting::Pacing(Pacing { limit_ns, floor_ns })
    }
}

impl SettingKind {
    /// The initial value of this setting, which Clear restores. `None` if the subject has no such setting.
    pub fn initial(self, subject: Subject) -> Option<Setting> {
        use Subject::{Client, Group, Server};
        Some(match (self, subject) {
            (SettingKind::Reservation, Client(_) | Group(_)) => Setting::Reservation(NO_RESERVATION),
            (SettingKind::Weight, Client(_)) => Setting::Weight(100),
            // 0 means the weight of the group's heaviest client.
            (SettingKind::Weight, Group(_)) => Setting::Weight(0),
            (SettingKind::Priority, Client(_)) => Setting::Priority(0),
            (SettingKind::Cap, Group(_)) => Setting::Cap(0),
            (SettingKind::Paced, Client(_)) => Setting::Paced(Paced::AsAll),
            (SettingKind::Group, Client(_)) => Setting::Group(Label::default()),
            (SettingKind::Pacing, Server) => Setting::Pacing(Pacing::default()),
            (SettingKind::Desktop, Server) => Setting::Desktop(DEFAULT_SHARE_PPM),
            (SettingKind::Grouping, Server) => Setting::Grouping(Grouping::Application),
            (SettingKind::UserLimit, Server) => Setting::UserLimit(0),
            (SettingKind::Slice, Client(_)) => Setting::Slice(0),
            (SettingKind::Cut, Server) => Setting::Cut(0),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
