// SPDX-License-Identifier: MIT
//! The servers of an experiment and the loads on them, and one trial of a case.

use super::case::{Case, LoadOf};
use super::data::{Trial, named};
use super::format::Definition;
use super::loads::{Calibrated, Running};
use super::measure::Measure;
use super::measuring::measure;
use super::started::Started;
use crate::disturbance::DisturbanceWatch;
use crate::process;
use crate::processor::{Pinned, Reserved, SCENE, boost};
use crate::program::require;
use crate::server::{Module, Server, ServerKind, Setup};
use crate::trace::Traced;
use crate::workbench::Bench;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use xqos_abi::{ClientEntry, ClientList, ServerInfo};
use xqos_client::Control;
use xqos_sys::proc::MemoryUse;

/// A measurement during which the server had no processor time is repeated at most this often.
const MOST_PAUSES: u32 = 50;
/// A small reservation, to test whether this user may make reservations.
const LEAST: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));
/// A case is repeated at most this often while the machine's host takes much processor time.
const MOST_AGAIN: u32 = 3;

#[derive(Debug)]
pub(super) struct Stage<'a> {
    bench: &'a Bench,
    definition: &'a Definition,
    calibrated: Calibrated,
    // Drop order: loads end before their servers.
    kept: Vec<Loads>,
    servers: BTreeMap<String, Started>,
}

/// The loads of a case, which may continue from turn to turn.
#[derive(Debug, Default)]
struct Loads {
    server: String,
    loads: Vec<LoadOf>,
    running: Vec<Running>,
    is_stopped: bool,
    /// True if x11perf was stopped during a run, whose count is then invalid.
    is_resumed: bool,
}

