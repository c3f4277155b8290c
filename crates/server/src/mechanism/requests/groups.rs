// SPDX-License-Identifier: MIT
//! Requests that change groups: who is in one, and what its clients share.

use super::{CAPS_PPM, Refused, WEIGHTS, admitted, base_of, may_change, reservation, subject_to_change};
use crate::host::Host;
use crate::mechanism::engine::{ByHand, Engine};
use crate::mechanism::groups::{Reserved, Set, is_fit};
use crate::mechanism::origins::Setting;
use xqos_abi::{NotifyKind, Request};
use xqos_core::{ClientId, GroupId, Holder};

/// Puts a client into a group, or changes the weight or the cap of the one that it is in.
pub(super) fn change<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request) -> Result<(), Refused> {
    match request {
        Request::SetClientGroup { client, name } => {
            let id = subject_to_change(engine, asker, client)?;
            if !is_fit(name) {
                return Err(Refused::Value(client));
            }
            if engine.groups.named(name).is_some_and(|group| !may_change_all(engine, asker, group)) {
                return Err(Refused::Access(client));
            }
            let origin = engine.origin_for(asker, id, Setting::Group).map_err(|ByHand| Refused::Access(client))?;
            engine.set_group_name(id, name);
            engine.note_made(id, Setting::Group, Some(origin).filter(|_| !name.is_empty()));
        }
        Request::SetGroupWeight { client, weight } => {
            let (id, group) = group_to_change(engine, asker, client)?;
            if weight != 0 && !WEIGHTS.contains(&weight) {
                return Err(Refused::Value(weight));
            }
            let origin = engine.origin_for(asker, id, Setting::Group).map_err(|ByHand| Refused::Access(client))?;
            engine.set_group_weight(group, Set { value: weight, leased_by: origin.leased_by });
            engine.notify(NotifyKind::Settings, id, 0);
        }
        Request::SetGroupCap { client, ppm } => {
            let (id, group) = group_to_change(engine, asker, client)?;
            if ppm != 0 && !CAPS_PPM.contains(&ppm) {
                return Err(Refused::Value(ppm));
            }
            let origin = engine.origin_for(asker, id, Setting::Group).map_err(|ByHand| Refused::Access(client))?;
            engine.set_group_cap(group, Set { value: ppm, leased_by: origin.leased_by });
            engine.notify(NotifyKind::Settings, id, 0);
        }
        _ => return Err(Refused::Request),
    }
    Ok(())
}

/// The reservation of a client's group.
pub(super) fn change_reservation<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    request: Request,
) -> Result<(), Refused> {
    let (client, asked) = match request {
        Request::SetGroupReservation { client, budget_us, period_us, kind } => {
            (client, Some((budget_us, period_us, kind)))
        }
        Request::ClearGroupReservation { client } => (client, None),
        _ => return Err(Refused::Request),
    };
    let (id, group) = group_to_change(engine, asker, client)?;
    let uid = engine.identity(id).map_or(0, |identity| identity.uid);
    let origin = engine.origin_for(asker, id, Setting::Group).map_err(|ByHand| Refused::Access(client))?;
    if !engine.groups.reservation_gives_way(group, origin.leased_by) {
        return Err(Refused::Access(client));
    }
    match asked {
        Some((budget_us, period_us, kind)) => {
            let reservation = reservation(budget_us, period_us, kind)?;
            if !engine.is_within_user_limit(id, Holder::Group(group), reservation.utilization_ppm()) {
                return Err(Refused::Admission(base_of(engine, id)));
            }
            engine.look_at_supply();
            let by = Reserved { uid, leased_by: origin.leased_by };
            let admission = engine.reserve_for_group(group, reservation, by);
            admitted(engine, admission, client)?;
        }
        None => engine.release_group(group),
    }
    engine.notify(NotifyKind::Settings, id, 0);
    Ok(())
}

/// A client that the asker may change, and its group; refused where it stands for itself, or others are in it whom the asker
/// may not change.
fn group_to_change<H: Host>(engine: &Engine<H>, asker: ClientId, client: u32) -> Result<(ClientId, GroupId), Refused> {
    let id = subject_to_change(engine, asker, client)?;
    let group = engine.slot(id).map(|slot| slot.group).filter(|&group| group != GroupId::NONE);
    let group = group.ok_or(Refused::Value(client))?;
    if may_change_all(engine, asker, group) { Ok((id, group)) } else { Err(Refused::Access(client)) }
}

/// What is done to a group, or shared with it, is done to each of its clients.
fn may_change_all<H: Host>(engine: &Engine<H>, asker: ClientId, group: GroupId) -> bool {
    let is_in = |id: &ClientId| engine.slot(*id).is_some_and(|slot| slot.group == group);
    engine.ids().filter(is_in).all(|id| may_change(engine, asker, id))
}
