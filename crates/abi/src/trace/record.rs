// SPDX-License-Identifier: MIT
//! Events as records, and records as events again.
//!
//! | word | bits |
//! |---|---|
//! | 0 | `at`, ns of CLOCK_MONOTONIC |
//! | 1, the head | 0-7 kind, 8-15 flags, 16-31 client, 32-63 a value |
//! | 2, 3 | what the kind says |

use super::{Event, Level, Reason, What, Words};
use xqos_core::{ClientId, GroupId, Mode, PolicyKind, Reservation, ReservationKind, Role, Time};

/// No client has this index.
const NOBODY: u16 = u16::MAX;

/// What word 1 holds.
struct Head {
    kind: u8,
    flags: u8,
    client: u16,
    value: u32,
}

impl Head {
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.kind)
            | (u64::from(self.flags) << 8)
            | (u64::from(self.client) << 16)
            | (u64::from(self.value) << 32)
    }

    fn of(word: u64) -> Head {
        Head { kind: word as u8, flags: (word >> 8) as u8, client: (word >> 16) as u16, value: (word >> 32) as u32 }
    }

    fn client(&self) -> Option<ClientId> {
        (usize::from(self.client) < ClientId::LIMIT).then_some(ClientId(self.client))
    }

    fn flag(&self, bit: u8) -> bool {
        (self.flags >> bit) & 1 == 1
    }

    /// That of a reservation.
    fn kind(&self) -> ReservationKind {
        if self.flag(2) { ReservationKind::SoftPaper } else { self.flag(0).into() }
    }
}

impl Event {
    /// The record.
    #[inline]
    pub fn encode(&self) -> Words {
        let [two, three] = self.what.details();
        [self.at.0, self.what.head().word(), two, three]
    }

    /// The event of a record; `None` where it is none that we know.
    pub fn decode([at, head, two, three]: Words) -> Option<Event> {
        let head = Head::of(head);
        let what = What::of_server(&head, two, three).or_else(|| What::of_client(&head, head.client()?, two, three))?;
        Some(Event { at: Time(at), what })
    }
}

fn head(kind: u8, flags: u8, client: Option<ClientId>, value: u32) -> Head {
    Head { kind, flags, client: client.map_or(NOBODY, |id| id.0), value }
}

/// Bit 0: hard, bit 2: soft by the paper's rule.
fn of_kind(kind: ReservationKind) -> u8 {
    bit(kind == ReservationKind::Hard, 0) | bit(kind == ReservationKind::SoftPaper, 2)
}

fn bit(set: bool, bit: u8) -> u8 {
    u8::from(set) << bit
}