impl<'a> Stage<'a> {
    pub fn new(bench: &'a Bench, definition: &'a Definition) -> Stage<'a> {
        Stage { bench, definition, calibrated: Calibrated::default(), kept: Vec::new(), servers: BTreeMap::new() }
    }

    /// Ends all servers. If `all` is set, also discards the calibration of loads.
    pub fn clear(&mut self, all: bool) {
        self.kept.clear();
        self.servers.clear();
        if all {
            self.calibrated = Calibrated::default();
        }
    }

    pub fn has_server(&self, case: &Case) -> bool {
        self.servers.contains_key(&case.server_key())
    }

    /// Measures a case. `None` if this user or this machine cannot measure it.
    pub fn trial(&mut self, case: &Case, turn: u32) -> Result<Option<Trial>> {
        let is_refused = |(budget, period)| Reserved::this_thread(budget, period).is_err();
        let is_missing = matches!(case.server.1.kind, ServerKind::Xwayland(compositor) if !compositor.is_here())
            || case.measure == Measure::Drag && case.command.first().is_some_and(|program| require(program).is_err());
        // A loan, a boost and nice values need the same privilege as a reservation.
        let least = (case.setting.loan == Some(true) || case.boost.is_some() || case.nice.is_some()).then_some(LEAST);
        if case.processor.or(least).is_some_and(is_refused) || is_missing {
            return Ok(None);
        }
        let most_steal = self.definition.order.most_steal;
        let mut best: Option<Trial> = None;
        for again in 0..=if most_steal.is_some() { MOST_AGAIN } else { 0 } {
            let mut next = self.once(case, turn)?;
            for _ in 0..if self.definition.order.keep_loads { MOST_PAUSES } else { 0 } {
                if next.values.get("cpu").is_none_or(|&cpu| cpu > 0.0) {
                    break;
                }
                next = self.once(case, turn)?;
            }
            next.values.insert("again".to_owned(), f64::from(again));
            let steal = |trial: &Trial| trial.values.get("steal").copied().unwrap_or(0.0);
            let is_quiet = most_steal.is_none_or(|most| steal(&next) <= most);
            if best.as_ref().is_none_or(|best| steal(&next) < steal(best)) {
                best = Some(next);
            }
            if is_quiet {
                break;
            }
        }
        Ok(best)
    }

    fn once(&mut self, case: &Case, turn: u32) -> Result<Trial> {
        let pinned = case.has_one_processor().then(|| Pinned::to(SCENE)).transpose()?;
        if !self.has_server(case) {
            let setup = &case.server.1;
            let module = setup.module.clone().map(|module| Module { path: self.bench.module.clone(), ..module });
            let started = Started::new(&Setup { module, ..setup.clone() }, case.desktop.as_ref())?;
            self.servers.insert(case.server_key(), started);
        }
        let started = &self.servers[&case.server_key()];
        for load in &case.loads {
            self.calibrated.learn(load, &started.server)?;
        }
        started.follow(case)?;
        if case.measure == Measure::Wheel {
            self.calibrated.wheel(&started.server)?;
        }
        let mut loads = if case.setting.before.is_some() { Loads::default() } else { self.loads(case)? };
        let control = self.servers[&case.server_key()].control.as_ref();
        for (load, running) in case.loads.iter().zip(&loads.running) {
            control.map_or(Ok(()), |control| running.set(load, control))?;
        }
        let display = self.servers[&case.server_key()].server.display();
        let _boost = case.boost.map(|limit| boost(display, limit)).transpose()?;
        drop(pinned);
        let _beside = case.has_one_processor().then(Pinned::beside_the_scene).transpose()?;
        let trial = self.measure(case, turn, &mut loads);
        if self.definition.order.keep_loads && case.setting.before.is_none() {
            if let Some(control) = &self.servers[&case.server_key()].control {
                loads.running.iter().try_for_each(|running| running.release(control))?;
            }
            self.kept.push(loads);
        }
        trial
    }

    /// Starts or resumes the loads of the case, and stops all others.
    fn loads(&mut self, case: &Case) -> Result<Loads> {
        let server = &self.servers[&case.server_key()].server;
        let loads: Vec<LoadOf> = case.loads.iter().map(LoadOf::clients_alone).collect();
        let is_it = |kept: &Loads| kept.server == case.server_key() && kept.loads == loads;
        let mut chosen = match self.kept.iter().position(is_it) {
            Some(at) => self.kept.swap_remove(at),
            None => {
                let running =
                    case.loads.iter().map(|load| self.calibrated.start(load, server)).collect::<Result<_>>()?;
                Loads { server: case.server_key(), loads, running, ..Loads::default() }
            }
        };
        let others = self.kept.iter_mut().filter(|other| !other.is_stopped).collect::<Vec<_>>();
        chosen.is_resumed = chosen.is_stopped || !others.is_empty();
        others.into_iter().for_each(|other| other.stop(true));
        if chosen.is_resumed {
            // Let the server process the pending requests of the other loads.
            std::thread::sleep(case.warm_up);
            chosen.stop(false);
        }
        Ok(chosen)
    }

    fn measure(&mut self, case: &Case, turn: u32, loads: &mut Loads) -> Result<Trial> {
        let quick = self.bench.quick;
        let started = self.servers.get_mut(&case.server_key()).context("the server of the case is gone")?;
        let Started { screen, server, control } = started;
        let control = control.as_ref();
        // mpv makes its own reservation.
        let own = case.processor.filter(|_| case.measure != Measure::Film);
        let lends = case.setting.loan == Some(true) || own.is_some();
        let loan = lends.then(|| boost(server.display(), Duration::ZERO)).transpose()?;
        let processor = own.map(|(budget, period)| Reserved::this_thread(budget, period)).transpose()?;
        // These clients read their own traces.
        let level = case.trace.filter(|_| ![Measure::Light, Measure::Wheel].contains(&case.measure));
        let traced = level.zip(control).map(|(level, control)| Traced::begin(control, level)).transpose()?;
        if !case.measure.warms_up() {
            std::thread::sleep(case.warm_up);
        }
        let watch = DisturbanceWatch::begin();
        let control = control.filter(|_| case.setting.unasked != Some(true));
        let before = Count::before(server, control, &loads.running)?;
        let found = measure(case, (server, screen.as_mut()), &mut self.calibrated, quick)?;
        let after = Count::after(server, control, &loads.running)?;
        let steal = watch.and_then(DisturbanceWatch::end).map_or(0.0, |disturbance| disturbance.steal);
        drop((processor, loan));
        let mut trial = Trial { case: case.cell.clone(), turn, values: found.values, samples: found.samples };
        trial.values.insert("steal".to_owned(), steal);
        if let Some(traced) = traced {
            trial.values.extend(named(traced.end()));
        }
        loads.running.iter_mut().try_for_each(Running::see_running)?;
        let cpu_s = (after.cpu - before.cpu).as_secs_f64();
        if !loads.is_resumed {
            let (elapsed_s, cpu_part) = ((found.to - found.from).as_secs_f64(), cpu_s / before.until(&after));
            trial.values.extend(work(&mut loads.running, (found.from, found.to), elapsed_s, cpu_part)?);
        }
        trial.values.extend(named(after.since(&before)));
        trial
            .values
            .insert("memory_module".to_owned(), after.info.map_or(0.0, |info| f64::from(info.memory_bytes) / 1024.0));
        let (served, shares) = served(&loads.running, &before.list, &after.list);
        trial.values.extend(served);
        if !shares.is_empty() {
            trial.samples.insert("share".to_owned(), shares);
        }
        // Drop values that result from a division by zero.
        trial.values.retain(|_, value| value.is_finite());
        Ok(trial)
    }
}

