//! Requests of XQOS: parsed by `xqos_abi`, checked for who asks, carried out on the scheduler, answered.
//!
//! Every answer is an X error code or `SUCCESS`; nothing is changed by a request that is refused.

use crate::host::dix::client::Client;
use crate::host::dix::symbols::x_error;
use crate::host::dix::watcher::now;
use crate::mechanism::engine::{Engine, RESOURCE_ID_BITS, Slot, order_of};
use crate::mechanism::settings::{MAX_UTILIZATION_LIMIT_PPM, SLICE_RANGE_US};
use std::ffi::c_int;
use std::os::fd::IntoRawFd;
use xqos_abi::trace::Level;
use xqos_abi::{
    ADMISSION_ERROR, AdmissionReport, ClientEntry, ClientList, DesktopReport, LongestRequests, Mistake, NotifyKind,
    PacingReport, PolicyChange, ProcessorReport, Request, ReservationReport, ServerInfo, TraceStarted, VERSION,
    Version, entry_flag, event_mask, us,
};
use xqos_core::{Admission, ClientId, Fact, MAX_SHARE_PPM, Pacing, Parameters, PolicyKind, Reservation, Term};

/// Limits of a reservation: a budget below a slice's bookkeeping, or a period of minutes, serves nobody.
const MIN_BUDGET_US: u32 = 100;
const MIN_PERIOD_US: u32 = 1000;
const MAX_PERIOD_US: u32 = 10_000_000;
/// Longest wait for an Expose, and the floor's interval.
const PACING_RANGE_US: std::ops::RangeInclusive<u32> = 1_000..=1_000_000;
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=10_000;
const PRIORITIES: std::ops::RangeInclusive<i32> = -1000..=1000;

/// Why a request is refused: error code and value.
struct Refused(c_int, u32);

type Answer = Result<Option<Vec<u8>>, Refused>;

/// Carries out the request that `client` sent; the error code for the server.
pub fn answer(engine: &mut Engine, client: Client) -> c_int {
    let request = match Request::parse(&client.request(), order_of(client)) {
        Ok(request) => request,
        Err(mistake) => return refuse(client, mistake_of(mistake)),
    };
    if let Err(reason) = engine.fail_on_purpose() {
        panic!("{reason}");
    }
    let Some(id) = engine.id_of(client) else { return x_error::IMPLEMENTATION };
    match carry_out(engine, client, id, request) {
        Ok(Some(reply)) => {
            engine.send(client, &reply);
            x_error::SUCCESS
        }
        Ok(None) => x_error::SUCCESS,
        Err(refused) => refuse(client, refused),
    }
}

/// After xqos stepped aside it still says so, and refuses everything else.
pub fn answer_aside(client: Client, reason: &str) -> c_int {
    let (sequence, order) = (client.sequence() as u16, order_of(client));
    let reply = match Request::parse(&client.request(), order) {
        Ok(Request::QueryVersion { .. }) => version().encode(sequence, order),
        Ok(Request::GetServerInfo) => server_info_aside(reason).encode(sequence, order),
        Ok(Request::ListClients) => {
            ClientList { now_ns: now().0, server_cpu_ns: server_cpu_ns(), clients: Vec::new() }.encode(sequence, order)
        }
        Ok(_) => return x_error::IMPLEMENTATION,
        Err(mistake) => return refuse(client, mistake_of(mistake)),
    };
    let Ok(host) = crate::host::dix::symbols::host() else { return x_error::IMPLEMENTATION };
    // SAFETY: the client whose request is being dispatched, and that many bytes.
    unsafe { (host.write_to_client)(client.raw(), reply.len() as c_int, reply.as_ptr().cast()) };
    x_error::SUCCESS
}

