// SPDX-License-Identifier: MIT
//! The clients that keep a server busy, started with the settings of a case.

use super::case::{LoadKind, LoadOf};
use crate::actor::{self, Role};
use crate::flood::{Drawing, Flood};
use crate::load::{Load, Perf, RUN};
use crate::periodic::{Habit, Periodic};
use crate::poll::poll;
use crate::process::Owned;
use crate::server::Server;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::sync::ConnectionExt as _;
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;
use xqos_abi::{ClientEntry, Label, Setting, Subject};
use xqos_client::Control;

const PATIENCE: Duration = Duration::from_secs(20);
/// Number of areas that each silent client clears before it becomes silent.
const DRAWN: i16 = 100;

/// Results of calibration on an idle server: the amount of work in each load.
#[derive(Debug, Default)]
pub(super) struct Calibrated {
    perfs: BTreeMap<String, Perf>,
    lengths: BTreeMap<(Duration, bool), Drawing>,
    parts: BTreeMap<u32, Drawing>,
    wheel: Option<Habit>,
}

/// A load that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub name: String,
    clients: Clients,
}

#[derive(Debug)]
enum Clients {
    Perf(Load),
    Flood(Box<Flood>),
    Silent { _open: Vec<RustConnection> },
    Programs(Vec<Owned>),
}

