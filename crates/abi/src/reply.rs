// SPDX-License-Identifier: MIT
//! Replies: written by the module, read by clients of our own.
//!
//! Each structure has `encode` and `decode` beside each other, field after field at the offsets of `xqosproto.md`.

mod lists;

use crate::bytes::{Order, Reader, Short, Writer};
use crate::request::{Grouping, reservation_flag};
use crate::trace::RECORD_BYTES;
use xqos_core::{PolicyKind, ReservationKind};

pub use lists::{ClientEntry, ClientList, LongRequest, LongestRequests, cut, entry_flag};

/// Reply to QueryVersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(0, sequence, order);
        out.u32(self.major).u32(self.minor);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(Version { major: read.u32(8)?, minor: read.u32(12)? })
    }
}

/// Reply to GetServerInfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// False: xqos stepped aside, the server schedules as if it were not there.
    pub armed: bool,
    pub server_pid: u32,
    pub policy: PolicyKind,
    pub clients: u16,
    pub max_utilization_ppm: u32,
    pub admitted_utilization_ppm: u32,
    pub blocking_observed_us: u32,
    /// 0: the observed one is used.
    pub blocking_configured_us: u32,
    pub min_budget_us: u32,
    pub min_period_us: u32,
    pub max_period_us: u32,
    pub slice_us: u32,
    pub timer_interval_us: u32,
    pub maximum_slice_us: u32,
    pub uptime_ns: u64,
    /// Server time spent for clients.
    pub busy_ns: u64,
    pub decisions: u64,
    /// Slices ended early for a better client.
    pub early_ends: u64,
    pub memory_bytes: u32,
    pub reservations: u32,
    /// How many clients the server can have; 0: nobody has connected yet.
    pub clients_limit: u32,
    /// First resource id of the client that holds the server grab; 0: nobody does.
    pub grab_holder: u32,
    /// Why xqos stepped aside; empty while armed. At most 255 bytes travel.
    pub reason: String,
}

impl ServerInfo {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let reason = &self.reason.as_bytes()[..self.reason.len().min(255)];
        let mut out = header(self.armed.into(), sequence, order);
        out.u32(self.server_pid).u8(self.policy.code()).u8(reason.len() as u8).u16(self.clients);
        for value in [
            self.max_utilization_ppm,
            self.admitted_utilization_ppm,
            self.blocking_observed_us,
            self.blocking_configured_us,
            self.min_budget_us,
            self.min_period_us,
            self.max_period_us,
            self.slice_us,
            self.timer_interval_us,
            self.maximum_slice_us,
        ] {
            out.u32(value);
        }
        out.u64(self.uptime_ns).u64(self.busy_ns).u64(self.decisions).u64(self.early_ends);
        out.u32(self.memory_bytes).u32(self.reservations).u32(self.clients_limit).u32(self.grab_holder).raw(reason);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(ServerInfo {
            armed: read.u8(1)? != 0,
            server_pid: read.u32(8)?,
            // A policy that a later server knows and we do not is shown as the one that decides nothing.
            policy: PolicyKind::from_code(read.u8(12)?).unwrap_or(PolicyKind::Stock),
            clients: read.u16(14)?,
            max_utilization_ppm: read.u32(16)?,
            admitted_utilization_ppm: read.u32(20)?,
            blocking_observed_us: read.u32(24)?,
            blocking_configured_us: read.u32(28)?,
            min_budget_us: read.u32(32)?,
            min_period_us: read.u32(36)?,
            max_period_us: read.u32(40)?,
            slice_us: read.u32(44)?,
            timer_interval_us: read.u32(48)?,
            maximum_slice_us: read.u32(52)?,
            uptime_ns: read.u64(56)?,
            busy_ns: read.u64(64)?,
            decisions: read.u64(72)?,
            early_ends: read.u64(80)?,
            memory_bytes: read.u32(88)?,
            reservations: read.u32(92)?,
            clients_limit: read.u32(96)?,
            grab_holder: read.u32(100)?,
            reason: String::from_utf8_lossy(read.slice(104, read.u8(13)?.into())?).into_owned(),
        })
    }
}

