// SPDX-License-Identifier: MIT
//! A trial: the light client beside a load on one server, once. Several experiments are made of these.

use crate::bench::Bench;
use crate::boost::Boost;
use crate::light::{Light, Reservation, Series};
use crate::load::{Load, Perf, Placement};
use crate::order::in_turn;
use crate::processor::Reserved;
use crate::server::Server;
use crate::statistics::{self, Spread};
use crate::study::Range;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_abi::PolicyChange;
use xqos_client::Control;

/// The four circumstances that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// A stock server without any load.
    Idle,
    /// A stock server.
    Stock,
    /// xqos as it comes: policy fair, nothing set up.
    Fair,
    /// The same, with a reservation for the light client.
    Reserved,
    /// And with processor time: a reservation of the kernel for the light client, and a loan for the server. Needs the
    /// right, so it is not among [`Case::ALL`].
    Both,
}

impl Case {
    pub const ALL: [Case; 4] = [Case::Idle, Case::Stock, Case::Fair, Case::Reserved];

    pub fn name(self) -> &'static str {
        match self {
            Case::Idle => "idle",
            Case::Stock => "stock",
            Case::Fair => "fair",
            Case::Reserved => "reserved",
            Case::Both => "both",
        }
    }
}

/// What the light client reserves: 3 ms in 10 ms, soft.
pub(crate) const RESERVATION: Reservation = Reservation { budget_us: 3000, period_us: 10_000, hard: false };

/// What it reserves of a processor besides.
const PROCESSOR: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(10));

/// Processor time for the calling thread, and a loan for the server, until it is dropped.
#[derive(Debug)]
pub(crate) struct ProcessorTime {
    _reserved: Reserved,
    _boost: Boost,
}

impl ProcessorTime {
    pub fn begin(display: &str) -> Result<ProcessorTime> {
        let boost = Boost::start(display, Duration::ZERO)?;
        Ok(ProcessorTime { _reserved: Reserved::this_thread(PROCESSOR.0, PROCESSOR.1)?, _boost: boost })
    }
}

/// Whether this user may have [`Case::Both`] measured.
pub(crate) fn may_reserve_processors() -> bool {
    Reserved::this_thread(PROCESSOR.0, PROCESSOR.1).is_ok()
}

/// Blocking time that admission is told to reckon with where the observed one would refuse [`RESERVATION`].
pub(crate) const BLOCKING_US: u32 = 1000;

/// A stock server and one with xqos, both up all the time: an idle server costs nothing.
#[derive(Debug)]
pub(crate) struct Servers {
    pub stock: Server,
    pub xqos: Server,
}

impl Servers {
    pub fn start(bench: &Bench, max_clients: u32) -> Result<Servers> {
        Ok(Servers { stock: bench.stock(max_clients)?, xqos: bench.xqos(bench.module(), max_clients)? })
    }

    pub fn of(&self, case: Case) -> &Server {
        match case {
            Case::Idle | Case::Stock => &self.stock,
            Case::Fair | Case::Reserved | Case::Both => &self.xqos,
        }
    }
}

/// Raw data of one trial.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub case: Case,
    pub pair: u32,
    pub elapsed_s: f64,
    pub series: Series,
    /// Operations of each client of the load, by its own count.
    pub operations: Vec<f64>,
    /// Processor time of the server.
    pub server_cpu_s: f64,
    /// As xqos counts it; only where there is xqos.
    pub served: Option<Served>,
    /// Admission refused the reservation with this blocking time observed, so [`BLOCKING_US`] was set.
    pub refused_at_blocking_us: Option<u32>,
}

/// The load's clients in a ListClients reply, taken together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Served {
    pub requests: u64,
    pub server_time_ns: u64,
    pub longest_request_ns: u64,
    /// Opcode of a core request, as the protocol numbers them.
    pub longest_request: u32,
}

