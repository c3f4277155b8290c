// SPDX-License-Identifier: MIT
//! Handles the requests Set, Clear and CheckAdmission: checks rights and values before the engine applies a setting.

use super::{Refused, base_of, base_of_holder, may_administer, may_change, subject as client_of, subject_to_change};
use crate::mechanism::engine::{Engine, Target};
use crate::mechanism::groups::is_valid_name;
use crate::mechanism::host::Host;
use crate::mechanism::settings::{MAX_UTILIZATION_LIMIT_PPM, PART_RANGE_US, SLICE_RANGE_US};
use std::ops::RangeInclusive;
use xqos_abi::{NO_RESERVATION, Setting, SettingKind, Subject, us};
use xqos_core::{Admission, ClientId, GroupId, Holder, MAX_SHARE_PPM, Reservation};

/// Limits of a reservation. A smaller budget would not cover a slice, and no program needs a longer period.
pub const MIN_BUDGET_US: u32 = 100;
pub const MIN_PERIOD_US: u32 = 1000;
pub const MAX_PERIOD_US: u32 = 10_000_000;
/// The valid range of the longest wait for an Expose and of the longest time between two releases of a held client.
const PACING_RANGE_US: RangeInclusive<u32> = 1_000..=1_000_000;
const WEIGHTS: RangeInclusive<u32> = 1..=10_000;
/// A smaller cap would look like a hang.
const CAPS_PPM: RangeInclusive<u32> = 10_000..=1_000_000;
const PRIORITIES: RangeInclusive<i32> = -1000..=1000;

/// Makes a setting, or undoes it if the new value is the initial one.
pub(super) fn set<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    subject: Subject,
    setting: Setting,
) -> Result<(), Refused> {
    let client = subject.client();
    let is_initial = setting == initial(subject, setting.kind())?;
    let target = target(engine, asker, subject)?;
    if !is_initial {
        is_in_range(client, &setting)?;
    }
    if let Setting::Group(name) = setting {
        if engine.groups.named(name).is_some_and(|group| !may_change_all(engine, asker, group)) {
            return Err(Refused::Access(client));
        }
    }
    let Some(origin) = engine.origin_for(asker, target, setting.kind()) else {
        // A user limit that already has this value keeps its origin.
        let is_as_wanted = setting == Setting::UserLimit(engine.groups.user_limit_ppm);
        return if is_as_wanted { Ok(()) } else { Err(Refused::Access(client)) };
    };
    if let Setting::Reservation(reservation) = setting {
        is_within_user_limit(engine, target, &reservation)?;
        engine.update_supply();
    }
    match engine.apply(target, setting) {
        Some(Admission::Refused(term)) => return Err(Refused::Admission(base_of_holder(engine, term.holder))),
        None if !is_initial && setting.kind() == SettingKind::Reservation => return Err(Refused::Value(client)),
        _ => {}
    }
    engine.note_origin(target, &setting, Some(origin).filter(|_| !is_initial));
    Ok(())
}

/// The initial value of a subject's setting; refused if the subject has no such setting.
pub(super) fn initial(subject: Subject, kind: SettingKind) -> Result<Setting, Refused> {
    kind.initial(subject).ok_or(Refused::Value(kind as u32))
}

pub(super) fn check_admission<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    subject: Subject,
    reservation: Reservation,
) -> Result<Admission, Refused> {
    initial(subject, SettingKind::Reservation)?;
    let client = subject.client();
    let id = client_of(engine, asker, client)?;
    is_in_range(client, &Setting::Reservation(reservation))?;
    engine.update_supply();
    let (now, scheduler) = (engine.now, &engine.scheduler);
    let holder = match subject {
        Subject::Group(_) => Holder::Group(engine.slot(id).map_or(GroupId::NONE, |slot| slot.group)),
        _ => Holder::Client(id),
    };
    scheduler.check_admission(holder, reservation, now).ok_or(Refused::Value(client))
}

/// The target of a subject, if the asker may change it.
fn target<H: Host>(engine: &Engine<H>, asker: ClientId, subject: Subject) -> Result<Target, Refused> {
    match subject {
        Subject::Client(client) => subject_to_change(engine, asker, client).map(Target::Client),
        Subject::Group(client) => {
            let id = subject_to_change(engine, asker, client)?;
            let group = engine.slot(id).map(|slot| slot.group).filter(|&group| group != GroupId::NONE);
            // A client that is scheduled separately has no group.
            let group = group.ok_or(Refused::Value(client))?;
            let may = may_change_all(engine, asker, group);
            if may { Ok(Target::Group(group, id)) } else { Err(Refused::Access(client)) }
        }
        Subject::Server => may_administer(engine, asker).map(|()| Target::Server),
    }
}

/// Returns true if the asker may change each client of the group, since a setting of the group affects them all.
fn may_change_all<H: Host>(engine: &Engine<H>, asker: ClientId, group: GroupId) -> bool {
    engine.members(group).all(|id| may_change(engine, asker, id))
}

fn is_in_range(client: u32, setting: &Setting) -> Result<(), Refused> {
    let (value, is_in_range) = match *setting {
        Setting::Reservation(Reservation { budget_ns, period_ns, .. }) => {
            let (budget_us, period_us) = (us(budget_ns), us(period_ns));
            if !(MIN_PERIOD_US..=MAX_PERIOD_US).contains(&period_us) {
                return Err(Refused::Value(period_us));
            }
            (budget_us, (MIN_BUDGET_US..=period_us).contains(&budget_us))
        }
        Setting::Weight(weight) => (weight, WEIGHTS.contains(&weight)),
        Setting::Priority(priority) => (priority as u32, PRIORITIES.contains(&priority)),
        Setting::Cap(ppm) => (ppm, CAPS_PPM.contains(&ppm)),
        Setting::Slice(us) => (us, SLICE_RANGE_US.contains(&us)),
        Setting::Group(name) => (client, is_valid_name(name)),
        Setting::Pacing(pacing) => {
            let (limit_us, floor_us) = (us(pacing.limit_ns), us(pacing.floor_ns));
            // A limit of 0 switches pacing off.
            if limit_us != 0 && !PACING_RANGE_US.contains(&limit_us) {
                return Err(Refused::Value(limit_us));
            }
            (floor_us, PACING_RANGE_US.contains(&floor_us))
        }
        Setting::Desktop(ppm) => (ppm, ppm <= MAX_SHARE_PPM),
        // 0 switches cutting off.
        Setting::Cut(us) => (us, us == 0 || PART_RANGE_US.contains(&us)),
        Setting::UserLimit(ppm) => (ppm, ppm <= MAX_UTILIZATION_LIMIT_PPM),
        Setting::Paced(_) | Setting::Grouping(_) => return Ok(()),
    };
    if is_in_range { Ok(()) } else { Err(Refused::Value(value)) }
}

/// Checks the limit on one user's reservations, which is separate from admission control.
fn is_within_user_limit<H: Host>(engine: &Engine<H>, target: Target, reservation: &Reservation) -> Result<(), Refused> {
    let (id, holder) = match target {
        Target::Client(id) => (id, Holder::Client(id)),
        Target::Group(group, id) => (id, Holder::Group(group)),
        Target::Server => return Ok(()),
    };
    let is_within =
        *reservation == NO_RESERVATION || engine.is_within_user_limit(id, holder, reservation.utilization_ppm());
    if is_within { Ok(()) } else { Err(Refused::Admission(base_of(engine, id))) }
}