impl What {
    /// Word 1.
    #[inline]
    fn head(&self) -> Head {
        match *self {
            What::Begin { level, server_pid, .. } => head(1, level.code(), None, server_pid),
            What::End => head(2, 0, None, 0),
            What::Creation { client, descriptor } => head(3, 0, Some(client), descriptor),
            What::Destruction { client } => head(4, 0, Some(client), 0),
            What::Activation { client } => head(5, 0, Some(client), 0),
            What::Served { client, still_ready, ended_early, requests, .. } => {
                head(6, bit(still_ready, 0) | bit(ended_early, 1), Some(client), requests)
            }
            What::Dispatch { client, mode, reason, requests, .. } => {
                let reason = Reason::ALL.iter().position(|&other| other == reason).unwrap_or(0) as u8;
                head(7, bit(mode == Mode::Reserved, 0) | (reason << 1), client, requests)
            }
            What::State { index, .. } => head(8, 0, None, index),
            What::Identity { client, pid, .. } => head(9, 0, Some(client), pid),
            What::Name { client, part, .. } => head(10, part, Some(client), 0),
            What::Withdrawal { client } => head(11, 0, Some(client), 0),
            What::Input { client } => head(12, 1, Some(client), 0),
            // One more than the index; 0 is nobody.
            What::Exposed { client, cause } => {
                head(12, 0, Some(client), cause.map_or(0, |cause| u32::from(cause.0) + 1))
            }
            What::Grab { client } => head(13, 0, client, 0),
            What::Overran { .. } => head(14, 0, None, 0),
            What::Replenish => head(15, 0, None, 0),
            What::Budget { client, kind, depleted, .. } => head(16, of_kind(kind) | bit(depleted, 1), Some(client), 0),
            What::Reserve { client, reservation, admitted } => {
                head(17, of_kind(reservation.kind) | bit(admitted, 1), Some(client), 0)
            }
            What::Clear { client } => head(18, 0, Some(client), 0),
            What::Policy { kind } => head(19, kind.code(), None, 0),
            What::Intervals { slice_us, .. } => head(20, 0, None, slice_us),
            What::Limits { max_utilization_ppm, .. } => head(21, 0, None, max_utilization_ppm),
            What::SyncPriority { client, priority } => head(22, 0, Some(client), priority as u32),
            What::Weight { client, weight } => head(23, 0, Some(client), weight),
            What::FixedPriority { client, priority } => head(24, 0, Some(client), priority as u32),
            What::Request { client, request, .. } => head(25, 0, Some(client), request),
            What::Lost { .. } => head(26, 0, None, 0),
            What::Switch { cpu, still_runnable, .. } => head(27, bit(still_runnable, 0), None, cpu),
            What::Wakeup { cpu, .. } => head(28, 0, None, cpu),
            What::Paced { client, .. } => head(29, 0, Some(client), 0),
            What::Pacing { limit_us, .. } => head(30, 0, None, limit_us),
            What::Supply { .. } => head(31, 0, None, 0),
            What::Role { client, role } => head(32, role.bits(), Some(client), 0),
            What::Desktop { share_ppm } => head(33, 0, None, share_ppm),
            What::MadeWork { client } => head(34, 0, Some(client), 0),
            What::Group { client, group } => head(35, 0, Some(client), group.0.into()),
            What::GroupWeight { group, .. } => head(36, 0, None, group.0.into()),
            What::GroupCap { group, .. } => head(37, 0, None, group.0.into()),
            What::GroupReserve { group, reservation, admitted } => {
                head(38, of_kind(reservation.kind) | bit(admitted, 1), None, group.0.into())
            }
            What::GroupRelease { group } => head(39, 0, None, group.0.into()),
            What::Processor { client, .. } => head(40, 0, Some(client), 0),
            What::WorksFor { client, whom } => head(42, 0, Some(client), whom.0.into()),
            What::Contention { is_on } => head(41, bit(is_on, 0), None, 0),
        }
    }

    /// Words 2 and 3.
    #[inline]
    fn details(&self) -> [u64; 2] {
        let pair = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
        match *self {
            What::Begin { words, .. } => [words.into(), 0],
            What::Served { last_request, bytes, start, .. } => [pair(last_request, bytes), start.0],
            What::Dispatch { until, bytes, .. } => [until.0, bytes.into()],
            What::State { words, .. } => words,
            What::Identity { base, uid, .. } => [pair(base, uid), 0],
            What::Name { bytes, .. } => {
                let half = |at: usize| {
                    (0..8).fold(0, |word, i| word | (u64::from(bytes.get(at + i).copied().unwrap_or(0)) << (8 * i)))
                };
                [half(0), half(8)]
            }
            What::Overran { ns } | What::Processor { ns, .. } => [ns, 0],
            What::Budget { left_ns, deadline, .. } => [left_ns as u64, deadline.0],
            What::Reserve { reservation, .. } | What::GroupReserve { reservation, .. } => {
                [reservation.budget_ns, reservation.period_ns]
            }
            What::Intervals { timer_interval_us, maximum_slice_us, .. } => {
                [timer_interval_us.into(), maximum_slice_us.into()]
            }
            What::Limits { blocking_us, .. } => [blocking_us.into(), 0],
            What::Request { bytes, ns, .. } => [bytes.into(), ns],
            What::Lost { records } => [records, 0],
            What::Switch { from, to, .. } => [pair(from, to), 0],
            What::Wakeup { thread, .. } => [thread.into(), 0],
            What::Paced { until, .. } => [until.0, 0],
            What::Pacing { floor_us, .. } => [floor_us.into(), 0],
            What::Supply { budget_ns, period_ns } => [budget_ns, period_ns],
            What::GroupWeight { weight, .. } => [weight.into(), 0],
            What::GroupCap { ppm, .. } => [ppm.into(), 0],
            _ => [0, 0],
        }
    }

