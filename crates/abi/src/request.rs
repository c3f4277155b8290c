// SPDX-License-Identifier: MIT
//! Requests: from the bytes that a client sent to a [`Request`], and back for clients of our own.
//!
//! The server has read a whole request of the length that its header gives, so the only lengths to check are those of
//! each kind; what is wrong is named the way X names it.

mod names;
mod values;

pub use names::{REQUESTS, minor};
pub use values::{Grouping, Paced};

use crate::bytes::{Order, Reader, Short, Writer};
use crate::label::{LABEL_BYTES, Label};
use crate::trace::Level;
use xqos_core::{PolicyKind, ReservationKind};

/// Flag bits of a reservation.
pub mod reservation_flag {
    use xqos_core::ReservationKind;

    pub const HARD: u32 = 1;
    /// In replies only: depleted and out of the queue until the scheduling deadline.
    pub const HELD_BACK: u32 = 2;
    /// Soft by the paper's rule.
    pub const SOFT_PAPER: u32 = 4;

    /// The flag of a kind; 0: soft.
    pub fn of(kind: ReservationKind) -> u32 {
        match kind {
            ReservationKind::Soft => 0,
            ReservationKind::Hard => HARD,
            ReservationKind::SoftPaper => SOFT_PAPER,
        }
    }

    /// The kind with exactly these flags.
    pub fn kind(flags: u32) -> Option<ReservationKind> {
        ReservationKind::ALL.into_iter().find(|&kind| of(kind) == flags)
    }
}

/// Bits of SelectEvents.
pub mod event_mask {
    pub const CLIENTS: u32 = 1;
    pub const RESERVATIONS: u32 = 2;
    pub const DEPLETIONS: u32 = 4;
    pub const MISSES: u32 = 8;
    pub const EXPOSES: u32 = 16;
    /// Weights, priorities and groups.
    pub const SETTINGS: u32 = 32;
    pub const ALL: u32 = 63;
}

/// Which values of a SetPolicy count; `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyChange {
    pub policy: Option<PolicyKind>,
    pub slice_us: Option<u32>,
    pub timer_interval_us: Option<u32>,
    pub maximum_slice_us: Option<u32>,
    pub max_utilization_ppm: Option<u32>,
    /// 0: use the blocking time observed.
    pub blocking_us: Option<u32>,
}

/// One request of the extension, its length and enumerations checked. `client` 0 is the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    QueryVersion {
        major: u32,
        minor: u32,
    },
    GetServerInfo,
    SetReservation {
        client: u32,
        budget_us: u32,
        period_us: u32,
        kind: ReservationKind,
    },
    GetReservation {
        client: u32,
    },
    ClearReservation {
        client: u32,
    },
    CheckAdmission {
        client: u32,
        budget_us: u32,
        period_us: u32,
        kind: ReservationKind,
    },
    ListClients,
    /// The same of clients that are gone, summed up by program.
    ListDeparted,
    SetPolicy(PolicyChange),
    SetClientWeight {
        client: u32,
        weight: u32,
    },
    SetClientPriority {
        client: u32,
        priority: i32,
    },
    SelectEvents {
        mask: u32,
    },
    /// `capacity`: records in the ring, if this is its first reader; 0: the server's choice.
    StartTrace {
        level: Level,
        capacity: u32,
    },
    StopTrace,
    ListLongestRequests,
    /// The server's thread may have a real-time priority while it works for a reserved client, until the sender says
    /// otherwise or is gone.
    LendProcessor {
        on: bool,
        /// What the limit RLIMIT_RTPRIO of the server was before, to be set again.
        limit_before: u32,
    },
    SetPacing {
        /// Longest wait of a client that uncovers others; 0: nobody is paced.
        limit_us: u32,
        /// Longest time between two times that such a client comes on.
        floor_us: u32,
    },
    GetPacing,
    GetProcessor,
    SetDesktop {
        /// The most that clients that work for others get while somebody else waits; 0: they are served like all others.
        share_ppm: u32,
    },
    GetDesktop,
    /// What the sender sets from now on is told to others with this name.
    SetOrigin {
        name: Label,
        /// It ends with the sender's connection.
        lease: bool,
    },
    SetGroups {
        grouping: Grouping,
        /// The most that the reservations of one user may sum up to, millionths; root and the server's user excepted.
        user_limit_ppm: u32,
    },
    GetGroups,
    /// Puts a client into the group of this name; empty: into that of the grouping.
    SetClientGroup {
        client: u32,
        name: Label,
    },
    /// Sets the weight of a client's group; 0: that of its heaviest client.
    SetGroupWeight {
        client: u32,
        weight: u32,
    },
    /// Sets the most that a client's group gets, millionths; 0: no cap.
    SetGroupCap {
        client: u32,
        ppm: u32,
    },
    SetClientPacing {
        client: u32,
        paced: Paced,
    },
    /// A reservation that the clients of a client's group use together.
    SetGroupReservation {
        client: u32,
        budget_us: u32,
        period_us: u32,
        kind: ReservationKind,
    },
    /// Ends it.
    ClearGroupReservation {
        client: u32,
    },
}