impl Loads {
    fn stop(&mut self, stops: bool) {
        self.running.iter_mut().for_each(|load| load.stop(stops));
        self.is_stopped = stops;
    }
}

/// An idle server that has answered a query sleeps again after this time.
const ASLEEP: Duration = Duration::from_millis(20);
const WATCHER: &str = "xqos-watcher";

struct Count {
    at: Instant,
    cpu: Duration,
    watcher: Duration,
    machine_ns: u64,
    switches: u64,
    delayed_ns: u64,
    written: u64,
    memory: MemoryUse,
    list: Option<ClientList>,
    info: Option<ServerInfo>,
}

impl Count {
    /// Queries are made before and after the counted time, because they wake the server.
    fn before(server: &Server, control: Option<&Control>, loads: &[Running]) -> Result<Count> {
        let (list, info) = asked(control)?;
        std::thread::sleep(ASLEEP);
        Ok(Count { list, info, ..Count::without_asking(server, loads)? })
    }

    fn after(server: &Server, control: Option<&Control>, loads: &[Running]) -> Result<Count> {
        let count = Count::without_asking(server, loads)?;
        let (list, info) = asked(control)?;
        Ok(Count { list, info, ..count })
    }

    fn without_asking(server: &Server, loads: &[Running]) -> Result<Count> {
        let switches = server.switches()?.iter().map(|thread| thread.voluntary + thread.involuntary).sum();
        let delayed_ns = server.schedstat().map_or(0, |times| times.delayed_ns());
        let written = loads.iter().filter_map(Running::written).sum();
        let (at, watcher) = (Instant::now(), process::cpu_time_of_threads(server.pid(), WATCHER)?);
        let (cpu, memory) = (server.cpu_time()?, server.memory()?);
        let machine_ns = xqos_sys::machine::busy_ns();
        Ok(Count { at, cpu, watcher, machine_ns, switches, delayed_ns, written, memory, list: None, info: None })
    }

    fn until(&self, after: &Count) -> f64 {
        (after.at - self.at).as_secs_f64()
    }

