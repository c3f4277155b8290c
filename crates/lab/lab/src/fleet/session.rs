// SPDX-License-Identifier: MIT
//! One session: its user, host and programs, and how the simulator serves the programs.

use super::FleetSummary;
use anyhow::{Result, anyhow};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Parameters, PolicyKind, Role, Service, Time};
use xqos_sim::Dice;
use xqos_sim::server::{Rules, serve};
use xqos_sim::workload::{Plan, RequestBurst, RequestRun, Workload};
use xqos_trace::file::{Header, TraceWriter};

const MS: u64 = 1_000_000;
const HOUR_NS: u64 = 3_600_000 * MS;
const SPAN_NS: u64 = 8_000 * MS;
/// CLOCK_MONOTONIC at the beginning of a trace. Not 0, because 0 means "never" in some places.
const BEGAN: Time = Time(1_000 * MS);
/// 2026-03-02, midnight.
const FIRST_DAY_NS: u64 = 1_772_409_600 * 1_000 * MS;
const DAYS: u32 = 10;
/// The servers run xqos from this day on.
const FIRST_FAIR_DAY: u32 = 5;
const HOSTS: u32 = 50;
const USERS: u32 = 200;
/// Separates the seeds of consecutive sessions.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A program's requests: bursts of random length with random pauses.
pub(super) struct ProgramTraffic {
    pub(super) name: &'static str,
    /// True if it runs as root, because it belongs to the host and not to a user.
    is_of_host: bool,
    /// Mean pause between two bursts, or 0 if the program draws without a pause.
    rest_ns: u64,
    requests: u64,
    request_ns: u64,
    request: u32,
    /// Atoms that it queries one by one when it starts.
    pub(super) atoms: u32,
    /// Percentage of bursts that end with a round trip whose reply is not needed.
    pub(super) syncs: u64,
}

const fn program(
    (name, is_of_host): (&'static str, bool),
    rest_ms: u64,
    (requests, request_us, request): (u64, u64, u32),
    (atoms, syncs): (u32, u64),
) -> ProgramTraffic {
    let (rest_ns, request_ns) = (rest_ms * MS, request_us * 1_000);
    ProgramTraffic { name, is_of_host, rest_ns, requests, request_ns, request, atoms, syncs }
}

/// Opcodes: 62 CopyArea, 66 PolySegment, 70 PolyFillRectangle, 72 PutImage, 73 GetImage, 74 PolyText8.
pub(super) const PROGRAMS: [ProgramTraffic; 9] = [
    program(("xterm", false), 90, (12, 15, 74), (18, 2)),
    program(("emacs", false), 120, (40, 20, 74), (254, 25)),
    program(("firefox", false), 35, (30, 60, 72), (40, 5)),
    program(("libreoffice", false), 60, (80, 30, 70), (120, 30)),
    program(("mpv", false), 40, (1, 2_500, 72), (60, 0)),
    program(("gimp", false), 200, (8, 4_000, 73), (180, 10)),
    program(("plotter", false), 0, (20, 400, 66), (5, 0)),
    program(("xfce4-panel", false), 500, (25, 20, 62), (90, 20)),
    program(("x11vnc", true), 50, (2, 1_500, 73), (10, 0)),
];
const ALWAYS: [usize; 2] = [0, 7];
/// A program that draws without a pause. One session in four has it.
const PLOTTER: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct SimulatedSession {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) display: u16,
    began_unix_ns: u64,
    policy: PolicyKind,
    /// Indices into [`PROGRAMS`].
    pub(super) programs: Vec<usize>,
    user: u32,
    number: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Index into [`SimulatedSession::programs`].
    pub(super) place: usize,
    pub(super) asked_unix_ns: u64,
    pub(super) done_unix_ns: u64,
}

impl SimulatedSession {
    pub(super) fn of(number: u32) -> SimulatedSession {
        let mut dice = SimulatedSession::dice(number, 0);
        let day = number % DAYS;
        let others = (1..PROGRAMS.len()).filter(|place| !ALWAYS.contains(place) && *place != PLOTTER);
        let others: Vec<usize> = others.filter(|_| dice.below(2) == 0).collect();
        let plotter = (dice.below(4) == 0).then_some(PLOTTER);
        SimulatedSession {
            name: format!("s{number:04}"),
            host: format!("ts{:02}", number / DAYS % HOSTS + 1),
            display: 10 + (number / DAYS / HOSTS) as u16,
            // During working hours.
            began_unix_ns: FIRST_DAY_NS + u64::from(day) * 24 * HOUR_NS + 8 * HOUR_NS + dice.below(9 * HOUR_NS),
            policy: if day < FIRST_FAIR_DAY { PolicyKind::Stock } else { PolicyKind::Fair },
            programs: ALWAYS.into_iter().chain(others).chain(plotter).collect(),
            user: 1000 + dice.below(USERS.into()) as u32,
            number,
        }
    }