impl Trial {
    pub fn run(
        servers: &Servers,
        case: Case,
        pair: u32,
        load: Option<(&Perf, usize, Placement)>,
        time: Duration,
    ) -> Result<Trial> {
        Trial::on(servers.of(case), case, pair, load, time)
    }

    /// The same, on this server.
    pub fn on(
        server: &Server,
        case: Case,
        pair: u32,
        load: Option<(&Perf, usize, Placement)>,
        time: Duration,
    ) -> Result<Trial> {
        let control =
            if matches!(case, Case::Fair | Case::Reserved | Case::Both) { Some(server.control()?) } else { None };
        let start = |(perf, count, placement)| Load::start(server.display(), perf, count, placement);
        let mut load = load.map(start).transpose()?;
        let mut light = Light::default();
        let mut refused_at_blocking_us = None;
        if let (Case::Reserved | Case::Both, Some(control)) = (case, &control) {
            refused_at_blocking_us = make_room(control)?;
            light.reservation = Some(RESERVATION);
        }
        let pids = load.as_ref().map(Load::pids).unwrap_or_default();
        let before = control.as_ref().map(|control| Served::read(control, &pids)).transpose()?;
        let cpu_before = server.cpu_time()?;
        let processor = (case == Case::Both).then(|| ProcessorTime::begin(server.display())).transpose()?;
        let measured = light.measure(server, time)?;
        drop(processor);
        let server_cpu_s = (server.cpu_time()? - cpu_before).as_secs_f64();
        let after = control.as_ref().map(|control| Served::read(control, &pids)).transpose()?;
        let operations = match &mut load {
            Some(load) => load.work(measured.from, measured.to)?,
            None => Vec::new(),
        };
        Ok(Trial {
            case,
            pair,
            elapsed_s: time.as_secs_f64(),
            series: measured.series,
            operations,
            server_cpu_s,
            served: before.zip(after).map(|(before, after)| after.since(&before)),
            refused_at_blocking_us,
        })
    }

    /// As if the next had been measured right after this one.
    pub fn followed_by(mut self, next: Trial) -> Trial {
        let offset_us = (self.elapsed_s * 1e6) as u64;
        self.series.at_us.extend(next.series.at_us.iter().map(|at_us| at_us + offset_us));
        self.series.response_ns.extend(next.series.response_ns);
        self.series.server_delay_ns.extend(next.series.server_delay_ns);
        self.series.own_delay_ns.extend(next.series.own_delay_ns);
        self.series.missed_turns += next.series.missed_turns;
        self.operations.iter_mut().zip(next.operations).for_each(|(all, more)| *all += more);
        self.elapsed_s += next.elapsed_s;
        self.server_cpu_s += next.server_cpu_s;
        self.served = self.served.zip(next.served).map(|(served, next)| served.and(next));
        self.refused_at_blocking_us = self.refused_at_blocking_us.or(next.refused_at_blocking_us);
        self
    }

    pub fn operations_per_second(&self) -> f64 {
        self.operations.iter().sum::<f64>() / self.elapsed_s
    }
}

impl Served {
    pub fn read(control: &Control, pids: &[u32]) -> Result<Served> {
        let clients = control.clients()?.clients;
        let of_load = clients.iter().filter(|client| pids.contains(&(client.pid as u32)));
        let served = of_load.map(|client| Served {
            requests: client.requests,
            server_time_ns: client.server_time_ns,
            longest_request_ns: client.longest_request_ns,
            longest_request: client.longest_request & 0xffff,
        });
        Ok(served.fold(Served::default(), Served::and))
    }

    pub fn mean_request_ms(&self) -> f64 {
        self.server_time_ns as f64 / self.requests.max(1) as f64 / 1e6
    }

    fn and(self, other: Served) -> Served {
        let longer = if other.longest_request_ns > self.longest_request_ns { other } else { self };
        Served {
            requests: self.requests + other.requests,
            server_time_ns: self.server_time_ns + other.server_time_ns,
            ..longer
        }
    }

    fn since(self, before: &Served) -> Served {
        Served {
            requests: self.requests - before.requests,
            server_time_ns: self.server_time_ns - before.server_time_ns,
            ..self
        }
    }
}