fn carry_out(engine: &mut Engine, client: Client, asker: ClientId, request: Request) -> Answer {
    let (sequence, order) = (client.sequence() as u16, order_of(client));
    let reply = match request {
        Request::QueryVersion { .. } => version().encode(sequence, order),
        Request::GetServerInfo => server_info(engine).encode(sequence, order),
        Request::GetReservation { client } => {
            let id = subject(engine, asker, client)?;
            reservation_report(engine, id).encode(sequence, order)
        }
        Request::CheckAdmission { client, budget_us, period_us, hard } => {
            let id = subject(engine, asker, client)?;
            let reservation = reservation(budget_us, period_us, hard)?;
            engine.look_at_supply();
            let at = now();
            let admission = engine.scheduler.check_admission(id, reservation, at);
            admission_report(engine, admission.ok_or(Refused(x_error::VALUE, client))?).encode(sequence, order)
        }
        Request::ListClients => {
            let clients = engine.ids().filter_map(|id| entry(engine, id, asker)).collect();
            ClientList { now_ns: now().0, server_cpu_ns: server_cpu_ns(), clients }.encode(sequence, order)
        }
        Request::GetDesktop => desktop_report(engine).encode(sequence, order),
        Request::GetPacing => pacing_report(engine).encode(sequence, order),
        Request::GetProcessor => {
            engine.look_at_supply();
            processor_report(engine).encode(sequence, order)
        }
        Request::ListLongestRequests => LongestRequests { requests: engine.longest.list() }.encode(sequence, order),
        Request::StartTrace { level, capacity } => start_trace(engine, client, asker, level, capacity)?,
        _ => return change(engine, asker, request).map(|()| None),
    };
    Ok(Some(reply))
}

/// Requests that change something and have no reply.
fn change(engine: &mut Engine, asker: ClientId, request: Request) -> Result<(), Refused> {
    match request {
        Request::SetReservation { client, budget_us, period_us, hard } => {
            let id = subject_to_change(engine, asker, client)?;
            let reservation = reservation(budget_us, period_us, hard)?;
            engine.look_at_supply();
            match engine.scheduler.handle(now(), Fact::Reserve { client: id, reservation }).admission() {
                Some(Admission::Admitted(_)) => {}
                Some(Admission::Refused(term)) => {
                    let code = c_int::from(engine.first_error + ADMISSION_ERROR);
                    return Err(Refused(code, base_of(engine, term.client)));
                }
                None => return Err(Refused(x_error::VALUE, client)),
            }
            engine.reservation_changed(id);
            engine.tell(NotifyKind::ReservationSet, id, 0);
        }
        Request::ClearReservation { client } => {
            let id = subject_to_change(engine, asker, client)?;
            if engine.scheduler.reservation(id).is_some() {
                engine.tell(NotifyKind::ReservationCleared, id, 0);
                engine.scheduler.handle(now(), Fact::Release { client: id });
                engine.reservation_changed(id);
            }
        }
        Request::SetClientWeight { client, weight } => {
            let id = subject_to_change(engine, asker, client)?;
            if !WEIGHTS.contains(&weight) {
                return Err(Refused(x_error::VALUE, weight));
            }
            engine.scheduler.handle(now(), Fact::Weight { client: id, weight });
        }
        Request::SetClientPriority { client, priority } => {
            let id = subject_to_change(engine, asker, client)?;
            if !PRIORITIES.contains(&priority) {
                return Err(Refused(x_error::VALUE, priority as u32));
            }
            engine.scheduler.handle(now(), Fact::FixedPriority { client: id, priority });
        }
        Request::SetPolicy(change) => {
            may_steer(engine, asker)?;
            let parameters = changed_parameters(engine, change)?;
            engine.set_policy(change.policy, parameters);
        }
        Request::SetPacing { limit_us, floor_us } => {
            may_steer(engine, asker)?;
            engine.scheduler.handle(now(), Fact::Pacing(pacing(limit_us, floor_us)?));
        }
        Request::SetDesktop { share_ppm } => {
            may_steer(engine, asker)?;
            if share_ppm > MAX_SHARE_PPM {
                return Err(Refused(x_error::VALUE, share_ppm));
            }
            engine.scheduler.handle(now(), Fact::DesktopShare { ppm: share_ppm });
        }
        Request::LendProcessor { on, limit_before } => {
            may_steer(engine, asker)?;
            if let Err(error) = engine.lend(asker, on, limit_before) {
                engine.host.log(&format!("no real-time priority was taken: {error}"));
                return Err(Refused(x_error::ALLOC, 0));
            }
        }
        Request::StopTrace => engine.stop_trace(asker),
        Request::SelectEvents { mask } => engine.select_events(asker, mask & event_mask::ALL),
        _ => return Err(Refused(x_error::REQUEST, 0)),
    }
    Ok(())
}

