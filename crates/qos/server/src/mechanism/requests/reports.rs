// SPDX-License-Identifier: MIT
//! Builds the replies.

use crate::mechanism::engine::Engine;
use crate::mechanism::host::{CutTotals, Host};
use xqos_abi::{
    AdmissionReport, CutReport, DesktopReport, GroupsReport, PacingReport, ProcessorReport, ReservationReport,
    ServerInfo, VERSION, Version, flag_of, reservation_flag, us,
};
use xqos_core::setting::{BUDGET, PERIOD};
use xqos_core::{Admission, ClientId, Term};

pub fn version() -> Version {
    Version { major: VERSION.0, minor: VERSION.1 }
}

pub fn server_info<H: Host>(engine: &Engine<H>) -> ServerInfo {
    let (scheduler, at) = (&engine.scheduler, engine.now);
    let parameters = scheduler.parameters();
    ServerInfo {
        armed: true,
        server_pid: std::process::id(),
        policy: scheduler.policy(),
        clients: scheduler.client_count() as u32,
        max_utilization_ppm: parameters.max_utilization_ppm,
        admitted_utilization_ppm: scheduler.admitted_utilization_ppm(),
        blocking_observed_us: us(scheduler.blocking_observed_ns(at)),
        blocking_configured_us: us(parameters.blocking_ns),
        min_budget_us: BUDGET.least,
        min_period_us: PERIOD.least,
        max_period_us: PERIOD.most,
        slice_us: us(parameters.slice_ns),
        timer_interval_us: us(parameters.timer_interval_ns),
        maximum_slice_us: us(parameters.maximum_slice_ns),
        uptime_ns: at.since(engine.totals.started),
        busy_ns: engine.totals.busy_ns,
        decisions: engine.totals.decisions,
        early_ends: engine.totals.early_ends,
        memory_bytes: engine.memory_bytes() as u32,
        reservations: scheduler.reservation_count() as u32,
        clients_limit: engine.clients_limit(),
        grab_holder: scheduler.grab().map_or(0, |id| super::base_of(engine, id)),
        reason: String::new(),
    }
}

pub fn server_info_aside(reason: &str) -> ServerInfo {
    ServerInfo {
        server_pid: std::process::id(),
        min_budget_us: BUDGET.least,
        min_period_us: PERIOD.least,
        max_period_us: PERIOD.most,
        reason: reason.to_owned(),
        ..ServerInfo::default()
    }
}

pub fn pacing_report<H: Host>(engine: &Engine<H>) -> PacingReport {
    let (scheduler, at) = (&engine.scheduler, engine.now);
    let count = |is: &dyn Fn(ClientId) -> bool| engine.ids().filter(|&id| is(id)).count() as u32;
    PacingReport {
        limit_us: us(engine.pacing.limit_ns),
        floor_us: us(engine.pacing.floor_ns),
        exposing: count(&|id| scheduler.is_exposing(id, at)),
        paced: count(&|id| scheduler.paced_until(id).is_some()),
        holds: engine.holds,
    }
}

pub fn groups_report<H: Host>(engine: &Engine<H>) -> GroupsReport {
    let groups = &engine.groups;
    GroupsReport { grouping: groups.grouping, user_limit_ppm: groups.user_limit_ppm, groups: groups.len() as u32 }
}

pub fn cut_report<H: Host>(engine: &Engine<H>) -> CutReport {
    let totals = engine.host.cut_totals();
    let CutTotals { requests, parts, cuts, finished } = totals.unwrap_or_default();
    let [requests, parts, cuts, finished] =
        [requests, parts, cuts, finished].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    CutReport { is_possible: totals.is_some(), part_us: us(engine.part_ns), requests, parts, cuts, finished }
}

pub fn desktop_report<H: Host>(engine: &Engine<H>) -> DesktopReport {
    let scheduler = &engine.scheduler;
    let clients = engine.ids().filter(|&id| scheduler.role(id).is_any()).count() as u32;
    DesktopReport { share_ppm: scheduler.desktop_share_ppm(), clients }
}

pub fn processor_report<H: Host>(engine: &Engine<H>) -> ProcessorReport {
    let (supply, (is_lent, raises)) = (engine.scheduler.supply(), engine.loan());
    let limit_ppm = engine.scheduler.limit_ppm();
    ProcessorReport { is_lent, budget_us: us(supply.budget_ns), period_us: us(supply.period_ns), limit_ppm, raises }
}

pub fn reservation_report<H: Host>(engine: &Engine<H>, id: ClientId) -> ReservationReport {
    let usage = engine.scheduler.usage(id).unwrap_or_default();
    let Some(state) = engine.scheduler.reservation(id) else {
        return ReservationReport { depletions: usage.depletions, misses: usage.misses, ..Default::default() };
    };
    ReservationReport {
        active: true,
        budget_us: us(state.reservation.budget_ns),
        period_us: us(state.reservation.period_ns),
        flags: flag_of(state.reservation.kind)
            | if engine.scheduler.is_held_back(id) { reservation_flag::HELD_BACK } else { 0 },
        depletions: usage.depletions,
        budget_left_ns: state.budget_left_ns,
        deadline_ns: state.deadline.0,
        misses: usage.misses,
    }
}

pub fn admission_report<H: Host>(engine: &Engine<H>, admission: Admission) -> AdmissionReport {
    let (admitted, term) = match admission {
        Admission::Admitted(term) => (true, term),
        Admission::Refused(term) => (false, term),
    };
    let Term { holder, period_ns, sum_ppm, blocking_ppm } = term;
    AdmissionReport {
        admitted,
        failing_client: super::base_of_holder(engine, holder),
        failing_period_us: us(period_ns),
        sum_ppm,
        blocking_ppm,
        limit_ppm: engine.scheduler.limit_ppm(),
        blocking_us: us(engine.scheduler.blocking_ns(engine.now)),
    }
}