/// Lets admission reckon with a set blocking time if it would refuse by the observed one; the latter is the answer.
fn make_room(control: &Control) -> Result<Option<u32>> {
    let Reservation { budget_us, period_us, .. } = RESERVATION;
    if control.check_admission(0, budget_us, period_us)?.admitted {
        return Ok(None);
    }
    let observed = control.server_info()?.blocking_observed_us;
    control.set_policy(PolicyChange { blocking_us: Some(BLOCKING_US), ..PolicyChange::default() })?;
    Ok(Some(observed))
}

/// Medians over the pairs of one case.
pub(crate) fn range(trials: &[&Trial]) -> Range {
    let over = |figure: fn(&crate::statistics::Summary) -> f64| {
        Spread::of(trials.iter().map(|trial| figure(&trial.series.response_ms()))).median
    };
    Range {
        case: trials.first().map_or("", |trial| trial.case.name()).to_owned(),
        p50: over(|response| response.p50),
        mean: over(|response| response.mean),
        p99: over(|response| response.p99),
        worst: over(|response| response.worst),
    }
}

pub(crate) fn of_case(trials: &[Trial], case: Case) -> Vec<&Trial> {
    trials.iter().filter(|trial| trial.case == case).collect()
}

/// One ratio for each pair: both sides were measured in turn, so what drifts cancels out.
pub(crate) fn ratios(trials: &[Trial], above: Case, below: Case, figure: impl Fn(&Trial) -> f64) -> Spread {
    let (above, below) = (of_case(trials, above), of_case(trials, below));
    statistics::ratios(above, below, |trial| trial.pair, |trial| Some(figure(trial)))
}

/// Responses in each of these.
pub(crate) fn responses(trials: &[&Trial]) -> Vec<usize> {
    trials.iter().map(|trial| trial.series.response_ns.len()).collect()
}

/// In turn forwards and backwards, so that no case is always the first.
pub(crate) fn order(pair: u32) -> Vec<Case> {
    in_turn(Case::ALL, pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(case: Case, pair: u32, response_ns: u64) -> Trial {
        let series = Series { response_ns: vec![response_ns; 3], ..Series::default() };
        let operations = vec![100.0; 12];
        Trial {
            case,
            pair,
            elapsed_s: 1.0,
            series,
            operations,
            server_cpu_s: 1.0,
            served: None,
            refused_at_blocking_us: None,
        }
    }

    #[test]
    fn ratios_are_taken_within_a_pair_whatever_the_order() {
        let trials = [
            trial(Case::Idle, 0, 100),
            trial(Case::Fair, 0, 150),
            trial(Case::Fair, 1, 600),
            trial(Case::Idle, 1, 200),
            trial(Case::Fair, 2, 1),
        ];
        let spread = ratios(&trials, Case::Fair, Case::Idle, |trial| trial.series.response_ms().mean);
        assert_eq!(spread.count, 2);
        assert!((spread.least - 1.5).abs() < 1e-9 && (spread.greatest - 3.0).abs() < 1e-9, "{spread:?}");
        let served = |requests, longest_request_ns| Served {
            requests,
            server_time_ns: 300,
            longest_request_ns,
            ..Served::default()
        };
        let [mut first, mut next] = [trial(Case::Fair, 0, 5), trial(Case::Fair, 1, 7)];
        (first.served, next.served) = (Some(served(1, 9)), Some(served(2, 250)));
        let joined = first.followed_by(next);
        assert_eq!((joined.elapsed_s, joined.operations_per_second()), (2.0, 1200.0));
        let served = joined.served.unwrap();
        assert_eq!((served.mean_request_ms(), served.longest_request_ns), (0.0002, 250));
        assert_eq!(joined.series.response_ns, [5, 5, 5, 7, 7, 7]);
        assert_eq!(order(0).iter().rev().copied().collect::<Vec<_>>(), order(1));
    }
}