/// What is wrong with a request, as X names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// BadLength
    Length,
    /// BadRequest: no such minor opcode
    Opcode,
    /// BadValue, with the value
    Value(u32),
}

impl From<Short> for Mistake {
    fn from(_: Short) -> Self {
        Mistake::Length
    }
}

impl Request {
    /// The same, with the sender named where it means itself: over the control socket 0 is nobody.
    pub fn named(mut self, own: u32) -> Request {
        match &mut self {
            Request::SetReservation { client, .. }
            | Request::GetReservation { client }
            | Request::ClearReservation { client }
            | Request::CheckAdmission { client, .. }
            | Request::SetClientWeight { client, .. }
            | Request::SetClientPriority { client, .. }
            | Request::SetClientGroup { client, .. }
            | Request::SetGroupWeight { client, .. }
            | Request::SetGroupCap { client, .. }
            | Request::SetClientPacing { client, .. }
            | Request::SetGroupReservation { client, .. }
            | Request::ClearGroupReservation { client }
                if *client == 0 =>
            {
                *client = own;
            }
            _ => {}
        }
        self
    }

    /// Parses a whole request, header included.
    pub fn parse(bytes: &[u8], order: Order) -> Result<Request, Mistake> {
        let read = Reader::new(bytes, order);
        let minor = read.u8(1)?;
        if bytes.len() != length(minor).ok_or(Mistake::Opcode)? {
            return Err(Mistake::Length);
        }
        Ok(match minor {
            minor::QUERY_VERSION => Request::QueryVersion { major: read.u32(4)?, minor: read.u32(8)? },
            minor::GET_SERVER_INFO => Request::GetServerInfo,
            minor::SET_RESERVATION => {
                let (client, budget_us, period_us, kind) = reservation(read)?;
                Request::SetReservation { client, budget_us, period_us, kind }
            }
            minor::GET_RESERVATION => Request::GetReservation { client: read.u32(4)? },
            minor::CLEAR_RESERVATION => Request::ClearReservation { client: read.u32(4)? },
            minor::CHECK_ADMISSION => {
                let (client, budget_us, period_us, kind) = reservation(read)?;
                Request::CheckAdmission { client, budget_us, period_us, kind }
            }
            minor::LIST_CLIENTS => Request::ListClients,
            minor::SET_POLICY => Request::SetPolicy(policy_change(read)?),
            minor::SET_CLIENT_WEIGHT => Request::SetClientWeight { client: read.u32(4)?, weight: read.u32(8)? },
            minor::SET_CLIENT_PRIORITY => Request::SetClientPriority { client: read.u32(4)?, priority: read.i32(8)? },
            minor::SELECT_EVENTS => {
                let mask = read.u32(4)?;
                if mask & !event_mask::ALL != 0 {
                    return Err(Mistake::Value(mask));
                }
                Request::SelectEvents { mask }
            }
            minor::START_TRACE => {
                let code = read.u8(4)?;
                let level = Level::from_code(code).ok_or(Mistake::Value(code.into()))?;
                Request::StartTrace { level, capacity: read.u32(8)? }
            }
            minor::STOP_TRACE => Request::StopTrace,
            minor::LIST_LONGEST_REQUESTS => Request::ListLongestRequests,
            minor::LEND_PROCESSOR => {
                let code = read.u8(4)?;
                if code > 1 {
                    return Err(Mistake::Value(code.into()));
                }
                Request::LendProcessor { on: code == 1, limit_before: read.u32(8)? }
            }
            minor::SET_PACING => Request::SetPacing { limit_us: read.u32(4)?, floor_us: read.u32(8)? },
            minor::GET_PACING => Request::GetPacing,
            minor::GET_PROCESSOR => Request::GetProcessor,
            minor::SET_DESKTOP => Request::SetDesktop { share_ppm: read.u32(4)? },
            minor::GET_DESKTOP => Request::GetDesktop,
            _ => return parse_later(minor, read),
        })
    }