impl Calibrated {
    /// Calibrates the load. The server must be idle.
    pub fn learn(&mut self, load: &LoadOf, server: &Server) -> Result<()> {
        match &load.kind {
            LoadKind::Perf(test) if !self.perfs.contains_key(test) => {
                self.perfs.insert(test.clone(), Perf::calibrate(server.display(), test)?);
            }
            &LoadKind::Long(length, is_plaid) if !self.lengths.contains_key(&(length, is_plaid)) => {
                self.lengths.insert((length, is_plaid), Drawing::of_length(server, length, is_plaid)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Calibration of ocbench. The server must be idle at the first call.
    pub fn wheel(&mut self, server: &Server) -> Result<Habit> {
        let found = self.wheel.map_or_else(|| Periodic::calibrate(server), Ok)?;
        Ok(*self.wheel.insert(found))
    }

    pub fn start(&mut self, load: &LoadOf, server: &Server) -> Result<Running> {
        let display = server.display();
        let flood =
            |drawing| -> Result<Clients> { Ok(Clients::Flood(Box::new(Flood::start(server, drawing, load.clients)?))) };
        let programs = |start: &dyn Fn() -> Result<Owned>| -> Result<Clients> {
            Ok(Clients::Programs((0..load.clients).map(|_| start()).collect::<Result<_>>()?))
        };
        let clients = match &load.kind {
            LoadKind::Perf(test) => {
                let perf = &self.perfs[test];
                let shorter = RUN.as_secs_f64() / load.run.as_secs_f64();
                let perf = Perf { reps: ((perf.reps as f64 / shorter).ceil() as u64).max(1), ..perf.clone() };
                Clients::Perf(Load::start(display, &perf, load.clients, load.placement)?)
            }
            LoadKind::Flood(drawing) => flood(*drawing)?,
            &LoadKind::Long(length, is_plaid) => flood(self.lengths[&(length, is_plaid)])?,
            LoadKind::Requests(kind) => programs(&|| Ok(actor::start(display, Role::Long { kind: *kind })?.process))?,
            LoadKind::Silent => {
                let open = (0..load.clients).map(|_| draw_once(server)).collect::<Result<_>>()?;
                Clients::Silent { _open: open }
            }
            LoadKind::Fill(percent) => {
                // Use the amount found on the first server for all servers, so that the work is the same.
                let found = self.parts.get(percent).copied().map_or_else(|| Drawing::of_part(server, *percent), Ok)?;
                self.parts.insert(*percent, found);
                flood(found)?
            }
            LoadKind::Program(words) => programs(&|| program(words, display))?,
        };
        Ok(Running { name: load.name.clone(), clients })
    }
}

impl Running {
    pub fn of<'a>(&self, clients: &'a [ClientEntry]) -> Vec<&'a ClientEntry> {
        let pids: Vec<u32> = match &self.clients {
            Clients::Perf(load) => load.pids(),
            Clients::Programs(programs) => programs.iter().map(Owned::pid).collect(),
            _ => Vec::new(),
        };
        let bases: Vec<u32> =
            if let Clients::Flood(flood) = &self.clients { flood.clients().collect() } else { Vec::new() };
        clients.iter().filter(|one| pids.contains(&(one.pid as u32)) || bases.contains(&one.client)).collect()
    }

    pub fn set(&self, load: &LoadOf, control: &Control) -> Result<()> {
        if load.clients_alone() == *load {
            return Ok(());
        }
        let mut clients = Vec::new();
        poll(PATIENCE, Duration::from_millis(20), || {
            clients = self.of(&control.clients()?.clients).iter().map(|client| client.client).collect();
            Ok((clients.len() >= load.clients).then_some(()))
        })?;
        let (connected, wanted, name) = (clients.len(), load.clients, &self.name);
        ensure!(
            connected >= wanted,
            "{connected} of {wanted} clients of {name} are connected: nothing can be set for the others"
        );
        let apply = |subject, settings: &[Option<Setting>]| {
            settings.iter().flatten().try_for_each(|setting| control.set(subject, *setting))
        };
        let group = load.group.as_ref().map(|group| Setting::Group(Label::new(&group.name)));
        for &client in &clients {
            let reserve = load.reserve.map(Setting::Reservation);
            apply(Subject::Client(client), &[reserve, load.weight.map(Setting::Weight), group])?;
            if let Some(priority) = load.priority {
                let connection = control.connection()?;
                connection.sync_initialize(3, 1)?.reply()?;
                connection.sync_set_priority(client, priority)?.check()?;
            }
        }
        if let (Some(group), Some(&first)) = (&load.group, clients.first()) {
            let reserve = group.reserve.map(Setting::Reservation);
            apply(Subject::Group(first), &[group.cap_ppm.map(Setting::Cap), reserve])?;
        }
        // The first period still includes service from before the reservation.
        std::thread::sleep(Duration::from_nanos(load.reserve.map_or(0, |wanted| wanted.period_ns)));
        Ok(())
    }

    pub fn release(&self, control: &Control) -> Result<()> {
        let list = control.clients()?.clients;
        let mut reserved = self.of(&list).into_iter().filter(|client| client.period_us > 0);
        Ok(reserved.try_for_each(|client| control.release(client.client))?)
    }

    /// Suspends its clients, whatever they are doing, or lets them continue. Only x11perf can be suspended.
    pub fn stop(&mut self, stops: bool) {
        if let Clients::Perf(load) = &mut self.clients {
            load.stop(stops);
        }
    }

    /// Bytes that its clients have written so far; `None` for our own clients.
    pub fn written(&self) -> Option<u64> {
        let Clients::Perf(load) = &self.clients else { return None };
        load.written().ok()
    }

    /// Operations, as counted by x11perf.
    pub fn work(&mut self, from: Instant, to: Instant) -> Result<Option<f64>> {
        let Clients::Perf(load) = &mut self.clients else { return Ok(None) };
        Ok(Some(load.work(from, to)?.iter().sum()))
    }

    pub fn see_running(&mut self) -> Result<()> {
        match &mut self.clients {
            Clients::Perf(load) => load.see_running(),
            Clients::Programs(programs) => programs.iter_mut().try_for_each(|program| program.see_running(&self.name)),
            Clients::Flood(flood) if !flood.is_running() => bail!("a client of {} has ended", self.name),
            _ => Ok(()),
        }
    }
}

fn draw_once(server: &Server) -> Result<RustConnection> {
    let connection = server.connect()?;
    let root = connection.setup().roots[0].root;
    for x in 0..DRAWN {
        connection.clear_area(false, root, x, 0, 10, 10)?;
    }
    connection.get_input_focus()?.reply()?;
    Ok(connection)
}

fn program(words: &[String], display: &str) -> Result<Owned> {
    let Some((program, arguments)) = words.split_first() else { bail!("the command is empty") };
    let mut command = Command::new(program);
    command.args(arguments).env("DISPLAY", display);
    Owned::start_silent(&mut command, Duration::from_secs(2))
}