    /// Of a record about the server as a whole.
    fn of_server(head: &Head, two: u64, three: u64) -> Option<What> {
        let value = head.value;
        Some(match head.kind {
            1 => What::Begin { level: Level::from_code(head.flags)?, server_pid: value, words: two as u32 },
            2 => What::End,
            7 => What::Dispatch {
                client: head.client(),
                mode: if head.flag(0) { Mode::Reserved } else { Mode::BestEffort },
                reason: *Reason::ALL.get(usize::from(head.flags >> 1))?,
                until: Time(two),
                requests: value,
                bytes: u32::try_from(three).ok()?,
            },
            8 => What::State { index: value, words: [two, three] },
            13 => What::Grab { client: head.client() },
            14 => What::Overran { ns: two },
            15 => What::Replenish,
            19 => What::Policy { kind: PolicyKind::from_code(head.flags)? },
            20 => What::Intervals {
                slice_us: value,
                timer_interval_us: u32::try_from(two).ok()?,
                maximum_slice_us: u32::try_from(three).ok()?,
            },
            21 => What::Limits { max_utilization_ppm: value, blocking_us: u32::try_from(two).ok()? },
            26 => What::Lost { records: two },
            27 => What::Switch { cpu: value, from: two as u32, to: (two >> 32) as u32, still_runnable: head.flag(0) },
            28 => What::Wakeup { cpu: value, thread: u32::try_from(two).ok()? },
            30 => What::Pacing { limit_us: value, floor_us: u32::try_from(two).ok()? },
            31 => What::Supply { budget_ns: two, period_ns: three },
            33 => What::Desktop { share_ppm: value },
            37 => What::GroupCap { group: group(value)?, ppm: u32::try_from(two).ok()? },
            38 => {
                let reservation = Reservation { budget_ns: two, period_ns: three, kind: head.kind() };
                What::GroupReserve { group: group(value)?, reservation, admitted: head.flag(1) }
            }
            39 => What::GroupRelease { group: group(value)? },
            41 => What::Contention { is_on: head.flag(0) },
            36 => What::GroupWeight { group: group(value)?, weight: u32::try_from(two).ok()? },
            _ => return None,
        })
    }

    /// Of a record about one client.
    fn of_client(head: &Head, client: ClientId, two: u64, three: u64) -> Option<What> {
        let (value, low, high) = (head.value, two as u32, (two >> 32) as u32);
        Some(match head.kind {
            3 => What::Creation { client, descriptor: value },
            4 => What::Destruction { client },
            5 => What::Activation { client },
            6 => What::Served {
                client,
                still_ready: head.flag(0),
                ended_early: head.flag(1),
                requests: value,
                last_request: low,
                bytes: high,
                start: Time(three),
            },
            9 => What::Identity { client, pid: value, base: low, uid: high },
            10 => {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&two.to_le_bytes());
                bytes[8..].copy_from_slice(&three.to_le_bytes());
                What::Name { client, part: head.flags, bytes }
            }
            11 => What::Withdrawal { client },
            12 if head.flag(0) => What::Input { client },
            12 => {
                let cause = value.checked_sub(1).and_then(|slot| u16::try_from(slot).ok()).map(ClientId);
                What::Exposed { client, cause: cause.filter(|id| usize::from(id.0) < ClientId::LIMIT) }
            }
            16 => {
                let (kind, depleted) = (head.kind(), head.flag(1));
                What::Budget { client, kind, depleted, left_ns: two as i64, deadline: Time(three) }
            }
            17 => {
                let reservation = Reservation { budget_ns: two, period_ns: three, kind: head.kind() };
                What::Reserve { client, reservation, admitted: head.flag(1) }
            }
            18 => What::Clear { client },
            22 => What::SyncPriority { client, priority: value as i32 },
            23 => What::Weight { client, weight: value },
            24 => What::FixedPriority { client, priority: value as i32 },
            25 => What::Request { client, request: value, bytes: u32::try_from(two).ok()?, ns: three },
            29 => What::Paced { client, until: Time(two) },
            32 => What::Role { client, role: Role::from_bits(head.flags) },
            34 => What::MadeWork { client },
            42 => What::WorksFor { client, whom: ClientId(u16::try_from(value).ok()?) },
            35 => What::Group { client, group: group(value)? },
            40 => What::Processor { client, ns: two },
            _ => return None,
        })
    }
}

fn group(value: u32) -> Option<GroupId> {
    u16::try_from(value).ok().map(GroupId)
}