    fn dice(number: u32, purpose: u64) -> Dice {
        Dice::new((u64::from(number) * 64 + purpose).wrapping_mul(SEED_STEP))
    }

    /// Simulates the session, writes the trace, and returns the request and completion times of each burst.
    pub(super) fn serve(&self, file: &Path, total: &mut FleetSummary) -> Result<Vec<Turn>> {
        let mut writer = TraceWriter::new(File::create_new(file)?, &self.header())?;
        let rules = Rules {
            policy: self.policy,
            parameters: Parameters::default(),
            reservations: BTreeMap::new(),
            // A stock server checks for input only between slices.
            watches: self.policy != PolicyKind::Stock,
            part_ns: 0,
        };
        let mut turns = Turns { since: BTreeMap::new(), list: Vec::new(), offset_ns: self.offset_ns() };
        let mut written = Ok(());
        let refused = serve(&self.workload(), &rules, |event| {
            turns.take(&event);
            if written.is_ok() {
                written = writer.add(event.encode());
            }
        });
        refused.map_err(|why| anyhow!("{} cannot be simulated: {why:?}", self.name))?;
        written?;
        writer.flush()?;
        total.records += writer.records();
        Ok(turns.list)
    }

    fn offset_ns(&self) -> u64 {
        self.began_unix_ns - BEGAN.0
    }

    fn header(&self) -> Header {
        Header {
            xqos: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host.clone(),
            display: format!(":{}", self.display),
            server_pid: 1000 + self.number,
            realtime_offset_ns: self.offset_ns() as i64,
            level: "slices".to_owned(),
            ..Header::default()
        }
    }

    fn workload(&self) -> Workload {
        let plans = self.programs.iter().enumerate().map(|(place, &program)| self.plan(place, &PROGRAMS[program]));
        Workload { began: BEGAN, ended: BEGAN.after(SPAN_NS), plans: plans.collect() }
    }

    fn plan(&self, place: usize, program: &ProgramTraffic) -> Plan {
        let mut dice = SimulatedSession::dice(self.number, place as u64 + 1);
        let id = ClientId(place as u16 + 1);
        let uid = if program.is_of_host { 0 } else { self.user };
        let mut name = [0; 16];
        name[..program.name.len()].copy_from_slice(program.name.as_bytes());
        let identity = vec![
            Entry::Identity { client: id, pid: 2000 + place as u32, base: (place as u32 + 1) << 21, uid },
            Entry::Name { client: id, part: 0, bytes: name },
        ];
        let mut bursts = Vec::new();
        let mut spent_ns = 0;
        while spent_ns < SPAN_NS {
            let burst = program.burst(&mut dice);
            let run = burst.runs[0];
            spent_ns += burst.after_ns + u64::from(run.requests) * run.request_ns;
            bursts.push(burst);
        }
        Plan { id, identity, sync_priority: 0, role: Role::NONE, bursts }
    }
}

impl ProgramTraffic {
    fn burst(&self, dice: &mut Dice) -> RequestBurst {
        let requests = 1 + dice.below(self.requests * 2) as u32;
        // From 0.5 to 2.5 times the program's figure; medium lengths are the most frequent.
        let request_ns = self.request_ns / 2 + dice.below(self.request_ns) + dice.below(self.request_ns);
        let run = RequestRun { requests, request_ns, request: self.request, bytes: 32 };
        RequestBurst { after_ns: dice.below(2 * self.rest_ns), inputs: 0, runs: vec![run] }
    }
}

/// Collects the served bursts from the records of a simulation.
struct Turns {
    since: BTreeMap<ClientId, Time>,
    list: Vec<Turn>,
    offset_ns: u64,
}

impl Turns {
    fn take(&mut self, event: &Event) {
        match event.what {
            Entry::Fact(Fact::Arrived { client }) => {
                self.since.insert(client, event.at);
            }
            Entry::Fact(Fact::Served(Service { client, still_ready: false, .. })) => {
                let Some(since) = self.since.remove(&client) else { return };
                let place = usize::from(client.0) - 1;
                let (asked_unix_ns, done_unix_ns) = (since.0 + self.offset_ns, event.at.0 + self.offset_ns);
                self.list.push(Turn { place, asked_unix_ns, done_unix_ns });
            }
            _ => {}
        }
    }
}