    fn since(&self, before: &Count) -> [(&'static str, f64); 12] {
        let seconds = before.until(self);
        let cpu_s = (self.cpu - before.cpu).as_secs_f64();
        let written = self.written.saturating_sub(before.written) as f64;
        // The server's counters cover the time between the two queries.
        let asked_s = match (&before.list, &self.list) {
            (Some(before), Some(after)) => (after.now_ns - before.now_ns) as f64 / 1e9,
            _ => seconds,
        };
        let of_info = |count: fn(&ServerInfo) -> u64| match (&before.info, &self.info) {
            (Some(before), Some(after)) => (count(after) - count(before)) as f64 / asked_s,
            _ => 0.0,
        };
        [
            ("cpu", cpu_s / seconds),
            ("watcher_cpu", (self.watcher - before.watcher).as_secs_f64() / seconds),
            ("machine_cpu", self.machine_ns.saturating_sub(before.machine_ns) as f64 / 1e9 / seconds),
            ("delayed", self.delayed_ns.saturating_sub(before.delayed_ns) as f64 / 1e9 / seconds),
            ("switches", self.switches.saturating_sub(before.switches) as f64),
            ("written", written / seconds),
            ("written_per_cpu", written / cpu_s),
            ("memory_rss", self.memory.rss_kb as f64),
            ("memory_pss", self.memory.pss_kb as f64),
            ("memory_private", self.memory.private_dirty_kb as f64),
            ("decisions", of_info(|info| info.decisions)),
            ("early_ends", of_info(|info| info.early_ends)),
        ]
    }
}

fn asked(control: Option<&Control>) -> Result<(Option<ClientList>, Option<ServerInfo>)> {
    Ok((control.map(Control::clients).transpose()?, control.map(Control::server_info).transpose()?))
}

/// Values of every trial, independent of loads and measuring clients.
pub(super) const ALWAYS: &str = "cpu watcher_cpu machine_cpu delayed switches written written_per_cpu memory_rss memory_pss \
                                 memory_private memory_module decisions early_ends steal again";
/// Values of each load, as `VALUE.LOAD`. `work` and `work_per_cpu` without a load cover all loads together.
pub(super) const OF_A_LOAD: [&str; 8] =
    ["work", "work_per_cpu", "share", "reserved", "requests", "request", "longest", "depletions"];

/// Operations of each load and of all loads, per second of wall-clock time and of the server's processor time.
fn work(loads: &mut [Running], between: (Instant, Instant), seconds: f64, cpu_part: f64) -> Result<Vec<(String, f64)>> {
    let mut values = Vec::new();
    let mut all = 0.0;
    for load in loads {
        if let Some(work) = load.work(between.0, between.1)? {
            values.push((format!("work.{}", load.name), work / seconds));
            values.push((format!("work_per_cpu.{}", load.name), work / seconds / cpu_part));
            all += work / seconds;
        }
    }
    if all > 0.0 {
        values.extend([("work".to_owned(), all), ("work_per_cpu".to_owned(), all / cpu_part)]);
    }
    Ok(values)
}

/// Service of each load by the server's own counters and clock, and each load's share of the server's time.
fn served(
    loads: &[Running],
    before: &Option<ClientList>,
    after: &Option<ClientList>,
) -> (Vec<(String, f64)>, Vec<f64>) {
    let (Some(before), Some(after)) = (before, after) else { return Default::default() };
    let elapsed_ns = (after.now_ns - before.now_ns) as f64;
    let (mut values, mut shares) = (Vec::new(), Vec::new());
    for load in loads {
        let clients = load.of(&after.clients);
        if clients.is_empty() {
            continue;
        }
        let earlier = load.of(&before.clients);
        let grown = |figure: fn(&ClientEntry) -> u64| {
            let sum = |clients: &[&ClientEntry]| clients.iter().map(|one| figure(one)).sum::<u64>();
            sum(&clients).saturating_sub(sum(&earlier)) as f64
        };
        let (time_ns, requests) = (grown(|one| one.server_time_ns), grown(|one| one.requests));
        let longest_ns = clients.iter().map(|one| one.longest_request_ns).max().unwrap_or(0);
        let depletions = grown(|one| u64::from(one.depletions));
        let of = |name: &str| format!("{name}.{}", load.name);
        values.extend([
            (of("share"), time_ns / elapsed_ns),
            (of("reserved"), grown(|one| one.reserved_time_ns) / elapsed_ns),
            (of("requests"), requests / elapsed_ns * 1e9),
            (of("request"), time_ns / requests.max(1.0) / 1e6),
            (of("longest"), longest_ns as f64 / 1e6),
            (of("depletions"), depletions / elapsed_ns * 1e9),
        ]);
        shares.push(time_ns / elapsed_ns);
    }
    (values, shares)
}