/// Reply to GetReservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationReport {
    pub reserved: bool,
    pub budget_us: u32,
    pub period_us: u32,
    pub kind: ReservationKind,
    pub held_back: bool,
    pub depletions: u32,
    pub budget_left_ns: i64,
    pub deadline_ns: u64,
    pub misses: u32,
}

impl ReservationReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let flags = reservation_flag::of(self.kind) | if self.held_back { reservation_flag::HELD_BACK } else { 0 };
        let mut out = header(self.reserved.into(), sequence, order);
        out.u32(self.budget_us).u32(self.period_us).u32(flags).u32(self.depletions);
        out.i64(self.budget_left_ns).u64(self.deadline_ns).u32(self.misses).pad_to(48);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        let flags = read.u32(16)?;
        Ok(ReservationReport {
            reserved: read.u8(1)? != 0,
            budget_us: read.u32(8)?,
            period_us: read.u32(12)?,
            kind: reservation_flag::kind(flags & !reservation_flag::HELD_BACK).ok_or(Short)?,
            held_back: flags & reservation_flag::HELD_BACK != 0,
            depletions: read.u32(20)?,
            budget_left_ns: read.i64(24)?,
            deadline_ns: read.u64(32)?,
            misses: read.u32(40)?,
        })
    }
}

/// Reply to CheckAdmission: the first term that fails, or the largest one when all hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionReport {
    pub admitted: bool,
    pub failing_client: u32,
    pub failing_period_us: u32,
    pub sum_ppm: u32,
    pub blocking_ppm: u32,
    pub limit_ppm: u32,
    pub blocking_us: u32,
}

impl AdmissionReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(self.admitted.into(), sequence, order);
        out.u32(self.failing_client).u32(self.failing_period_us).u32(self.sum_ppm);
        out.u32(self.blocking_ppm).u32(self.limit_ppm).u32(self.blocking_us);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(AdmissionReport {
            admitted: read.u8(1)? != 0,
            failing_client: read.u32(8)?,
            failing_period_us: read.u32(12)?,
            sum_ppm: read.u32(16)?,
            blocking_ppm: read.u32(20)?,
            limit_ppm: read.u32(24)?,
            blocking_us: read.u32(28)?,
        })
    }
}

/// Reply to StartTrace; the ring's descriptor comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStarted {
    /// Records that fit into the ring.
    pub capacity: u32,
    /// Number of the record to read first: this reader's `Begin`.
    pub first: u64,
}

impl TraceStarted {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        // The data byte says how many descriptors come with the reply.
        let mut out = header(1, sequence, order);
        out.u32(self.capacity).u32(RECORD_BYTES as u32).u64(self.first);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        if read.u32(12)? != RECORD_BYTES as u32 {
            return Err(Short);
        }
        Ok(TraceStarted { capacity: read.u32(8)?, first: read.u64(16)? })
    }
}

/// Reply to GetPacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacingReport {
    /// Longest wait of a client that uncovers others; 0: nobody is paced.
    pub limit_us: u32,
    /// Longest time between two times that such a client comes on.
    pub floor_us: u32,
    /// Clients that have an Expose to answer.
    pub exposing: u32,
    /// Clients that wait for them.
    pub paced: u32,
    /// How often a client was held, since the start.
    pub holds: u32,
}

impl PacingReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(0, sequence, order);
        out.u32(self.limit_us).u32(self.floor_us).u32(self.exposing).u32(self.paced).u32(self.holds);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(PacingReport {
            limit_us: read.u32(8)?,
            floor_us: read.u32(12)?,
            exposing: read.u32(16)?,
            paced: read.u32(20)?,
            holds: read.u32(24)?,
        })
    }
}

