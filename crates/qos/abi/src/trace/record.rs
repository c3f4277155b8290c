// SPDX-License-Identifier: MIT
//! Converts events to records and back, with two tables that serve both directions: facts, and all other events.
//!
//! | word | bits |
//! |---|---|
//! | 0 | `at`, ns of CLOCK_MONOTONIC |
//! | 1 | 0-7 number, 8-14 flags, 15 refused, 16-31 client or none, 32-63 a value |
//! | 2, 3 | depends on the number, see its row |
//!
//! A row of these two tables has the number, the display name, the position of each field, and the event made of the
//! fields. The code does not compile if a fact has no row.

use super::{Entry, Event, Level, Reason, Words};
use std::collections::BTreeSet;
use xqos_core::{
    ClientId, Fact, GroupId, Holder, Mode, Pacing, Parameters, PolicyKind, Reservation, ReservationKind, Role, Service,
    Supply, Time,
};

/// The index that stands for no client.
const NOBODY: u64 = 0xffff;

/// The position of a field: word, lowest bit, number of bits.
#[derive(Clone, Copy)]
struct Bits(usize, u32, u32);

const AT: Bits = Bits(0, 0, 64);
const FLAGS: Bits = Bits(1, 8, 7);
const FLAG: Bits = Bits(1, 8, 1);
const REFUSED: Bits = Bits(1, 15, 1);
const CLIENT: Bits = Bits(1, 16, 16);
const VALUE: Bits = Bits(1, 32, 32);
const TWO: Bits = Bits(2, 0, 64);
const LOW: Bits = Bits(2, 0, 32);
const HIGH: Bits = Bits(2, 32, 32);
const THREE: Bits = Bits(3, 0, 64);

impl Bits {
    fn room(self) -> u64 {
        u64::MAX >> (64 - self.2)
    }

    /// Writes a field; a value that does not fit is stored as the largest number.
    #[inline]
    fn put(self, words: &mut Words, field: impl RecordField) {
        let word = &mut words[self.0];
        *word = (*word & !(self.room() << self.1)) | (field.bits().min(self.room()) << self.1);
    }

    fn get<F: RecordField>(self, words: &Words) -> Option<F> {
        F::from_bits((words[self.0] >> self.1) & self.room())
    }
}

/// A value stored in a record.
trait RecordField: Sized {
    fn bits(self) -> u64;
    /// `None` if the bits are not valid.
    fn from_bits(bits: u64) -> Option<Self>;
}

macro_rules! fields {
    ($($type:ty: $field:ident => $to:expr, $bits:ident => $from:expr;)*) => {$(
        impl RecordField for $type {
            #[inline]
            fn bits(self) -> u64 {
                let $field = self;
                $to
            }

            fn from_bits($bits: u64) -> Option<$type> {
                $from
            }
        }
    )*};
}

fields! {
    bool: is => is.into(), bits => Some(bits != 0);
    u8: number => number.into(), bits => u8::try_from(bits).ok();
    u32: number => number.into(), bits => u32::try_from(bits).ok();
    u64: number => number, bits => Some(bits);
    i32: number => u64::from(number as u32), bits => Some(u32::from_bits(bits)? as i32);
    i64: number => number as u64, bits => Some(bits as i64);
    Time: time => time.0, bits => Some(Time(bits));
    Option<ClientId>: id => id.map_or(NOBODY, |id| id.0.into()), bits => Some(ClientId::from_bits(bits));
    ClientId: id => id.0.into(), bits => {
        u16::try_from(bits).ok().filter(|&id| usize::from(id) < ClientId::LIMIT).map(ClientId)
    };
    GroupId: id => id.0.into(), bits => u16::try_from(bits).ok().map(GroupId);
    Role: role => role.bits().into(), bits => u8::from_bits(bits).map(Role::from_bits);
    Level: level => level as u64, bits => Level::ALL.into_iter().find(|&level| level as u64 == bits);
    PolicyKind: kind => kind.code().into(), bits => PolicyKind::from_code(u8::from_bits(bits)?);
    ReservationKind: kind => kind.code().into(), bits => ReservationKind::from_code(u8::from_bits(bits)?);
    Mode: mode => (mode == Mode::Reserved).into(), bits => {
        Some(if bits == 0 { Mode::BestEffort } else { Mode::Reserved })
    };
    Reason: reason => reason as u64, bits => Reason::ALL.get(usize::from(u8::from_bits(bits)?)).copied();
}

/// Words 2 and 3 as text.
struct Letters;

