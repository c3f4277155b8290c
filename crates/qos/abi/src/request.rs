// SPDX-License-Identifier: MIT
//! Constructors of requests and settings.

use crate::protocol::{Request, Setting, SettingKind};
use crate::values::{Subject, reservation};
use xqos_core::{Pacing, ReservationKind};
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
    /// Makes a [`Setting::Reservation`] from times in microseconds, the unit on the wire.
    pub fn reservation(budget_us: u32, period_us: u32, kind: impl Into<ReservationKind>) -> Setting {
        Setting::Reservation(reservation(budget_us, period_us, kind))
    }

    /// Makes a [`Setting::Pacing`] from times in microseconds, the unit on the wire.
    pub fn pacing(limit_us: u32, floor_us: u32) -> Setting {
        let [limit_ns, floor_ns] = [limit_us, floor_us].map(|us| u64::from(us) * 1000);
        Setting::Pacing(Pacing { limit_ns, floor_ns })
    }
}

#[cfg(test)]
mod tests;
