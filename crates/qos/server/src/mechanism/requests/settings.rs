// SPDX-License-Identifier: MIT
//! Handles the requests Set, Clear and CheckAdmission: checks rights and values before the engine applies a setting.

use super::{Refused, base_of, base_of_holder, may_administer, may_change, subject as client_of, subject_to_change};
use crate::mechanism::engine::{Engine, Target};
use crate::mechanism::groups::is_valid_name;
use crate::mechanism::host::Host;
use xqos_abi::{NO_RESERVATION, Setting, SettingKind, Subject, us};
use xqos_core::setting::{BUDGET, CAP, CUT, DESKTOP, PACING, PERIOD, PRIORITY, SLICE, USER_LIMIT, WEIGHT};
use xqos_core::{Admission, ClientId, GroupId, Holder, Range, Reservation};

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
    let fits = |value, is_valid| if is_valid { Ok(()) } else { Err(Refused::Value(value)) };
    let within = |range: Range, value| fits(value, range.contains(value));
    match *setting {
        Setting::Reservation(Reservation { budget_ns, period_ns, .. }) => {
            let (budget_us, period_us) = (us(budget_ns), us(period_ns));
            within(PERIOD, period_us)?;
            fits(budget_us, (BUDGET.least..=period_us).contains(&budget_us))
        }
        Setting::Weight(weight) => within(WEIGHT, weight),
        Setting::Priority(priority) => fits(priority as u32, PRIORITY.contains(priority)),
        Setting::Cap(ppm) => within(CAP, ppm),
        Setting::Slice(us) => within(SLICE, us),
        Setting::Group(name) => fits(client, is_valid_name(name)),
        Setting::Pacing(pacing) => {
            let limit_us = us(pacing.limit_ns);
            // A limit of 0 switches pacing off.
            if limit_us != 0 {
                within(PACING, limit_us)?;
            }
            within(PACING, us(pacing.floor_ns))
        }
        Setting::Desktop(ppm) => within(DESKTOP, ppm),
        Setting::Cut(us) => within(CUT, us),
        Setting::UserLimit(ppm) => within(USER_LIMIT, ppm),
        Setting::Paced(_) | Setting::Grouping(_) => Ok(()),
    }
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
