// SPDX-License-Identifier: MIT
//! Requests of the XQOS extension: parsed by `xqos_abi`, checked against the asker's rights, applied to the scheduler,
//! and answered.
//!
//! A refused request changes nothing.

pub mod reports;
mod settings;

use crate::mechanism::engine::{Engine, RESOURCE_ID_BITS};
use crate::mechanism::host::Host;
use crate::mechanism::settings::FaultPlace;
use xqos_abi::trace::{Level, RECORD_BYTES};
use xqos_abi::{
    ADMISSION_ERROR, ByteOrder, ClientEntry, ClientList, LongestRequests, Malformed, NO_RESERVATION, PolicyChange,
    Request, Setting, TraceStarted, event_mask,
};
use xqos_core::setting::{MAX_UTILIZATION, MAXIMUM_SLICE, POLICY_SLICE, TIMER_INTERVAL};
use xqos_core::{ClientId, Holder, Parameters, PolicyKind, Range, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Request,
    Length,
    Value(u32),
    /// The asker lacks the right to change this client; 0 means the server.
    Access(u32),
    /// The kernel refused resources that the request needs.
    Alloc,
    Implementation,
    /// Admission control refused the reservation, because this client's deadline could not be met.
    Admission(u32),
}

impl Refused {
    /// The X error code and value for the asker. `first_error` is the first error code of the extension.
    pub fn code(self, first_error: u8) -> (u8, u32) {
        match self {
            Refused::Request => (1, 0),
            Refused::Value(value) => (2, value),
            Refused::Access(client) => (10, client),
            Refused::Alloc => (11, 0),
            Refused::Length => (16, 0),
            Refused::Implementation => (17, 0),
            Refused::Admission(client) => (first_error + ADMISSION_ERROR, client),
        }
    }
}

type RequestResult = Result<Option<Vec<u8>>, Refused>;

/// The sequence number and byte order of a reply.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub sequence: u16,
    pub order: ByteOrder,
}

/// Carries out a client's request. Returns the reply if the request has one.
pub fn answer<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: &[u8], format: Format) -> RequestResult {
    let request = Request::parse(request, format.order).map_err(mistake_of)?;
    if let Err(fault) = engine.fail_on_purpose(FaultPlace::Request) {
        panic!("{fault}");
    }
    if engine.identity(asker).is_none() {
        return Err(Refused::Implementation);
    }
    if !may_ask(engine, asker) {
        return Err(Refused::Access(0));
    }
    engine.awaken();
    carry_out(engine, asker, request, format)
}

/// Answers the few requests that work after xqos stepped aside, and refuses all others.
pub fn answer_aside(request: &[u8], format: Format, reason: &str, now: Time, cpu_ns: u64) -> Result<Vec<u8>, Refused> {
    let Format { sequence, order } = format;
    match Request::parse(request, order).map_err(mistake_of)? {
        Request::QueryVersion { .. } => Ok(reports::version().encode(sequence, order)),
        Request::GetServerInfo => Ok(reports::server_info_aside(reason).encode(sequence, order)),
        Request::ListClients => {
            Ok(ClientList { now_ns: now.0, server_cpu_ns: cpu_ns, clients: Vec::new() }.encode(sequence, order))
        }
        _ => Err(Refused::Implementation),
    }
}

fn carry_out<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request, format: Format) -> RequestResult {
    let Format { sequence, order } = format;
    let reply = match request {
        Request::QueryVersion { .. } => reports::version().encode(sequence, order),
        Request::GetServerInfo => reports::server_info(engine).encode(sequence, order),
        Request::GetReservation { client } => {
            let id = subject(engine, asker, client)?;
            reports::reservation_report(engine, id).encode(sequence, order)
        }
        Request::CheckAdmission { subject, reservation } => {
            let admission = settings::check_admission(engine, asker, subject, reservation)?;
            reports::admission_report(engine, admission).encode(sequence, order)
        }
        Request::ListClients => {
            let clients = engine.ids().filter_map(|id| engine.entry(id, asker)).collect();
            list(engine, clients).encode(sequence, order)
        }
        Request::ListDeparted => list(engine, engine.departed.list()).encode(sequence, order),
        Request::GetCut => reports::cut_report(engine).encode(sequence, order),
        Request::GetDesktop => reports::desktop_report(engine).encode(sequence, order),
        Request::GetGroups => reports::groups_report(engine).encode(sequence, order),
        Request::GetPacing => reports::pacing_report(engine).encode(sequence, order),
        Request::GetProcessor => {
            engine.update_supply();
            reports::processor_report(engine).encode(sequence, order)
        }
        Request::ListLongestRequests => LongestRequests { requests: engine.longest.list() }.encode(sequence, order),
        Request::StartTrace { level, capacity } => start_trace(engine, asker, level, capacity, format)?,
        _ => {
            change(engine, asker, request)?;
            return Ok(None);
        }
    };
    Ok(Some(reply))
}

fn list<H: Host>(engine: &Engine<H>, clients: Vec<ClientEntry>) -> ClientList {
    ClientList { now_ns: engine.now.0, server_cpu_ns: engine.host.cpu_ns(), clients }
}