    /// The request's bytes in this machine's order; byte 0 is the major opcode.
    pub fn encode(&self, major_opcode: u8) -> Vec<u8> {
        self.encode_as(major_opcode, Order::Native)
    }

    /// [`encode`](Self::encode) in a byte order of choice, for tests of foreign clients.
    pub fn encode_as(&self, major_opcode: u8, order: Order) -> Vec<u8> {
        let minor = self.minor();
        let mut out = Writer::new(order);
        let length = length(minor).unwrap_or(4);
        out.u8(major_opcode).u8(minor).u16((length / 4) as u16);
        match *self {
            Request::QueryVersion { major, minor } => {
                out.u32(major).u32(minor);
            }
            Request::GetServerInfo | Request::ListClients | Request::StopTrace | Request::ListLongestRequests => {}
            Request::GetPacing | Request::GetProcessor | Request::GetDesktop | Request::GetGroups => {}
            Request::ListDeparted => {}
            Request::SetOrigin { name, lease } => {
                out.u8(lease.into()).pad_to(8).raw(name.bytes());
            }
            Request::SetGroups { grouping, user_limit_ppm } => {
                out.u8(grouping.code()).pad_to(8).u32(user_limit_ppm);
            }
            Request::SetClientGroup { client, name } => {
                out.u32(client).raw(name.bytes());
            }
            Request::SetReservation { client, budget_us, period_us, kind }
            | Request::SetGroupReservation { client, budget_us, period_us, kind }
            | Request::CheckAdmission { client, budget_us, period_us, kind } => {
                out.u32(client).u32(budget_us).u32(period_us).u32(reservation_flag::of(kind));
            }
            Request::GetReservation { client }
            | Request::ClearReservation { client }
            | Request::ClearGroupReservation { client } => {
                out.u32(client);
            }
            Request::SetPolicy(change) => write_policy_change(&mut out, &change),
            Request::SetClientWeight { client, weight } | Request::SetGroupWeight { client, weight } => {
                out.u32(client).u32(weight);
            }
            Request::SetGroupCap { client, ppm } => {
                out.u32(client).u32(ppm);
            }
            Request::SetClientPacing { client, paced } => {
                out.u32(client).u8(paced.code()).pad_to(12);
            }
            Request::SetClientPriority { client, priority } => {
                out.u32(client).i32(priority);
            }
            Request::SelectEvents { mask: value } | Request::SetDesktop { share_ppm: value } => {
                out.u32(value);
            }
            Request::StartTrace { level, capacity } => {
                out.u8(level.code()).pad_to(8).u32(capacity);
            }
            Request::LendProcessor { on, limit_before } => {
                out.u8(on.into()).pad_to(8).u32(limit_before);
            }
            Request::SetPacing { limit_us, floor_us } => {
                out.u32(limit_us).u32(floor_us);
            }
        }
        debug_assert_eq!(out.len(), length);
        out.finish()
    }