impl Letters {
    fn put(self, words: &mut Words, bytes: [u8; 16]) {
        let both = u128::from_le_bytes(bytes);
        (words[2], words[3]) = (both as u64, (both >> 64) as u64);
    }

    fn get(self, words: &Words) -> Option<[u8; 16]> {
        Some((u128::from(words[2]) | (u128::from(words[3]) << 64)).to_le_bytes())
    }
}

trait Record: Sized {
    /// The names of all rows.
    const NAMES: &'static [&'static str];

    /// The words, and the display name.
    fn record(&self, at: Time) -> (Words, &'static str);
    fn from_words(words: &Words) -> Option<Self>;
}

macro_rules! records {
    ($type:ident, $at:ident, { $($other:tt)* }
        $($number:literal $name:literal ($($field:ident $place:expr),*) { $($whole:tt)* })*) => {
        impl Record for $type {
            const NAMES: &'static [&'static str] = &[$($name),*];

            #[inline]
            fn record(&self, $at: Time) -> (Words, &'static str) {
                match *self {
                    $($($whole)* => {
                        #[allow(unused_mut)]
                        let mut words = [$at.0, $number | (NOBODY << 16), 0, 0];
                        $($place.put(&mut words, $field);)*
                        (words, $name)
                    })*
                    $($other)*
                }
            }

            fn from_words(words: &Words) -> Option<$type> {
                match words[1] as u8 {
                    $($number => {
                        $(let $field = $place.get(words)?;)*
                        Some($($whole)*)
                    })*
                    _ => None,
                }
            }
        }
    };
}

records! {
    Fact, at, {}
    3 "creation" (client CLIENT, descriptor VALUE) { Fact::Connected { client, descriptor } }
    4 "destruction" (client CLIENT) { Fact::Disconnected { client } }
    5 "activation" (client CLIENT) { Fact::Arrived { client } }
    6 "deactivation" (client CLIENT, start THREE, end AT, requests VALUE, last_request LOW, bytes HIGH, ended_early FLAG) {
        Fact::Served(Service { client, start, end, requests, bytes, last_request, still_ready: false, ended_early })
    }
    43 "slice" (client CLIENT, start THREE, end AT, requests VALUE, last_request LOW, bytes HIGH, ended_early FLAG) {
        Fact::Served(Service { client, start, end, requests, bytes, last_request, still_ready: true, ended_early })
    }
    11 "withdrawal" (client CLIENT) { Fact::Withdrawn { client } }
    12 "input" (client CLIENT) { Fact::Input { client } }
    45 "expose" (client CLIENT, cause VALUE) { Fact::Exposed { client, cause } }
    34 "work" (client CLIENT) { Fact::CausedWork { client } }
    42 "manages" (client CLIENT, payer VALUE) { Fact::WorksFor { client, payer } }
    13 "grab" (client CLIENT) { Fact::Grabbed { by: Some(client) } }
    44 "ungrab" () { Fact::Grabbed { by: None } }
    14 "overrun" (ns TWO) { Fact::Overran { ns } }
    15 "replenish" () { Fact::Replenish }
    19 "policy" (kind FLAGS) { Fact::Policy(kind) }
    20 "parameters" (slice_ns VALUE, timer_interval_ns LOW, maximum_slice_ns HIGH, max_utilization_ppm Bits(3, 0, 20),
        blocking_ns Bits(3, 20, 44)) {
        Fact::Parameters(Parameters { slice_ns, timer_interval_ns, maximum_slice_ns, max_utilization_ppm, blocking_ns })
    }
    30 "pacing" (limit_ns TWO, floor_ns THREE) { Fact::Pacing(Pacing { limit_ns, floor_ns }) }
    31 "supply" (budget_ns TWO, period_ns THREE) { Fact::Supply(Supply { budget_ns, period_ns }) }
    33 "desktop" (ppm VALUE) { Fact::DesktopShare { ppm } }
    41 "contention" (is_on FLAG) { Fact::Contention { is_on } }
    22 "sync" (client CLIENT, priority VALUE) { Fact::SyncPriority { client, priority } }
    23 "weight" (client CLIENT, weight VALUE) {
        Fact::Weight { holder: Holder::Client(client), weight }
    }
    24 "priority" (client CLIENT, priority VALUE) { Fact::FixedPriority { client, priority } }
    46 "longest" (client CLIENT, us VALUE) { Fact::Slice { client, us } }
    35 "group" (client CLIENT, group VALUE) { Fact::Group { client, group } }
    36 "group" (group VALUE, weight TWO) { Fact::Weight { holder: Holder::Group(group), weight } }
    37 "group" (group VALUE, ppm TWO) { Fact::GroupCap { group, ppm } }
    32 "role" (client CLIENT, role FLAGS) { Fact::Role { client, role } }
    17 "reserve" (client CLIENT, kind FLAGS, budget_ns TWO, period_ns THREE) {
        Fact::Reserve { holder: Holder::Client(client), reservation: Reservation { budget_ns, period_ns, kind } }
    }
    18 "release" (client CLIENT) { Fact::Release { holder: Holder::Client(client) } }
    38 "reserve" (group VALUE, kind FLAGS, budget_ns TWO, period_ns THREE) {
        Fact::Reserve { holder: Holder::Group(group), reservation: Reservation { budget_ns, period_ns, kind } }
    }
    39 "release" (group VALUE) { Fact::Release { holder: Holder::Group(group) } }
}

