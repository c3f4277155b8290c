// SPDX-License-Identifier: MIT
//! Requests of XQOS: parsed by `xqos_abi`, checked for who asks, carried out on the scheduler, answered.
//!
//! Nothing is changed by a request that is refused.

mod groups;
pub mod reports;

use crate::host::Host;
use crate::mechanism::engine::ByHand;
use crate::mechanism::engine::{Engine, RESOURCE_ID_BITS};
use crate::mechanism::origins::Setting;
use crate::mechanism::settings::{FaultPlace, MAX_UTILIZATION_LIMIT_PPM, SLICE_RANGE_US};
use xqos_abi::trace::Level;
use xqos_abi::{
    ClientList, LongestRequests, Mistake, NotifyKind, Order, Paced, PolicyChange, Request, TraceStarted, event_mask,
};
use xqos_core::{
    Admission, ClientId, Fact, Holder, MAX_SHARE_PPM, Pacing, Parameters, PolicyKind, Reservation, ReservationKind,
    Time,
};

/// Limits of a reservation: a budget below a slice's bookkeeping, or a period of minutes, serves nobody.
const MIN_BUDGET_US: u32 = 100;
const MIN_PERIOD_US: u32 = 1000;
const MAX_PERIOD_US: u32 = 10_000_000;
/// Longest wait for an Expose, and the floor's interval.
const PACING_RANGE_US: std::ops::RangeInclusive<u32> = 1_000..=1_000_000;
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// A cap of less than a hundredth would look like a hang.
const CAPS_PPM: std::ops::RangeInclusive<u32> = 10_000..=1_000_000;
const PRIORITIES: std::ops::RangeInclusive<i32> = -1000..=1000;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such request.
    Request,
    Length,
    /// The value that cannot be.
    Value(u32),
    /// The asker may not; of which client, 0: of none.
    Access(u32),
    /// The kernel gives no more.
    Alloc,
    Implementation,
    /// Admission control says no: whose deadline would not be kept.
    Admission(u32),
}

type Answer = Result<Option<Vec<u8>>, Refused>;

/// How an answer to a request has to look.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub sequence: u16,
    pub order: Order,
}

/// Carries out a request that a client sent; the reply, where it has one.
pub fn answer<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: &[u8], form: Form) -> Answer {
    let request = Request::parse(request, form.order).map_err(mistake_of)?;
    if let Err(fault) = engine.fail_on_purpose(FaultPlace::Request) {
        panic!("{fault}");
    }
    if engine.identity(asker).is_none() {
        return Err(Refused::Implementation);
    }
    if !may_ask(engine, asker) {
        return Err(Refused::Access(0));
    }
    carry_out(engine, asker, request, form)
}

/// After xqos stepped aside it still says so, and refuses everything else.
pub fn answer_aside(request: &[u8], form: Form, reason: &str, now: Time, cpu_ns: u64) -> Result<Vec<u8>, Refused> {
    let Form { sequence, order } = form;
    match Request::parse(request, order).map_err(mistake_of)? {
        Request::QueryVersion { .. } => Ok(reports::version().encode(sequence, order)),
        Request::GetServerInfo => Ok(reports::server_info_aside(reason).encode(sequence, order)),
        Request::ListClients => {
            Ok(ClientList { now_ns: now.0, server_cpu_ns: cpu_ns, clients: Vec::new() }.encode(sequence, order))
        }
        _ => Err(Refused::Implementation),
    }
}