    /// The minor opcode.
    pub fn minor(&self) -> u8 {
        match self {
            Request::QueryVersion { .. } => minor::QUERY_VERSION,
            Request::GetServerInfo => minor::GET_SERVER_INFO,
            Request::SetReservation { .. } => minor::SET_RESERVATION,
            Request::GetReservation { .. } => minor::GET_RESERVATION,
            Request::ClearReservation { .. } => minor::CLEAR_RESERVATION,
            Request::CheckAdmission { .. } => minor::CHECK_ADMISSION,
            Request::ListClients => minor::LIST_CLIENTS,
            Request::ListDeparted => minor::LIST_DEPARTED,
            Request::SetPolicy(_) => minor::SET_POLICY,
            Request::SetClientWeight { .. } => minor::SET_CLIENT_WEIGHT,
            Request::SetClientPriority { .. } => minor::SET_CLIENT_PRIORITY,
            Request::SelectEvents { .. } => minor::SELECT_EVENTS,
            Request::StartTrace { .. } => minor::START_TRACE,
            Request::StopTrace => minor::STOP_TRACE,
            Request::ListLongestRequests => minor::LIST_LONGEST_REQUESTS,
            Request::LendProcessor { .. } => minor::LEND_PROCESSOR,
            Request::SetPacing { .. } => minor::SET_PACING,
            Request::GetPacing => minor::GET_PACING,
            Request::SetDesktop { .. } => minor::SET_DESKTOP,
            Request::GetDesktop => minor::GET_DESKTOP,
            Request::GetProcessor => minor::GET_PROCESSOR,
            Request::SetOrigin { .. } => minor::SET_ORIGIN,
            Request::SetGroups { .. } => minor::SET_GROUPS,
            Request::GetGroups => minor::GET_GROUPS,
            Request::SetClientGroup { .. } => minor::SET_CLIENT_GROUP,
            Request::SetGroupWeight { .. } => minor::SET_GROUP_WEIGHT,
            Request::SetGroupCap { .. } => minor::SET_GROUP_CAP,
            Request::SetClientPacing { .. } => minor::SET_CLIENT_PACING,
            Request::SetGroupReservation { .. } => minor::SET_GROUP_RESERVATION,
            Request::ClearGroupReservation { .. } => minor::CLEAR_GROUP_RESERVATION,
        }
    }
}

/// Requests of version 1.1.
fn parse_later(minor: u8, read: Reader<'_>) -> Result<Request, Mistake> {
    Ok(match minor {
        minor::SET_ORIGIN => {
            let code = read.u8(4)?;
            if code > 1 {
                return Err(Mistake::Value(code.into()));
            }
            Request::SetOrigin { name: Label::read(read.slice(8, LABEL_BYTES)?), lease: code == 1 }
        }
        minor::SET_GROUPS => {
            let code = read.u8(4)?;
            let grouping = Grouping::from_code(code).ok_or(Mistake::Value(code.into()))?;
            Request::SetGroups { grouping, user_limit_ppm: read.u32(8)? }
        }
        minor::GET_GROUPS => Request::GetGroups,
        minor::LIST_DEPARTED => Request::ListDeparted,
        minor::SET_CLIENT_GROUP => {
            Request::SetClientGroup { client: read.u32(4)?, name: Label::read(read.slice(8, LABEL_BYTES)?) }
        }
        minor::SET_GROUP_WEIGHT => Request::SetGroupWeight { client: read.u32(4)?, weight: read.u32(8)? },
        minor::SET_GROUP_CAP => Request::SetGroupCap { client: read.u32(4)?, ppm: read.u32(8)? },
        minor::SET_CLIENT_PACING => {
            let code = read.u8(8)?;
            let paced = Paced::from_code(code).ok_or(Mistake::Value(code.into()))?;
            Request::SetClientPacing { client: read.u32(4)?, paced }
        }
        minor::SET_GROUP_RESERVATION => {
            let (client, budget_us, period_us, kind) = reservation(read)?;
            Request::SetGroupReservation { client, budget_us, period_us, kind }
        }
        minor::CLEAR_GROUP_RESERVATION => Request::ClearGroupReservation { client: read.u32(4)? },
        _ => return Err(Mistake::Opcode),
    })
}

