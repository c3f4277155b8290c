// SPDX-License-Identifier: MIT
//! The cases of an experiment: the product of its axes, with the setting of each case.

use super::Mistake;
use super::data::{AxisValues, Cell, filled};
use super::format::{Definition, LoadText, ServerText, Setting};
use super::measure::Measure;
use super::texts::{groups, level, managers, nice, one_of, policy, processor, reservation, time, whole};
use crate::actor::Long;
use crate::desk::{DeskProgram, Managers};
use crate::flood::Drawing;
use crate::load::{Placement, RUN};
use crate::server::{self, Compositor, Module, Setup};
use crate::tiles::SCREEN;
use std::collections::BTreeMap;
use std::time::Duration;
use xqos_abi::Grouping;
use xqos_abi::trace::Level;
use xqos_core::setting::{CUT, POLICY_SLICE};
use xqos_core::{PolicyKind, Reservation};
use xqos_rules::values::reader;

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub cell: Cell,
    pub server: (String, Setup),
    /// `None` if there is no desktop and the screen is not observed.
    pub desktop: Option<Desktop>,
    pub policy: Option<PolicyKind>,
    /// In microseconds: the maximum slice, and the limit to which `smart` lets slices grow if a client runs alone.
    pub slices_us: [Option<u32>; 2],
    /// In microseconds; 0 if requests are not cut.
    pub cut_us: u32,
    pub groups: Option<Grouping>,
    pub measure: Measure,
    pub loads: Vec<LoadOf>,
    pub period: Option<Duration>,
    pub nice: Option<[i32; 2]>,
    pub reserve: Option<Reservation>,
    pub finds_reservation: bool,
    pub processor: Option<(Duration, Duration)>,
    pub trace: Option<Level>,
    pub warm_up: Duration,
    pub command: Vec<String>,
    time: [Option<Duration>; 2],
    pub pacing: Option<Duration>,
    pub boost: Option<Duration>,
    pub together: usize,
    /// The texts of the file, for settings that need no parsing.
    pub setting: Setting,
}

/// Managers and programs that run as long as the server.
#[derive(Clone, Debug)]
pub(super) struct Desktop {
    pub managers: Option<Managers>,
    pub programs: Vec<DeskProgram>,
}