fn carry_out<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request, form: Form) -> Answer {
    let Form { sequence, order } = form;
    let reply = match request {
        Request::QueryVersion { .. } => reports::version().encode(sequence, order),
        Request::GetServerInfo => reports::server_info(engine).encode(sequence, order),
        Request::GetReservation { client } => {
            let id = subject(engine, asker, client)?;
            reports::reservation_report(engine, id).encode(sequence, order)
        }
        Request::CheckAdmission { client, budget_us, period_us, kind } => {
            let id = subject(engine, asker, client)?;
            let reservation = reservation(budget_us, period_us, kind)?;
            engine.look_at_supply();
            let at = engine.host.now();
            let admission = engine.scheduler.check_admission(id, reservation, at);
            reports::admission_report(engine, admission.ok_or(Refused::Value(client))?).encode(sequence, order)
        }
        Request::ListClients => {
            let clients = engine.ids().filter_map(|id| reports::entry(engine, id, asker)).collect();
            ClientList { now_ns: engine.host.now().0, server_cpu_ns: engine.host.cpu_ns(), clients }
                .encode(sequence, order)
        }
        Request::ListDeparted => {
            let clients = engine.departed.list();
            ClientList { now_ns: engine.host.now().0, server_cpu_ns: engine.host.cpu_ns(), clients }
                .encode(sequence, order)
        }
        Request::GetDesktop => reports::desktop_report(engine).encode(sequence, order),
        Request::GetGroups => reports::groups_report(engine).encode(sequence, order),
        Request::GetPacing => reports::pacing_report(engine).encode(sequence, order),
        Request::GetProcessor => {
            engine.look_at_supply();
            reports::processor_report(engine).encode(sequence, order)
        }
        Request::ListLongestRequests => LongestRequests { requests: engine.longest.list() }.encode(sequence, order),
        Request::StartTrace { level, capacity } => start_trace(engine, asker, level, capacity, form)?,
        _ => {
            change(engine, asker, request)?;
            // What one client's setting does to its group, whoever is in it.
            engine.sync_holds();
            return Ok(None);
        }
    };
    Ok(Some(reply))
}

/// Requests that change something and have no reply.
fn change<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request) -> Result<(), Refused> {
    match request {
        Request::SetReservation { client, budget_us, period_us, kind } => {
            reserve(engine, asker, client, (budget_us, period_us, kind))?;
        }
        Request::ClearReservation { client } => {
            let id = subject_to_change(engine, asker, client)?;
            engine.origin_for(asker, id, Setting::Reservation).map_err(|ByHand| Refused::Access(client))?;
            engine.release(id);
            engine.note_made(id, Setting::Reservation, None);
        }
        Request::SetClientWeight { client, weight } => {
            let id = subject_to_change(engine, asker, client)?;
            if !WEIGHTS.contains(&weight) {
                return Err(Refused::Value(weight));
            }
            let origin = engine.origin_for(asker, id, Setting::Weight).map_err(|ByHand| Refused::Access(client))?;
            engine.scheduler.handle(engine.host.now(), Fact::Weight { client: id, weight });
            engine.note_made(id, Setting::Weight, Some(origin).filter(|_| weight != 100));
        }
        Request::SetClientPriority { client, priority } => {
            let id = subject_to_change(engine, asker, client)?;
            if !PRIORITIES.contains(&priority) {
                return Err(Refused::Value(priority as u32));
            }
            let origin = engine.origin_for(asker, id, Setting::Priority).map_err(|ByHand| Refused::Access(client))?;
            engine.scheduler.handle(engine.host.now(), Fact::FixedPriority { client: id, priority });
            engine.note_made(id, Setting::Priority, Some(origin).filter(|_| priority != 0));
        }
        Request::SetOrigin { name, lease } => engine.set_origin(asker, name, lease),
        Request::SetClientGroup { .. } | Request::SetGroupWeight { .. } | Request::SetGroupCap { .. } => {
            groups::change(engine, asker, request)?;
        }
        Request::SetClientPacing { client, paced } => {
            let id = subject_to_change(engine, asker, client)?;
            let origin = engine.origin_for(asker, id, Setting::Pacing).map_err(|ByHand| Refused::Access(client))?;
            engine.set_client_pacing(id, paced);
            engine.note_made(id, Setting::Pacing, Some(origin).filter(|_| paced != Paced::AsAll));
        }
        Request::SetGroupReservation { .. } | Request::ClearGroupReservation { .. } => {
            groups::change_reservation(engine, asker, request)?;
        }
        Request::SetPolicy(_)
        | Request::SetPacing { .. }
        | Request::SetDesktop { .. }
        | Request::SetGroups { .. }
        | Request::LendProcessor { .. } => {
            may_steer(engine, asker)?;
            steer(engine, asker, request)?;
        }
        Request::StopTrace => engine.stop_trace(asker),
        Request::SelectEvents { mask } => engine.select_events(asker, mask & event_mask::ALL),
        _ => return Err(Refused::Request),
    }
    Ok(())
}