/// Reply to GetDesktop: how clients are served that work for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DesktopReport {
    /// The most that they get while somebody else waits, millionths; 0: they are served like all others.
    pub share_ppm: u32,
    /// How many there are.
    pub clients: u32,
}

impl DesktopReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(0, sequence, order);
        out.u32(self.share_ppm).u32(self.clients);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(DesktopReport { share_ppm: read.u32(8)?, clients: read.u32(12)? })
    }
}

/// Reply to GetGroups: which clients are one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupsReport {
    pub grouping: Grouping,
    /// The most that the reservations of one user may sum up to, millionths.
    pub user_limit_ppm: u32,
    /// How many groups there are; clients that stand for themselves are not counted.
    pub groups: u32,
}

impl GroupsReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(self.grouping.code(), sequence, order);
        out.u32(self.user_limit_ppm).u32(self.groups);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(GroupsReport {
            grouping: Grouping::from_code(read.u8(1)?).unwrap_or_default(),
            user_limit_ppm: read.u32(8)?,
            groups: read.u32(12)?,
        })
    }
}

/// Reply to GetProcessor: how the server's thread stands with the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorReport {
    /// It has a real-time priority while it works for a reserved client.
    pub is_lent: bool,
    /// What it gets by a reservation of the kernel; a period of 0: it has none.
    pub budget_us: u32,
    pub period_us: u32,
    /// Most that may be promised of it, millionths.
    pub limit_ppm: u32,
    /// How often it was raised, since the start.
    pub raises: u32,
}

impl ProcessorReport {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(self.is_lent.into(), sequence, order);
        out.u32(self.budget_us).u32(self.period_us).u32(self.limit_ppm).u32(self.raises);
        finish(out, order)
    }

    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(ProcessorReport {
            is_lent: read.u8(1)? != 0,
            budget_us: read.u32(8)?,
            period_us: read.u32(12)?,
            limit_ppm: read.u32(16)?,
            raises: read.u32(20)?,
        })
    }
}

fn header(data: u8, sequence: u16, order: Order) -> Writer {
    let mut out = Writer::new(order);
    out.u8(1).u8(data).u16(sequence).u32(0);
    out
}