/// Length in bytes of a request, by its minor opcode; `None` for no such opcode.
pub(crate) fn length(minor: u8) -> Option<usize> {
    Some(match minor {
        minor::QUERY_VERSION | minor::SET_CLIENT_WEIGHT | minor::SET_CLIENT_PRIORITY => 12,
        minor::START_TRACE | minor::LEND_PROCESSOR | minor::SET_PACING => 12,
        minor::SET_GROUPS | minor::SET_GROUP_WEIGHT | minor::SET_GROUP_CAP => 12,
        minor::SET_CLIENT_PACING => 12,
        minor::SET_ORIGIN | minor::SET_CLIENT_GROUP => 8 + LABEL_BYTES,
        minor::SET_DESKTOP => 8,
        minor::GET_PACING | minor::GET_PROCESSOR | minor::GET_DESKTOP | minor::GET_GROUPS => 4,
        minor::LIST_DEPARTED => 4,
        minor::GET_SERVER_INFO | minor::LIST_CLIENTS | minor::STOP_TRACE | minor::LIST_LONGEST_REQUESTS => 4,
        minor::SET_RESERVATION | minor::CHECK_ADMISSION | minor::SET_GROUP_RESERVATION => 20,
        minor::GET_RESERVATION | minor::CLEAR_RESERVATION | minor::CLEAR_GROUP_RESERVATION => 8,
        minor::SELECT_EVENTS => 8,
        minor::SET_POLICY => 32,
        _ => return None,
    })
}

fn reservation(read: Reader<'_>) -> Result<(u32, u32, u32, ReservationKind), Mistake> {
    let flags = read.u32(16)?;
    let kind = reservation_flag::kind(flags).ok_or(Mistake::Value(flags))?;
    Ok((read.u32(4)?, read.u32(8)?, read.u32(12)?, kind))
}

const HAS_POLICY: u32 = 1;
const HAS_SLICE: u32 = 2;
const HAS_TIMER_INTERVAL: u32 = 4;
const HAS_MAXIMUM_SLICE: u32 = 8;
const HAS_MAX_UTILIZATION: u32 = 16;
const HAS_BLOCKING: u32 = 32;

fn policy_change(read: Reader<'_>) -> Result<PolicyChange, Mistake> {
    let mask = read.u32(8)?;
    if mask > 63 {
        return Err(Mistake::Value(mask));
    }
    let value = |bit: u32, at: usize| -> Result<Option<u32>, Mistake> {
        Ok(if mask & bit != 0 { Some(read.u32(at)?) } else { None })
    };
    let policy = if mask & HAS_POLICY != 0 {
        let code = read.u8(4)?;
        Some(PolicyKind::from_code(code).ok_or(Mistake::Value(code.into()))?)
    } else {
        None
    };
    Ok(PolicyChange {
        policy,
        slice_us: value(HAS_SLICE, 12)?,
        timer_interval_us: value(HAS_TIMER_INTERVAL, 16)?,
        maximum_slice_us: value(HAS_MAXIMUM_SLICE, 20)?,
        max_utilization_ppm: value(HAS_MAX_UTILIZATION, 24)?,
        blocking_us: value(HAS_BLOCKING, 28)?,
    })
}

fn write_policy_change(out: &mut Writer, change: &PolicyChange) {
    let bit = |present: bool, bit: u32| if present { bit } else { 0 };
    let mask = bit(change.policy.is_some(), HAS_POLICY)
        | bit(change.slice_us.is_some(), HAS_SLICE)
        | bit(change.timer_interval_us.is_some(), HAS_TIMER_INTERVAL)
        | bit(change.maximum_slice_us.is_some(), HAS_MAXIMUM_SLICE)
        | bit(change.max_utilization_ppm.is_some(), HAS_MAX_UTILIZATION)
        | bit(change.blocking_us.is_some(), HAS_BLOCKING);
    out.u8(change.policy.map_or(0, PolicyKind::code)).pad_to(8).u32(mask);
    for value in [
        change.slice_us,
        change.timer_interval_us,
        change.maximum_slice_us,
        change.max_utilization_ppm,
        change.blocking_us,
    ] {
        out.u32(value.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests;