/// A reservation for one client.
fn reserve<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    client: u32,
    (budget_us, period_us, kind): (u32, u32, ReservationKind),
) -> Result<(), Refused> {
    let id = subject_to_change(engine, asker, client)?;
    let reservation = reservation(budget_us, period_us, kind)?;
    let origin = engine.origin_for(asker, id, Setting::Reservation).map_err(|ByHand| Refused::Access(client))?;
    if !engine.is_within_user_limit(id, Holder::Client(id), reservation.utilization_ppm()) {
        return Err(Refused::Admission(base_of(engine, id)));
    }
    engine.look_at_supply();
    let outcome = engine.scheduler.handle(engine.host.now(), Fact::Reserve { client: id, reservation });
    admitted(engine, outcome.admission(), client)?;
    engine.note_made(id, Setting::Reservation, Some(origin));
    engine.reservation_changed(id);
    engine.notify(NotifyKind::ReservationSet, id, 0);
    Ok(())
}

/// The answer to a reservation; `client` was named for it.
fn admitted<H: Host>(engine: &Engine<H>, admission: Option<Admission>, client: u32) -> Result<(), Refused> {
    match admission {
        Some(Admission::Admitted(_)) => Ok(()),
        Some(Admission::Refused(term)) => Err(Refused::Admission(base_of_holder(engine, term.holder))),
        None => Err(Refused::Value(client)),
    }
}

/// The same, for what concerns the whole server.
fn steer<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request) -> Result<(), Refused> {
    match request {
        Request::SetPolicy(change) => {
            if change.policy == Some(PolicyKind::Classic) && !engine.host.sees_each_request() {
                return Err(Refused::Implementation);
            }
            let parameters = changed_parameters(engine, change)?;
            engine.set_policy(change.policy, parameters);
        }
        Request::SetPacing { limit_us, floor_us } => {
            engine.set_pacing(pacing(limit_us, floor_us)?);
        }
        Request::SetDesktop { share_ppm } => {
            if share_ppm > MAX_SHARE_PPM {
                return Err(Refused::Value(share_ppm));
            }
            engine.scheduler.handle(engine.host.now(), Fact::DesktopShare { ppm: share_ppm });
        }
        Request::SetGroups { grouping, user_limit_ppm } => {
            if user_limit_ppm > MAX_UTILIZATION_LIMIT_PPM {
                return Err(Refused::Value(user_limit_ppm));
            }
            engine.set_grouping(asker, grouping, user_limit_ppm).map_err(|ByHand| Refused::Access(0))?;
        }
        Request::LendProcessor { on, limit_before } => {
            if let Err(error) = engine.lend(asker, on, limit_before) {
                engine.host.log(&format!("no real-time priority was taken: {error}"));
                return Err(Refused::Alloc);
            }
        }
        _ => return Err(Refused::Request),
    }
    Ok(())
}

/// Hands the ring over: only a local client can take a descriptor. The reply follows it.
fn start_trace<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    level: Level,
    capacity: u32,
    form: Form,
) -> Result<Vec<u8>, Refused> {
    if !engine.identity(asker).is_some_and(|identity| identity.is_local()) {
        return Err(Refused::Access(0));
    }
    if level == Level::Requests && !engine.host.sees_each_request() {
        return Err(Refused::Implementation);
    }
    let handed = engine.start_trace(asker, level, capacity).map_err(|error| {
        engine.host.log(&format!("no trace could be started: {error}"));
        Refused::Alloc
    })?;
    if let Err(error) = engine.host.hand_over(asker, handed.fd) {
        engine.stop_trace(asker);
        let cannot = error.kind() == std::io::ErrorKind::Unsupported;
        return Err(if cannot { Refused::Access(0) } else { Refused::Implementation });
    }
    let started = TraceStarted { capacity: handed.capacity, first: handed.first };
    Ok(started.encode(form.sequence, form.order))
}

// Who is meant, and whether the asker may.

/// The client that a resource id belongs to; 0 is the asker.
fn subject<H: Host>(engine: &Engine<H>, asker: ClientId, resource: u32) -> Result<ClientId, Refused> {
    if resource == 0 {
        return Ok(asker);
    }
    let is_outside = resource & !RESOURCE_ID_BITS != 0;
    engine.owner_of(resource).filter(|_| !is_outside).ok_or(Refused::Value(resource))
}

fn subject_to_change<H: Host>(engine: &Engine<H>, asker: ClientId, resource: u32) -> Result<ClientId, Refused> {
    let id = subject(engine, asker, resource)?;
    if engine.slot(id).is_none() {
        return Err(Refused::Value(resource));
    }
    if may_change(engine, asker, id) { Ok(id) } else { Err(Refused::Access(resource)) }
}

