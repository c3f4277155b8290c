// SPDX-License-Identifier: MIT
//! The event XqosNotify: written by the module, read by clients of our own.

use crate::bytes::{Order, Reader, Short, Writer};

/// What an XqosNotify tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyKind {
    ClientConnected,
    ClientGone,
    ReservationSet,
    ReservationCleared,
    Depleted,
    Missed,
    /// An Expose was delivered to it.
    Exposing,
    /// It has redrawn, or answered input.
    Answered,
    /// User input was delivered to it while somebody else has to redraw.
    Input,
    /// Its weight, priority or group was set.
    Settings,
}

impl NotifyKind {
    pub(crate) const ALL: [NotifyKind; 10] = [
        NotifyKind::ClientConnected,
        NotifyKind::ClientGone,
        NotifyKind::ReservationSet,
        NotifyKind::ReservationCleared,
        NotifyKind::Depleted,
        NotifyKind::Missed,
        NotifyKind::Exposing,
        NotifyKind::Answered,
        NotifyKind::Input,
        NotifyKind::Settings,
    ];

    /// The bit of SelectEvents that asks for it.
    pub fn mask(self) -> u32 {
        use crate::request::event_mask;
        match self {
            NotifyKind::ClientConnected | NotifyKind::ClientGone => event_mask::CLIENTS,
            NotifyKind::ReservationSet | NotifyKind::ReservationCleared => event_mask::RESERVATIONS,
            NotifyKind::Depleted => event_mask::DEPLETIONS,
            NotifyKind::Missed => event_mask::MISSES,
            NotifyKind::Exposing | NotifyKind::Answered | NotifyKind::Input => event_mask::EXPOSES,
            NotifyKind::Settings => event_mask::SETTINGS,
        }
    }
}

/// The event XqosNotify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    pub kind: NotifyKind,
    pub client: u32,
    pub pid: i32,
    pub budget_us: u32,
    pub period_us: u32,
    pub flags: u32,
    pub count: u32,
    pub time_ms: u32,
}

impl Notify {
    pub fn encode(&self, event_base: u8, sequence: u16, order: Order) -> [u8; 32] {
        let code = NotifyKind::ALL.iter().position(|&kind| kind == self.kind).unwrap_or(0);
        let mut out = Writer::new(order);
        out.u8(event_base).u8(code as u8).u16(sequence).u32(self.client).i32(self.pid);
        out.u32(self.budget_us).u32(self.period_us).u32(self.flags).u32(self.count).u32(self.time_ms);
        let mut event = [0; 32];
        event.copy_from_slice(&out.finish());
        event
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(Notify {
            kind: NotifyKind::ALL.get(usize::from(read.u8(1)?)).copied().ok_or(Short)?,
            client: read.u32(4)?,
            pid: read.i32(8)?,
            budget_us: read.u32(12)?,
            period_us: read.u32(16)?,
            flags: read.u32(20)?,
            count: read.u32(24)?,
            time_ms: read.u32(28)?,
        })
    }
}
