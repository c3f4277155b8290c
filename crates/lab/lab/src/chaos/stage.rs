// SPDX-License-Identifier: MIT
//! Performs operations on the server and its programs.

use super::garbage;
use super::op::{Op, SLOTS, TESTS, Target};
use crate::folder::Folder;
use crate::poll::poll;
use crate::process::Owned;
use crate::program;
use crate::server::{Server, Setup};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;
use std::time::Duration;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xproto::ConnectionExt;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::{PolicyChange, Subject};
use xqos_client::{Control, Error};

/// Time limit for a reset, and for a program to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(10);
const RULES: &str =
    "version = 1\n[[rule]]\nid = \"half\"\nmatch = { name = \"x11perf\" }\nset = { weight = 0.5, group = \"rules\" }\n";

const RECORDS: usize = 4096;

#[derive(Debug)]
pub(super) struct ChaosStage {
    // Drop order: programs end before their server.
    programs: [Option<Owned>; SLOTS],
    rules: Option<Owned>,
    rings: Vec<RingReader>,
    witness: Option<Control>,
    pub(super) server: Server,
    folder: Folder,
}

impl ChaosStage {
    pub(super) fn start(setup: &Setup) -> Result<ChaosStage> {
        let folder = Folder::create()?;
        let rules = folder.path("xqos/rules.d");
        fs::create_dir_all(&rules)?;
        fs::write(rules.join("50-chaos.toml"), RULES)?;
        let server = setup.start()?;
        let witness = Some(server.control()?);
        Ok(ChaosStage { programs: Default::default(), rules: None, rings: Vec::new(), witness, server, folder })
    }

    pub(super) fn witness(&self) -> Result<&Control> {
        self.witness.as_ref().context("there is no connection while the server resets")
    }

    pub(super) fn perform(&mut self, op: &Op) -> Result<()> {
        match *op {
            Op::Start(slot, test) => self.start_program(slot, TESTS[test])?,
            Op::Stop(slot) => self.programs[slot].iter_mut().for_each(|program| program.stop(true)),
            Op::Continue(slot) => self.programs[slot].iter_mut().for_each(|program| program.stop(false)),
            Op::End(slot) => drop(self.programs[slot].take()),
            Op::Kill(slot) => {
                if let Some(mut program) = self.programs[slot].take() {
                    program.pipes().kill()?;
                }
            }
            Op::Set(subject, setting) => {
                let subject = match subject {
                    Subject::Client(slot) => self.client(slot as usize)?.map(Subject::Client),
                    Subject::Group(slot) => self.client(slot as usize)?.map(Subject::Group),
                    Subject::Server => Some(Subject::Server),
                };
                let control = self.witness()?;
                refused(subject.map_or(Ok(()), |subject| control.set(subject, setting)))?;
            }
            Op::Release(slot) => {
                let (client, control) = (self.client(slot)?, self.witness()?);
                refused(client.map_or(Ok(()), |client| control.release(client)))?;
            }
            Op::Policy(kind, slice_us) => {
                let change = PolicyChange { policy: Some(kind), slice_us, ..PolicyChange::default() };
                refused(self.witness()?.set_policy(change))?;
            }
            Op::Lend(on) => refused(self.witness()?.lend_processor(on, 0))?,
            Op::StopTrace => refused(self.witness()?.stop_trace())?,
            Op::Rules(on) => self.keep_rules(on)?,
            Op::Grab(ms) => {
                let connection = self.server.connect()?;
                connection.grab_server()?;
                connection.flush()?;
                std::thread::sleep(Duration::from_millis(ms));
            }
            Op::Garbage(target, bytes, seed) => self.garbage(target, bytes, seed)?,
            Op::Rest(ms) => std::thread::sleep(Duration::from_millis(ms)),
            Op::Reset => self.reset()?,
            Op::Trace(level, capacity) => match self.witness()?.start_trace(level, capacity) {
                Ok(ring) => self.rings = vec![ring],
                Err(error) => refused(Err(error))?,
            },
            Op::ReadTrace => {
                for ring in &mut self.rings {
                    let records = (0..RECORDS).take_while(|_| matches!(ring.read(), Next::Record(_) | Next::Lost(_)));
                    records.for_each(drop);
                }
            }
        }
        Ok(())
    }

    fn client(&self, slot: usize) -> Result<Option<u32>> {
        let Some(program) = &self.programs[slot] else { return Ok(None) };
        let list = self.witness()?.clients()?;
        let found = list.clients.iter().find(|entry| u32::try_from(entry.pid) == Ok(program.pid()));
        Ok(found.map(|entry| entry.client))
    }

    fn start_program(&mut self, slot: usize, test: &str) -> Result<()> {
        let mut command = Command::new("x11perf");
        command.args([test, "-reps", "200", "-repeat", "1000000"]).env("DISPLAY", self.server.display());
        self.programs[slot] = Some(Owned::start_silent(&mut command, GRACE)?);
        Ok(())
    }

    fn keep_rules(&mut self, on: bool) -> Result<()> {
        self.rules = None;
        if on {
            let mut command = Command::new(program::own("xqos")?);
            command.args(["rules", "run", "--display", self.server.display()]);
            command.env("XDG_CONFIG_HOME", self.folder.path(""));
            self.rules = Some(Owned::start_silent(&mut command, GRACE)?);
        }
        Ok(())
    }

    fn garbage(&self, target: Target, bytes: usize, seed: u64) -> Result<()> {
        let number = self.server.display().trim_start_matches(':').parse()?;
        let extension = self.witness()?.connection()?.extension_information(xqos_abi::EXTENSION_NAME)?;
        // If xqos was loaded through libc, there is no extension, so use an opcode that no extension has.
        garbage::send(target, number, extension.map_or(u8::MAX, |found| found.major_opcode), (bytes, seed));
        Ok(())
    }

    /// Ends all clients. Returns when the server answers again.
    fn reset(&mut self) -> Result<()> {
        self.rules = None;
        self.programs.iter_mut().flatten().for_each(Owned::ask_to_end);
        self.programs = Default::default();
        self.rings.clear();
        // Close the connection, because the server resets when none is left.
        self.witness = None;
        let mut said = String::new();
        self.witness = poll(PATIENCE, Duration::from_millis(20), || {
            Ok(self.server.control().map_err(|error| said = format!("{error:#}")).ok())
        })?;
        ensure!(self.witness.is_some(), "the server did not return from its reset: {said}");
        Ok(())
    }
}

/// The server may refuse a request, but it must answer.
fn refused(answer: Result<(), Error>) -> Result<()> {
    match answer {
        Err(error @ (Error::Connection(_) | Error::Socket(_) | Error::ShortReply)) => Err(error.into()),
        _ => Ok(()),
    }
}
