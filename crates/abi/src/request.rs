// SPDX-License-Identifier: MIT
//! Parts of requests other than numbers: subjects, settings, and changes of the policy.
//!
//! The caller passes a whole request of the length in its header, so only the length for its kind is checked here.
//! Errors have the names of X errors.

use crate::bytes::{Order, Reader, Writer};
use crate::label::Label;
use crate::protocol::{Grouping, Paced, Request, Setting, SettingKind};
use crate::us;
use crate::wire::{Field, Word};
use xqos_core::{DEFAULT_SHARE_PPM, Pacing, PolicyKind, Reservation, ReservationKind};

/// An error in a request, as an X error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// BadLength.
    Length,
    /// BadRequest: unknown minor opcode.
    Opcode,
    /// BadValue, with the value.
    Value(u32),
}

impl Request {
    /// The request's bytes in this machine's order; byte 0 is the major opcode.
    pub fn encode(&self, major_opcode: u8) -> Vec<u8> {
        self.encode_as(major_opcode, Order::Native)
    }
}

/// The subject of a setting. A client is named by any of its resource ids; 0 is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Client(u32),
    Group(u32),
    Server,
}

impl Subject {
    pub fn set(self, setting: Setting) -> Request {
        Request::Set { subject: self, setting }
    }

    pub fn clear(self, setting: SettingKind) -> Request {
        Request::Clear { subject: self, setting }
    }

    /// The named client; 0: none, or the sender.
    pub fn client(self) -> u32 {
        match self {
            Subject::Client(client) | Subject::Group(client) => client,
            Subject::Server => 0,
        }
    }

    /// Replaces client 0 with `own`: on the control socket the sender is not a client.
    pub fn named(self, own: u32) -> Subject {
        match self {
            Subject::Client(0) => Subject::Client(own),
            Subject::Group(0) => Subject::Group(own),
            other => other,
        }
    }
}

impl Field<8> for Subject {
    fn put(&self, out: &mut Writer) {
        let kind: u32 = match self {
            Subject::Client(_) => 0,
            Subject::Group(_) => 1,
            Subject::Server => 2,
        };
        kind.put(out);
        self.client().put(out);
    }

    fn get(read: &mut Reader<'_>) -> Result<Subject, RequestError> {
        let (kind, client) = (u32::get(read)?, u32::get(read)?);
        match kind {
            0 => Ok(Subject::Client(client)),
            1 => Ok(Subject::Group(client)),
            2 => Ok(Subject::Server),
            _ => Err(RequestError::Value(kind)),
        }
    }
}

/// A client or a group without a reservation.
pub const NO_RESERVATION: Reservation = Reservation { budget_ns: 0, period_ns: 0, kind: ReservationKind::Soft };

/// A reservation in microseconds, the unit on the wire.
pub fn reservation(budget_us: u32, period_us: u32, kind: impl Into<ReservationKind>) -> Reservation {
    let [budget_ns, period_ns] = [budget_us, period_us].map(|us| u64::from(us) * 1000);
    Reservation { budget_ns, period_ns, kind: kind.into() }
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

impl Field<12> for Reservation {
    fn put(&self, out: &mut Writer) {
        us(self.budget_ns).put(out);
        us(self.period_ns).put(out);
        self.kind.put(out);
    }

    fn get(read: &mut Reader<'_>) -> Result<Reservation, RequestError> {
        Ok(reservation(u32::get(read)?, u32::get(read)?, ReservationKind::get(read)?))
    }
}

impl Field<8> for Pacing {
    fn put(&self, out: &mut Writer) {
        us(self.limit_ns).put(out);
        us(self.floor_ns).put(out);
    }

    fn get(read: &mut Reader<'_>) -> Result<Pacing, RequestError> {
        let [limit_ns, floor_ns] = [u32::get(read)?, u32::get(read)?].map(|us| u64::from(us) * 1000);
        Ok(Pacing { limit_ns, floor_ns })
    }
}

/// The values that a SetPolicy changes; `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    pub policy: Option<PolicyKind>,
    pub slice_us: Option<u32>,
    pub timer_interval_us: Option<u32>,
    pub maximum_slice_us: Option<u32>,
    pub max_utilization_ppm: Option<u32>,
    /// 0: use the observed blocking time.
    pub blocking_us: Option<u32>,
}

/// Encoded as a mask, followed by one word for each bit.
impl Field<28> for PolicyChange {
    fn put(&self, out: &mut Writer) {
        let &PolicyChange { policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us } =
            self;
        let policy = policy.map(Word::word);
        let words = [policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us];
        let mask: u32 = (0..).zip(words).filter(|(_, word)| word.is_some()).map(|(bit, _)| 1 << bit).sum();
        mask.put(out);
        words.iter().for_each(|word| word.unwrap_or(0).put(out));
    }

    fn get(read: &mut Reader<'_>) -> Result<PolicyChange, RequestError> {
        let mask = u32::get(read)?;
        let mut words = [None; 6];
        for (bit, place) in (0..).zip(&mut words) {
            *place = Some(u32::get(read)?).filter(|_| mask & (1 << bit) != 0);
        }
        if mask >> words.len() != 0 {
            return Err(RequestError::Value(mask));
        }
        let [policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us] = words;
        let policy = policy.map(|code| PolicyKind::from_word(code).ok_or(RequestError::Value(code))).transpose()?;
        Ok(PolicyChange { policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us })
    }
}

impl Field<32> for Label {
    fn put(&self, out: &mut Writer) {
        out.raw(self.bytes());
    }

    fn get(read: &mut Reader<'_>) -> Result<Label, RequestError> {
        Ok(Label::read(read.bytes(32)?))
    }
}

#[cfg(test)]
mod tests;