/// Clients of one kind, with their reservations and weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadOf {
    pub name: String,
    pub kind: LoadKind,
    pub clients: usize,
    pub placement: Placement,
    pub run: Duration,
    pub reserve: Option<Reservation>,
    pub weight: Option<u32>,
    pub priority: Option<i32>,
    pub group: Option<LoadGroup>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LoadKind {
    Perf(String),
    Flood(Drawing),
    /// A flood with requests of this length; `true` for a plaid's requests.
    Long(Duration, bool),
    Requests(Long),
    Silent,
    Fill(u32),
    Program(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadGroup {
    pub name: String,
    pub cap_ppm: Option<u32>,
    pub reserve: Option<Reservation>,
}

impl Case {
    pub fn time(&self, quick: bool) -> Duration {
        let full = self.time[0].unwrap_or(Duration::from_secs(4));
        if quick { self.time[1].unwrap_or(full / 4) } else { full }
    }

    /// The time of the case, rounded up to whole periods of the longest reservation, so the phase does not matter.
    pub fn whole_periods(&self, quick: bool) -> Duration {
        let time = self.time(quick);
        let reserved = self.loads.iter().filter_map(|load| load.reserve);
        let longest = reserved.map(|reserve| Duration::from_nanos(reserve.period_ns)).max();
        longest.map_or(time, |period| period * time.as_micros().div_ceil(period.as_micros()) as u32)
    }

    /// The count from the file, or `usual` if it has none.
    pub fn count(&self, quick: bool, usual: usize) -> usize {
        let full = self.setting.count.unwrap_or(usual);
        if quick { self.setting.count_quick.unwrap_or(full.div_ceil(4)) } else { full }
    }

    /// Frames or activations before the load. `None` if it runs from the beginning.
    pub fn before(&self, quick: bool) -> Option<usize> {
        self.setting.before.map(|full| if quick { full.div_ceil(4) } else { full })
    }

    pub fn after(&self, quick: bool) -> usize {
        let full = self.setting.after.unwrap_or(0);
        if quick { full.div_ceil(4) } else { full }
    }

    /// True if the server and all programs run on the first processor, and the measuring thread on the last one.
    pub fn has_one_processor(&self) -> bool {
        self.setting.one_processor == Some(true)
    }

    /// Cases with the same key can share a server.
    pub fn server_key(&self) -> String {
        format!("{} {:?} {}", self.server.0, self.desktop, self.has_one_processor())
    }

    /// The name for progress lines: `ellipse100, fair`.
    pub fn name(&self, axes: &[AxisValues]) -> String {
        let values = axes.iter().filter_map(|axis| self.cell.get(&axis.name).map(|value| axis.title(value)));
        values.filter(|title| !title.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn setting(definition: &Definition, axes: &[AxisValues], cell: &Cell) -> Setting {
    let of_axis = |axis: &AxisValues| axis.setting(cell.get(&axis.name)?).cloned();
    axes.iter().filter_map(of_axis).fold(definition.setting.clone(), |all, more| all.with(&more))
}

pub(super) fn case(definition: &Definition, axes: &[AxisValues], cell: &Cell) -> Result<Case, Mistake> {
    let setting = setting(definition, axes, cell);
    let fill = |text: &str| filled(text, cell);
    let server = setting.server.clone().unwrap_or_else(|| "xqos".to_owned());
    let loads = setting.load.iter().flat_map(|loads| &loads.0);
    let given = setting.reserve.clone().filter(|reserve| reserve != "auto");
    // A client that starts before the load needs no warm-up: it has settled when the load starts.
    let usual_warm_up = Duration::from_millis(if setting.before.is_some() { 0 } else { 500 });
    let measure = read(&setting.measure, fill, Measure::named)?.unwrap_or(Measure::Light);
    let slice = reader(&POLICY_SLICE);
    let slice_us = read(&setting.slice, fill, &slice)?;
    let managers = read(&setting.managers, fill, managers)?.flatten();
    let programs = setting.desk.iter().flatten();
    let programs = programs.map(|name| one_of(DeskProgram::ALL, &fill(name)).map_err(|what| Mistake::at(name, what)));
    let desktop = Desktop { managers, programs: programs.collect::<Result<_, _>>()? };
    let has_desktop = managers.is_some() || !desktop.programs.is_empty() || measure == Measure::OnScreen;
    let case = Case {
        cell: cell.clone(),
        server: server_of(definition, &server, &fill)?,
        policy: read(&setting.policy, fill, policy)?,
        slices_us: [slice_us, read(&setting.maximum_slice, fill, &slice)?.or(slice_us)],
        cut_us: read(&setting.cut, fill, reader(&CUT))?.unwrap_or(CUT.initial),
        groups: read(&setting.groups, fill, groups)?,
        desktop: has_desktop.then_some(desktop),
        measure,
        loads: loads.map(|load| load_of(load, setting.clients, &fill)).collect::<Result<_, _>>()?,
        period: read(&setting.period, fill, time)?,
        nice: read(&setting.nice, fill, nice)?,
        reserve: read(&given, fill, reservation)?,
        finds_reservation: given != setting.reserve,
        processor: read(&setting.processor, fill, processor)?,
        trace: read(&setting.trace, fill, level)?,
        warm_up: read(&setting.warm_up, fill, time)?.unwrap_or(usual_warm_up),
        command: setting.command.iter().flatten().map(|word| fill(word)).collect(),
        time: [read(&setting.time, fill, time)?, read(&setting.time_quick, fill, time)?],
        pacing: read(&setting.pacing, fill, time)?,
        boost: read(&setting.boost, fill, time)?,
        together: setting.together.unwrap_or(1).max(1),
        setting,
    };
    let mut names: Vec<&str> = case.loads.iter().map(|load| load.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Mistake::at(twice[0], format!("two loads are called '{}': give one a name = \"...\"", twice[0])));
    }
    match fault(&case, &server, definition.order.new_servers.as_deref() == Some("case")) {
        Some((at, what)) => Err(Mistake::at(at, what)),
        None => Ok(case),
    }
}

/// A setting that the case's measuring client does not support: the text to correct, and the correction.
fn fault<'a>(case: &Case, server: &'a str, has_new_servers: bool) -> Option<(&'a str, &'static str)> {
    let is = |measures: &[Measure]| measures.contains(&case.measure);
    let comes_and_goes = is(&[Measure::Film, Measure::Wheel, Measure::Stream]);
    let needs_xqos = comes_and_goes || is(&[Measure::Drag, Measure::Simulation]);
    let needs_command = is(&[Measure::Command, Measure::Call, Measure::Simulation]);
    let is_early = case.setting.before.is_some() || case.finds_reservation;
    let faults = [
        (
            needs_command && case.command.is_empty(),
            "command",
            "measure = \"command\" needs command = [\"PROGRAM\", \"ARGUMENT\", ...], \"call\" command = [\"CALL\"], \
             and \"simulation\" command = [\"SCENARIO\"]",
        ),
        (
            needs_xqos && case.server.1.module.is_none(),
            server,
            "film, wheel, stream, drag and simulation need xqos in the server: write server = \"xqos\"",
        ),
        (
            is_early && !comes_and_goes,
            if case.finds_reservation { "reserve = \"auto\"" } else { "before" },
            "before and reserve = \"auto\" are for measure = \"film\" and \"wheel\"",
        ),
        (
            case.nice.is_some() && !(is(&[Measure::Drag]) && has_new_servers),
            "nice",
            "nice is for measure = \"drag\" with new_servers = \"case\"",
        ),
        (case.setting.priority.is_some() && !is(&[Measure::Light]), "priority", "priority is for measure = \"light\""),
    ];
    faults.into_iter().find(|(is_wrong, ..)| *is_wrong).map(|(_, at, what)| (at, what))
}

/// True if the file excludes the cell.
pub(super) fn is_left_out(definition: &Definition, cell: &Cell) -> bool {
    let is_of = |values: &BTreeMap<String, Vec<String>>| {
        values.iter().all(|(axis, values)| cell.get(axis).is_some_and(|value| values.contains(value)))
    };
    definition.order.without.iter().any(is_of)
}

fn server_of(definition: &Definition, text: &str, fill: &impl Fn(&str) -> String) -> Result<(String, Setup), Mistake> {
    let name = fill(text);
    let usual = ServerText { xqos: name == "xqos", ..ServerText::default() };
    let known = || definition.server.keys().map(String::as_str).chain(["stock", "xqos"]).collect::<Vec<_>>().join(", ");
    let server = match definition.server.get(&name) {
        Some(server) => server,
        None if ["stock", "xqos"].contains(&name.as_str()) => &usual,
        None => return Err(Mistake::at(text, format!("there is no server '{name}': write {}", known()))),
    };
    let kind_text = server.kind.as_deref().unwrap_or("xvfb");
    let kind = kind(&fill(kind_text)).map_err(|what| Mistake::at(kind_text, what))?;
    if server.host.is_some() && !server.xqos {
        return Err(Mistake::at(&name, format!("server '{name}' has a host but no xqos: write xqos = true")));
    }
    let host = server.host.iter().map(|host| ("XQOS_HOST".into(), fill(host).into()));
    let own = server.environment.iter().map(|(name, value)| (name.into(), fill(value).into()));
    let module = Module { max_utilization_ppm: server.reservable.map(|part| (part * 1e6) as u32), ..Module::default() };
    let setup = Setup {
        module: server.xqos.then_some(module),
        max_clients: server.clients.unwrap_or(256),
        screen: server.screen.unwrap_or(SCREEN),
        has_pointer: kind == server::ServerKind::Xorg,
        arguments: server.options.iter().map(|option| fill(option).into()).collect(),
        environment: host.chain(own).collect(),
        ..Setup::stock(kind)
    };
    Ok((name, setup))
}

fn kind(text: &str) -> Result<server::ServerKind, String> {
    let compositor = Compositor::ALL.into_iter().find(|one| one.program() == text).map(server::ServerKind::Xwayland);
    let known = server::ServerKind::ALL.map(|kind| format!("{kind:?}").to_lowercase());
    let compositors = Compositor::ALL.map(Compositor::program).join(", ");
    let found = server::ServerKind::ALL.into_iter().zip(&known).find(|(_, name)| *name == text).map(|(kind, _)| kind);
    found.or(compositor).ok_or_else(|| {
        format!("there is no kind of server '{text}': write {}, or for an Xwayland {compositors}", known.join(", "))
    })
}

/// Parses a text. An error quotes the text as written in the file, so that its line can be found.
fn read<T>(
    text: &Option<String>,
    fill: impl Fn(&str) -> String,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Mistake> {
    text.as_ref().map(|text| read(&fill(text)).map_err(|what| Mistake::at(text, what))).transpose()
}

fn load_of(text: &LoadText, clients: Option<usize>, fill: &impl Fn(&str) -> String) -> Result<LoadOf, Mistake> {
    let program: Vec<String> = text.command.iter().map(|word| fill(word)).collect();
    let kinds = [
        text.x11perf.as_ref().map(|test| LoadKind::Perf(fill(test))),
        read(&text.flood, fill, flood)?,
        read(&text.long, fill, |what| one_of(Long::ALL, what).map(LoadKind::Requests))?,
        text.silent.then_some(LoadKind::Silent),
        read(&text.fill, fill, |percent| whole(percent).map(LoadKind::Fill))?,
        (!program.is_empty()).then_some(LoadKind::Program(program)),
    ];
    let [kind] = <[LoadKind; 1]>::try_from(kinds.into_iter().flatten().collect::<Vec<_>>()).map_err(|_| {
        Mistake::at("load =", "a load is one of x11perf, flood, long, silent, fill, command: write exactly one")
    })?;
    let group = |name: &String| {
        let cap_ppm = text.cap.map(|cap| (cap * 1e6) as u32);
        Ok(LoadGroup { name: fill(name), cap_ppm, reserve: read(&text.group_reserve, fill, reservation)? })
    };
    Ok(LoadOf {
        name: text.name.as_ref().map_or_else(|| kind.name(), |name| fill(name)),
        clients: match clients {
            Some(clients) => clients,
            None => read(&text.clients, fill, whole)?.unwrap_or(1) as usize,
        },
        placement: if text.side_by_side { Placement::SideBySide } else { Placement::Stacked },
        run: read(&text.run, fill, time)?.unwrap_or(RUN),
        reserve: read(&text.reserve, fill, reservation)?,
        weight: text.weight.map(|weight| (weight * 100.0).round() as u32),
        priority: text.priority,
        group: text.group.as_ref().map(group).transpose()?,
        kind,
    })
}

fn flood(text: &str) -> Result<LoadKind, String> {
    let (length, is_plaid) = text.strip_prefix("plaid ").map_or((text, false), |length| (length, true));
    let long = |known| time(length).map(|length| LoadKind::Long(length, is_plaid)).map_err(|what| (known, what));
    let known = one_of(&Drawing::ALL, text).map(LoadKind::Flood);
    known.or_else(long).map_err(|(known, what)| format!("{known}, a length, or 'plaid' and a length: {what}"))
}

impl LoadOf {
    /// The same clients without reservations, weights, priorities and groups.
    pub fn clients_alone(&self) -> LoadOf {
        LoadOf { reserve: None, weight: None, priority: None, group: None, ..self.clone() }
    }
}

impl LoadKind {
    fn name(&self) -> String {
        match self {
            LoadKind::Perf(test) => test.clone(),
            LoadKind::Flood(_) | LoadKind::Long(..) => "flood".to_owned(),
            LoadKind::Requests(_) => "long".to_owned(),
            LoadKind::Silent => "silent".to_owned(),
            LoadKind::Fill(_) => "fill".to_owned(),
            LoadKind::Program(words) => words.first().cloned().unwrap_or_default(),
        }
    }
}
