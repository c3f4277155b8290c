// SPDX-License-Identifier: MIT
//! Fields of requests that are more than a number: subjects, reservations, pacing, and changes of the policy.

use crate::bytes::{ByteReader, ByteWriter, Malformed};
use crate::us;
use crate::wire::{WireField, Word};
use xqos_core::{Pacing, PolicyKind, Reservation, ReservationKind};

/// The subject of a setting. A client is named by any of its resource ids; 0 is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Client(u32),
    Group(u32),
    Server,
}

impl Subject {
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

impl WireField<8> for Subject {
    fn put(&self, out: &mut ByteWriter) {
        let kind: u32 = match self {
            Subject::Client(_) => 0,
            Subject::Group(_) => 1,
            Subject::Server => 2,
        };
        kind.put(out);
        self.client().put(out);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<Subject, Malformed> {
        let (kind, client) = (u32::get(read)?, u32::get(read)?);
        match kind {
            0 => Ok(Subject::Client(client)),
            1 => Ok(Subject::Group(client)),
            2 => Ok(Subject::Server),
            _ => Err(Malformed::Value(kind)),
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

impl WireField<12> for Reservation {
    fn put(&self, out: &mut ByteWriter) {
        us(self.budget_ns).put(out);
        us(self.period_ns).put(out);
        self.kind.put(out);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<Reservation, Malformed> {
        Ok(reservation(u32::get(read)?, u32::get(read)?, ReservationKind::get(read)?))
    }
}

impl WireField<8> for Pacing {
    fn put(&self, out: &mut ByteWriter) {
        us(self.limit_ns).put(out);
        us(self.floor_ns).put(out);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<Pacing, Malformed> {
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
impl WireField<28> for PolicyChange {
    fn put(&self, out: &mut ByteWriter) {
        let &PolicyChange { policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us } =
            self;
        let policy = policy.map(Word::word);
        let words = [policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us];
        let mask: u32 = (0..).zip(words).filter(|(_, word)| word.is_some()).map(|(bit, _)| 1 << bit).sum();
        mask.put(out);
        words.iter().for_each(|word| word.unwrap_or(0).put(out));
    }

    fn get(read: &mut ByteReader<'_>) -> Result<PolicyChange, Malformed> {
        let mask = u32::get(read)?;
        let mut words = [None; 6];
        for (bit, place) in (0..).zip(&mut words) {
            *place = Some(u32::get(read)?).filter(|_| mask & (1 << bit) != 0);
        }
        if mask >> words.len() != 0 {
            return Err(Malformed::Value(mask));
        }
        let [policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us] = words;
        let policy = policy.map(|code| PolicyKind::from_word(code).ok_or(Malformed::Value(code))).transpose()?;
        Ok(PolicyChange { policy, slice_us, timer_interval_us, maximum_slice_us, max_utilization_ppm, blocking_us })
    }
}