/// Hands the ring over: only a local client can take a descriptor. The reply follows it.
fn start_trace(
    engine: &mut Engine,
    client: Client,
    asker: ClientId,
    level: Level,
    capacity: u32,
) -> Result<Vec<u8>, Refused> {
    let is_local = slot(engine, asker).is_some_and(|slot| slot.identity.is_local());
    let Some(write_fd) = engine.host.write_fd_to_client.filter(|_| is_local) else {
        return Err(Refused(x_error::ACCESS, 0));
    };
    let handed = engine.start_trace(asker, level, capacity).map_err(|error| {
        engine.host.log(&format!("no trace could be started: {error}"));
        Refused(x_error::ALLOC, 0)
    })?;
    // SAFETY: an open client and a descriptor that the server closes once it is sent.
    if unsafe { write_fd(client.raw(), handed.fd.into_raw_fd(), 1) } < 0 {
        engine.stop_trace(asker);
        return Err(Refused(x_error::IMPLEMENTATION, 0));
    }
    let started = TraceStarted { capacity: handed.capacity, first: handed.first };
    Ok(started.encode(client.sequence() as u16, order_of(client)))
}

// Who is meant, and whether the asker may.

/// The client that a resource id belongs to; 0 is the asker.
fn subject(engine: &Engine, asker: ClientId, resource: u32) -> Result<ClientId, Refused> {
    if resource == 0 {
        return Ok(asker);
    }
    let is_outside = resource & !RESOURCE_ID_BITS != 0;
    engine.owner_of(resource).filter(|_| !is_outside).ok_or(Refused(x_error::VALUE, resource))
}

fn subject_to_change(engine: &Engine, asker: ClientId, resource: u32) -> Result<ClientId, Refused> {
    let id = subject(engine, asker, resource)?;
    let (Some(asking), Some(other)) = (slot(engine, asker), slot(engine, id)) else {
        return Err(Refused(x_error::VALUE, resource));
    };
    let may = id == asker || asking.identity.may_change(&other.identity, server_uid());
    if may { Ok(id) } else { Err(Refused(x_error::ACCESS, resource)) }
}

fn may_steer(engine: &Engine, asker: ClientId) -> Result<(), Refused> {
    let may = slot(engine, asker).is_some_and(|slot| slot.identity.may_steer(server_uid()));
    if may { Ok(()) } else { Err(Refused(x_error::ACCESS, 0)) }
}

fn slot(engine: &Engine, id: ClientId) -> Option<&Slot> {
    engine.slot(id)
}

fn base_of(engine: &Engine, id: ClientId) -> u32 {
    slot(engine, id).map_or(0, |slot| slot.client.base())
}

fn server_uid() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

// Values.

fn reservation(budget_us: u32, period_us: u32, hard: bool) -> Result<Reservation, Refused> {
    if !(MIN_PERIOD_US..=MAX_PERIOD_US).contains(&period_us) {
        return Err(Refused(x_error::VALUE, period_us));
    }
    if !(MIN_BUDGET_US..=period_us).contains(&budget_us) {
        return Err(Refused(x_error::VALUE, budget_us));
    }
    Ok(Reservation { budget_ns: u64::from(budget_us) * 1000, period_ns: u64::from(period_us) * 1000, hard })
}

/// A limit of 0 switches pacing off.
fn pacing(limit_us: u32, floor_us: u32) -> Result<Pacing, Refused> {
    if limit_us != 0 && !PACING_RANGE_US.contains(&limit_us) {
        return Err(Refused(x_error::VALUE, limit_us));
    }
    if !PACING_RANGE_US.contains(&floor_us) {
        return Err(Refused(x_error::VALUE, floor_us));
    }
    Ok(Pacing { limit_ns: u64::from(limit_us) * 1000, floor_ns: u64::from(floor_us) * 1000 })
}