/// Carries out requests that change something and have no reply.
fn change<H: Host>(engine: &mut Engine<H>, asker: ClientId, request: Request) -> Result<(), Refused> {
    match request {
        // No client sets a reservation of zero intentionally.
        Request::Set { setting: Setting::Reservation(NO_RESERVATION), .. } => return Err(Refused::Value(0)),
        Request::Set { subject, setting } => settings::set(engine, asker, subject, setting)?,
        Request::Clear { subject, setting } => {
            settings::set(engine, asker, subject, settings::initial(subject, setting)?)?;
        }
        Request::SetPolicy { change } => {
            may_administer(engine, asker)?;
            if change.policy == Some(PolicyKind::Classic) && !engine.host.sees_each_request() {
                return Err(Refused::Implementation);
            }
            let parameters = changed_parameters(engine, change)?;
            engine.set_policy(change.policy, parameters);
        }
        Request::LendProcessor { on, limit_before } => {
            may_administer(engine, asker)?;
            if let Err(error) = engine.lend(asker, on, limit_before) {
                engine.log(format!("the server got no real-time priority: {error}"));
                return Err(Refused::Alloc);
            }
        }
        Request::MarkExposing { client } => {
            let id = subject_to_change(engine, asker, client)?;
            engine.mark_exposing(id);
        }
        Request::SetOrigin { name, lease } => engine.set_origin(asker, name, lease),
        Request::StopTrace => engine.stop_trace(asker),
        Request::SelectEvents { mask } if mask & !event_mask::ALL != 0 => return Err(Refused::Value(mask)),
        Request::SelectEvents { mask } => engine.select_events(asker, mask),
        _ => return Err(Refused::Request),
    }
    Ok(())
}

/// Passes the ring's descriptor to the asker, which must be a local client. The reply follows the descriptor.
fn start_trace<H: Host>(
    engine: &mut Engine<H>,
    asker: ClientId,
    level: Level,
    capacity: u32,
    format: Format,
) -> Result<Vec<u8>, Refused> {
    if !engine.identity(asker).is_some_and(|identity| identity.is_local()) {
        return Err(Refused::Access(0));
    }
    if level == Level::Requests && !engine.host.sees_each_request() {
        return Err(Refused::Implementation);
    }
    let handed = engine.start_trace(asker, level, capacity).map_err(|error| {
        engine.log(format!("the trace could not be started: {error}"));
        Refused::Alloc
    })?;
    if let Err(error) = engine.host.hand_over(asker, handed.fd) {
        engine.stop_trace(asker);
        let cannot = error.kind() == std::io::ErrorKind::Unsupported;
        return Err(if cannot { Refused::Access(0) } else { Refused::Implementation });
    }
    let record_bytes = RECORD_BYTES as u32;
    let started = TraceStarted { nfd: 1, capacity: handed.capacity, record_bytes, first: handed.first };
    Ok(started.encode(format.sequence, format.order))
}

// Subjects and rights.

/// The client that owns a resource id; 0 means the asker.
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

/// Returns true if the asker may make any requests. The server has admitted its clients, but anyone can open the
/// control socket, so an ordinary user of the socket must also have a client.
fn may_ask<H: Host>(engine: &Engine<H>, asker: ClientId) -> bool {
    if engine.slot(asker).is_some() {
        return true;
    }
    let Some(asking) = engine.identity(asker) else { return false };
    // A connection that the server has not admitted yet has no resource ids.
    let is_in = |id| engine.slot(id).is_some_and(|slot| slot.base != 0 && asking.is_same_user(&slot.identity));
    asking.may_administer(engine.host.user()) || engine.ids().any(is_in)
}

fn may_administer<H: Host>(engine: &Engine<H>, asker: ClientId) -> Result<(), Refused> {
    let may = engine.identity(asker).is_some_and(|identity| identity.may_administer(engine.host.user()));
    if may { Ok(()) } else { Err(Refused::Access(0)) }
}

fn base_of<H: Host>(engine: &Engine<H>, id: ClientId) -> u32 {
    engine.slot(id).map_or(0, |slot| slot.base)
}

/// The first resource id of the client, or of the first client of a group.
fn base_of_holder<H: Host>(engine: &Engine<H>, holder: Holder) -> u32 {
    match holder {
        Holder::Client(id) => base_of(engine, id),
        Holder::Group(group) => engine.members(group).next().map_or(0, |id| base_of(engine, id)),
    }
}

// Values.

fn changed_parameters<H: Host>(engine: &Engine<H>, change: PolicyChange) -> Result<Parameters, Refused> {
    let mut parameters = engine.scheduler.parameters();
    let slice = |range: Range, value: Option<u32>, before_ns: u64| match value {
        Some(us) if !range.contains(us) => Err(Refused::Value(us)),
        us => Ok(us.map_or(before_ns, |us| u64::from(us) * 1000)),
    };
    parameters.slice_ns = slice(POLICY_SLICE, change.slice_us, parameters.slice_ns)?;
    parameters.timer_interval_ns = slice(TIMER_INTERVAL, change.timer_interval_us, parameters.timer_interval_ns)?;
    parameters.maximum_slice_ns = slice(MAXIMUM_SLICE, change.maximum_slice_us, parameters.maximum_slice_ns)?;
    if let Some(ppm) = change.max_utilization_ppm {
        if !MAX_UTILIZATION.contains(ppm) || ppm < engine.scheduler.admitted_utilization_ppm() {
            return Err(Refused::Value(ppm));
        }
        parameters.max_utilization_ppm = ppm;
    }
    if let Some(blocking_us) = change.blocking_us {
        parameters.blocking_ns = u64::from(blocking_us) * 1000;
    }
    Ok(parameters)
}

fn mistake_of(mistake: Malformed) -> Refused {
    match mistake {
        Malformed::Length => Refused::Length,
        Malformed::Opcode => Refused::Request,
        Malformed::Value(value) => Refused::Value(value),
    }
}