fn may_change<H: Host>(engine: &Engine<H>, asker: ClientId, id: ClientId) -> bool {
    let (Some(asking), Some(other)) = (engine.identity(asker), engine.slot(id)) else { return false };
    id == asker || asking.may_change(&other.identity, engine.host.user())
}

/// A client may, for the server let it in. Anyone can open the control socket: there it is who has a client, too.
fn may_ask<H: Host>(engine: &Engine<H>, asker: ClientId) -> bool {
    if engine.slot(asker).is_some() {
        return true;
    }
    let Some(asking) = engine.identity(asker) else { return false };
    // A connection that the server has not let in yet has no resource ids.
    let is_in = |id| engine.slot(id).is_some_and(|slot| slot.base != 0 && asking.is_same_user(&slot.identity));
    asking.may_steer(engine.host.user()) || engine.ids().any(is_in)
}

fn may_steer<H: Host>(engine: &Engine<H>, asker: ClientId) -> Result<(), Refused> {
    let may = engine.identity(asker).is_some_and(|identity| identity.may_steer(engine.host.user()));
    if may { Ok(()) } else { Err(Refused::Access(0)) }
}

fn base_of<H: Host>(engine: &Engine<H>, id: ClientId) -> u32 {
    engine.slot(id).map_or(0, |slot| slot.base)
}

/// Of a group: that of the first of its clients.
fn base_of_holder<H: Host>(engine: &Engine<H>, holder: Holder) -> u32 {
    match holder {
        Holder::Client(id) => base_of(engine, id),
        Holder::Group(group) => {
            let is_in = |id: &ClientId| engine.slot(*id).is_some_and(|slot| slot.group == group);
            engine.ids().find(is_in).map_or(0, |id| base_of(engine, id))
        }
    }
}

// Values.

fn reservation(budget_us: u32, period_us: u32, kind: ReservationKind) -> Result<Reservation, Refused> {
    if !(MIN_PERIOD_US..=MAX_PERIOD_US).contains(&period_us) {
        return Err(Refused::Value(period_us));
    }
    if !(MIN_BUDGET_US..=period_us).contains(&budget_us) {
        return Err(Refused::Value(budget_us));
    }
    Ok(Reservation { budget_ns: u64::from(budget_us) * 1000, period_ns: u64::from(period_us) * 1000, kind })
}

/// A limit of 0 switches pacing off.
fn pacing(limit_us: u32, floor_us: u32) -> Result<Pacing, Refused> {
    if limit_us != 0 && !PACING_RANGE_US.contains(&limit_us) {
        return Err(Refused::Value(limit_us));
    }
    if !PACING_RANGE_US.contains(&floor_us) {
        return Err(Refused::Value(floor_us));
    }
    Ok(Pacing { limit_ns: u64::from(limit_us) * 1000, floor_ns: u64::from(floor_us) * 1000 })
}

fn changed_parameters<H: Host>(engine: &Engine<H>, change: PolicyChange) -> Result<Parameters, Refused> {
    let mut parameters = engine.scheduler.parameters();
    let slice = |value: Option<u32>, place: &mut u64| match value {
        Some(us) if !SLICE_RANGE_US.contains(&us) => Err(Refused::Value(us)),
        Some(us) => {
            *place = u64::from(us) * 1000;
            Ok(())
        }
        None => Ok(()),
    };
    slice(change.slice_us, &mut parameters.slice_ns)?;
    slice(change.timer_interval_us, &mut parameters.timer_interval_ns)?;
    slice(change.maximum_slice_us, &mut parameters.maximum_slice_ns)?;
    if let Some(ppm) = change.max_utilization_ppm {
        if ppm > MAX_UTILIZATION_LIMIT_PPM || ppm < engine.scheduler.admitted_utilization_ppm() {
            return Err(Refused::Value(ppm));
        }
        parameters.max_utilization_ppm = ppm;
    }
    if let Some(blocking_us) = change.blocking_us {
        parameters.blocking_ns = u64::from(blocking_us) * 1000;
    }
    Ok(parameters)
}

fn mistake_of(mistake: Mistake) -> Refused {
    match mistake {
        Mistake::Length => Refused::Length,
        Mistake::Opcode => Refused::Request,
        Mistake::Value(value) => Refused::Value(value),
    }
}