fn changed_parameters(engine: &Engine, change: PolicyChange) -> Result<Parameters, Refused> {
    let mut parameters = engine.scheduler.parameters();
    let slice = |value: Option<u32>, place: &mut u64| match value {
        Some(us) if !SLICE_RANGE_US.contains(&us) => Err(Refused(x_error::VALUE, us)),
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
            return Err(Refused(x_error::VALUE, ppm));
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
        Mistake::Length => Refused(x_error::LENGTH, 0),
        Mistake::Opcode => Refused(x_error::REQUEST, 0),
        Mistake::Value(value) => Refused(x_error::VALUE, value),
    }
}

fn refuse(client: Client, Refused(code, value): Refused) -> c_int {
    client.set_error_value(value);
    code
}

// Reports.

fn version() -> Version {
    Version { major: VERSION.0, minor: VERSION.1 }
}

/// Processor time of the server's thread, which is the one that asks.
fn server_cpu_ns() -> u64 {
    crate::host::dix::watcher::read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn server_info(engine: &Engine) -> ServerInfo {
    let (scheduler, at) = (&engine.scheduler, now());
    let parameters = scheduler.parameters();
    ServerInfo {
        armed: true,
        server_pid: std::process::id(),
        policy: scheduler.policy(),
        clients: scheduler.client_count() as u16,
        max_utilization_ppm: parameters.max_utilization_ppm,
        admitted_utilization_ppm: scheduler.admitted_utilization_ppm(),
        blocking_observed_us: us(scheduler.blocking_observed_ns(at)),
        blocking_configured_us: us(parameters.blocking_ns),
        min_budget_us: MIN_BUDGET_US,
        min_period_us: MIN_PERIOD_US,
        max_period_us: MAX_PERIOD_US,
        slice_us: us(parameters.slice_ns),
        timer_interval_us: us(parameters.timer_interval_ns),
        maximum_slice_us: us(parameters.maximum_slice_ns),
        uptime_ns: at.since(engine.totals.started),
        busy_ns: engine.totals.busy_ns,
        decisions: engine.totals.decisions,
        early_ends: engine.totals.early_ends,
        memory_bytes: engine.memory_bytes() as u32,
        reservations: scheduler.reservation_count() as u32,
        reason: String::new(),
    }
}

fn server_info_aside(reason: &str) -> ServerInfo {
    ServerInfo {
        armed: false,
        server_pid: std::process::id(),
        policy: PolicyKind::Stock,
        clients: 0,
        max_utilization_ppm: 0,
        admitted_utilization_ppm: 0,
        blocking_observed_us: 0,
        blocking_configured_us: 0,
        min_budget_us: MIN_BUDGET_US,
        min_period_us: MIN_PERIOD_US,
        max_period_us: MAX_PERIOD_US,
        slice_us: 0,
        timer_interval_us: 0,
        maximum_slice_us: 0,
        uptime_ns: 0,
        busy_ns: 0,
        decisions: 0,
        early_ends: 0,
        memory_bytes: 0,
        reservations: 0,
        reason: reason.to_owned(),
    }
}

fn pacing_report(engine: &Engine) -> PacingReport {
    let (scheduler, at) = (&engine.scheduler, now());
    let count = |is: &dyn Fn(ClientId) -> bool| engine.ids().filter(|&id| is(id)).count() as u32;
    PacingReport {
        limit_us: us(scheduler.pacing().limit_ns),
        floor_us: us(scheduler.pacing().floor_ns),
        exposing: count(&|id| scheduler.is_exposing(id, at)),
        paced: count(&|id| scheduler.paced_until(id).is_some()),
        holds: engine.holds,
    }
}

fn desktop_report(engine: &Engine) -> DesktopReport {
    let scheduler = &engine.scheduler;
    let clients = engine.ids().filter(|&id| scheduler.role(id).is_any()).count() as u32;
    DesktopReport { share_ppm: scheduler.desktop_share_ppm(), clients }
}

fn processor_report(engine: &Engine) -> ProcessorReport {
    let (supply, (is_lent, raises)) = (engine.scheduler.supply(), engine.loan());
    let limit_ppm = engine.scheduler.limit_ppm();
    ProcessorReport { is_lent, budget_us: us(supply.budget_ns), period_us: us(supply.period_ns), limit_ppm, raises }
}

fn reservation_report(engine: &Engine, id: ClientId) -> ReservationReport {
    let usage = engine.scheduler.usage(id).unwrap_or_default();
    let Some(state) = engine.scheduler.reservation(id) else {
        return ReservationReport { depletions: usage.depletions, misses: usage.misses, ..Default::default() };
    };
    ReservationReport {
        reserved: true,
        budget_us: us(state.reservation.budget_ns),
        period_us: us(state.reservation.period_ns),
        hard: state.reservation.hard,
        held_back: engine.scheduler.is_held_back(id),
        depletions: usage.depletions,
        budget_left_ns: state.budget_left_ns,
        deadline_ns: state.deadline.0,
        misses: usage.misses,
    }
}

fn admission_report(engine: &Engine, admission: Admission) -> AdmissionReport {
    let (admitted, term) = match admission {
        Admission::Admitted(term) => (true, term),
        Admission::Refused(term) => (false, term),
    };
    let Term { client, period_ns, sum_ppm, blocking_ppm } = term;
    AdmissionReport {
        admitted,
        failing_client: base_of(engine, client),
        failing_period_us: us(period_ns),
        sum_ppm,
        blocking_ppm,
        limit_ppm: engine.scheduler.limit_ppm(),
        blocking_us: us(engine.scheduler.blocking_ns(now())),
    }
}

fn entry(engine: &Engine, id: ClientId, asker: ClientId) -> Option<ClientEntry> {
    let slot = slot(engine, id)?;
    let scheduler = &engine.scheduler;
    let usage = scheduler.usage(id)?;
    let (weight, fixed_priority) = scheduler.weight_and_priority(id)?;
    let state = scheduler.reservation(id);
    let hard = state.is_some_and(|state| state.reservation.hard);
    let holds_grab = scheduler.grab() == Some(id);
    let role = scheduler.role(id);
    let flags = [
        (state.is_some(), entry_flag::RESERVED),
        (hard, entry_flag::HARD),
        (scheduler.is_held_back(id), entry_flag::HELD_BACK),
        (scheduler.is_ready(id), entry_flag::READY),
        (id == asker, entry_flag::YOU),
        (slot.identity.is_local(), entry_flag::LOCAL),
        (holds_grab, entry_flag::GRABS_SERVER),
        (role.compositor, entry_flag::COMPOSITOR),
        (role.window_manager, entry_flag::WINDOW_MANAGER),
    ];
    Some(ClientEntry {
        client: slot.client.base(),
        pid: slot.identity.pid,
        uid: slot.identity.uid,
        sync_priority: slot.sync_priority,
        weight,
        fixed_priority,
        flags: flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum(),
        budget_us: state.map_or(0, |state| us(state.reservation.budget_ns)),
        period_us: state.map_or(0, |state| us(state.reservation.period_ns)),
        depletions: usage.depletions,
        misses: usage.misses,
        longest_request: usage.longest_request,
        budget_left_ns: state.map_or(0, |state| state.budget_left_ns),
        deadline_ns: state.map_or(0, |state| state.deadline.0),
        server_time_ns: usage.server_time_ns,
        reserved_time_ns: usage.reserved_time_ns,
        requests: usage.requests,
        slices: usage.slices,
        waited_ns: usage.waited_ns,
        longest_wait_ns: usage.longest_wait_ns,
        longest_request_ns: usage.longest_request_ns,
        connected_ns: usage.connected.0,
        grabbed_ns: usage.grabbed_ns
            + scheduler.grab_began().filter(|_| holds_grab).map_or(0, |since| now().since(since)),
        grabs: usage.grabs,
        name: slot.program.to_string(),
    })
}