/// Pads to a whole reply and fills in the length field.
fn finish(mut out: Writer, order: Order) -> Vec<u8> {
    out.pad_to(32).align();
    let mut bytes = out.finish();
    let units = ((bytes.len() - 32) / 4) as u32;
    let field = if order == Order::Swapped { units.swap_bytes() } else { units };
    bytes[4..8].copy_from_slice(&field.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::lists::{ENTRY_BYTES, LONG_REQUEST_BYTES};
    use super::*;
    use crate::event::{Notify, NotifyKind};

    const ORDERS: [Order; 2] = [Order::Native, Order::Swapped];

    fn info() -> ServerInfo {
        ServerInfo {
            armed: false,
            server_pid: 42,
            policy: PolicyKind::Fair,
            clients: 3,
            max_utilization_ppm: 900_000,
            admitted_utilization_ppm: 300_000,
            blocking_observed_us: 17,
            blocking_configured_us: 0,
            min_budget_us: 100,
            min_period_us: 1000,
            max_period_us: 10_000_000,
            slice_us: 5000,
            timer_interval_us: 5000,
            maximum_slice_us: 15_000,
            uptime_ns: 1 << 40,
            busy_ns: 5,
            decisions: 6,
            early_ends: 7,
            memory_bytes: 8,
            reservations: 1,
            clients_limit: 255,
            grab_holder: 0x20_0000,
            reason: "a test asked for it".to_string(),
        }
    }

    #[test]
    fn replies_survive_both_byte_orders_and_give_their_length() {
        for order in ORDERS {
            let bytes = info().encode(9, order);
            assert_eq!(ServerInfo::decode(&bytes, order), Ok(info()));
            assert_eq!(bytes.len(), 124);
            assert_eq!(Reader::new(&bytes, order).u32(4), Ok((124 - 32) / 4));
            let report = ReservationReport {
                reserved: true,
                budget_us: 3000,
                period_us: 10_000,
                kind: ReservationKind::Hard,
                held_back: true,
                depletions: 2,
                budget_left_ns: -5,
                deadline_ns: 77,
                misses: 1,
            };
            let bytes = report.encode(1, order);
            assert_eq!((bytes.len(), ReservationReport::decode(&bytes, order)), (48, Ok(report)));
            let admission = AdmissionReport { failing_client: 5, sum_ppm: 6, limit_ppm: 7, ..Default::default() };
            let bytes = admission.encode(1, order);
            assert_eq!((bytes.len(), AdmissionReport::decode(&bytes, order)), (32, Ok(admission)));
        }
    }

    #[test]
    fn a_list_keeps_every_field_and_cuts_long_names() {
        let client = ClientEntry {
            client: 0x200000,
            pid: 12,
            budget_left_ns: -3,
            grabbed_ns: 99,
            waits: [1, 2, 3, 4, 5, 6, 7, u32::MAX],
            long_grabs: 8,
            charged_ns: 9,
            name: "x".repeat(80),
            ..ClientEntry::default()
        };
        let list = ClientList { now_ns: 5, server_cpu_ns: 6, clients: vec![client.clone(), client] };
        for order in ORDERS {
            let bytes = list.encode(3, order);
            assert_eq!(bytes.len(), 32 + 2 * ENTRY_BYTES);
            let back = ClientList::decode(&bytes, order).unwrap();
            assert_eq!(back.clients[1].name, "x".repeat(31));
            assert_eq!((back.clients[1].grabbed_ns, back.clients[0].budget_left_ns), (99, -3));
            assert_eq!((back.clients[1].waits[7], back.clients[1].long_grabs), (u32::MAX, 8));
            assert_eq!(back.clients[0].charged_ns, 9);
        }
    }

    #[test]
    fn traces_and_long_requests_survive_both_byte_orders() {
        let request = LongRequest {
            ns: 13_000_000,
            at_ns: 1 << 50,
            client: 0x400000,
            pid: -1,
            request: 73,
            name: "x".repeat(60),
        };
        let list = LongestRequests { requests: vec![request.clone(), request] };
        let started = TraceStarted { capacity: 1 << 17, first: 1 << 40 };
        for order in ORDERS {
            let bytes = list.encode(3, order);
            let back = LongestRequests::decode(&bytes, order).unwrap();
            assert_eq!((bytes.len(), back.requests[1].name.len()), (32 + 2 * LONG_REQUEST_BYTES, 31));
            assert_eq!((back.requests[1].ns, back.requests[1].request), (13_000_000, 73));
            assert_eq!(LongestRequests::decode(&bytes[..bytes.len() - 1], order), Err(Short));
            let bytes = started.encode(3, order);
            assert_eq!((bytes.len(), TraceStarted::decode(&bytes, order)), (32, Ok(started)));
        }
    }

    #[test]
    fn cut_replies_are_refused_without_a_panic() {
        let whole =
            ClientList { now_ns: 5, server_cpu_ns: 6, clients: vec![ClientEntry::default()] }.encode(3, Order::Native);
        for length in 0..whole.len() {
            assert_eq!(ClientList::decode(&whole[..length], Order::Native), Err(Short));
        }
        let mut lying = whole;
        lying[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(ClientList::decode(&lying, Order::Native), Err(Short));
    }

    #[test]
    fn events_survive_both_byte_orders() {
        for kind in NotifyKind::ALL {
            let event = Notify { kind, client: 1, pid: 2, budget_us: 3, period_us: 4, flags: 5, count: 6, time_ms: 7 };
            for order in ORDERS {
                assert_eq!(Notify::decode(&event.encode(90, 4, order), order), Ok(event));
            }
        }
    }
}