records! {
    Entry, at, {
        Entry::Fact(fact) => fact.record(at),
        Entry::Refused(fact) => {
            let (mut words, name) = fact.record(at);
            REFUSED.put(&mut words, true);
            (words, name)
        }
    }
    1 "begin" (level FLAGS, server_pid VALUE, words LOW) { Entry::Begin { level, server_pid, words } }
    2 "end" () { Entry::End }
    7 "dispatch" (client CLIENT, mode FLAG, reason Bits(1, 9, 6), until TWO, requests VALUE, bytes THREE) {
        Entry::Dispatch { client, mode, reason, until, requests, bytes }
    }
    8 "state" (index VALUE, first TWO, second THREE) { Entry::State { index, words: [first, second] } }
    9 "identity" (client CLIENT, pid VALUE, base LOW, uid HIGH) { Entry::Identity { client, pid, base, uid } }
    10 "name" (client CLIENT, part FLAGS, bytes Letters) { Entry::Name { client, part, bytes } }
    16 "budget" (client CLIENT, kind Bits(1, 8, 2), depleted Bits(1, 10, 1), left_ns TWO, deadline THREE) {
        Entry::Budget { client, kind, depleted, left_ns, deadline }
    }
    25 "request" (client CLIENT, request VALUE, bytes LOW, ns THREE) { Entry::Request { client, request, bytes, ns } }
    26 "lost" (records TWO) { Entry::Lost { records } }
    27 "kernel" (cpu VALUE, from LOW, to HIGH, still_runnable FLAG) { Entry::Switch { cpu, from, to, still_runnable } }
    28 "kernel" (cpu VALUE, thread LOW) { Entry::Wakeup { cpu, thread } }
    49 "interrupt" (cpu VALUE, number LOW, is_soft FLAG, ns THREE) { Entry::Interrupt { cpu, number, is_soft, ns } }
    50 "interrupt" (number VALUE, is_soft FLAG, bytes Letters) { Entry::InterruptName { number, is_soft, bytes } }
    51 "thread" (thread VALUE, bytes Letters) { Entry::ThreadName { thread, bytes } }
    52 "thread" (thread VALUE, process LOW) { Entry::Thread { thread, process } }
    53 "thread" (thread VALUE, priority LOW) { Entry::Priority { thread, priority } }
    29 "paced" (client CLIENT, until TWO) { Entry::Paced { client, until } }
    40 "processor" (client CLIENT, ns TWO) { Entry::Processor { client, ns } }
    47 "cut" (client CLIENT, request VALUE, done LOW, parts HIGH) { Entry::Cut { client, request, done, parts } }
    48 "finished" (client CLIENT, request VALUE, by LOW, ns THREE) { Entry::Finished { client, request, by, ns } }
}

impl Event {
    /// Encodes the event as a record.
    #[inline]
    pub fn encode(&self) -> Words {
        self.what.record(self.at).0
    }

    /// Decodes a record; `None` if it is unknown or invalid.
    pub fn decode(words: Words) -> Option<Event> {
        let what = match (Fact::from_words(&words), REFUSED.get(&words)?) {
            (Some(fact), false) => Entry::Fact(fact),
            (Some(fact), true) => Entry::Refused(fact),
            (None, _) => Record::from_words(&words)?,
        };
        Some(Event { at: Time(words[0]), what })
    }
}

impl Entry {
    /// The name of the event wherever a trace is displayed or exported.
    pub fn name(&self) -> &'static str {
        self.record(Time(0)).1
    }
}

pub fn names() -> BTreeSet<&'static str> {
    Fact::NAMES.iter().chain(Entry::NAMES).copied().collect()
}
