//! One look at the server: its own figures (ListClients), and response times from the trace in between.

use crate::processor::Processor;
use crate::requests::{Names, names_of, opcodes};
use crate::session::{Session, printable, role_of};
use crate::windows;
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use xqos_abi::ring::{Next, Reader};
use xqos_abi::trace::{Event, Level};
use xqos_abi::{ClientEntry, ClientList, ServerInfo, entry_flag};
use xqos_trace::model::{Figures, Kind, Model};

/// How often the ring is read between samples.
const READ_EVERY: Duration = Duration::from_millis(100);
/// Titles cost a round trip for each window.
const TITLES_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub now_ms: f64,
    pub interval_ms: Option<f64>,
    pub server: Server,
    pub clients: Vec<Client>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Server {
    pub policy: &'static str,
    pub clients: usize,
    pub share: f64,
    pub outside_share: f64,
    /// Of the time of slices, the part in which the server had a processor.
    pub running: f64,
    pub utilization_admitted: f64,
    pub utilization_limit: f64,
    /// Server time paid from reservations.
    pub utilization_used: f64,
    pub blocking_ms: f64,
    /// How the kernel schedules the server's thread, where that is not as usual.
    pub cpu: Option<Processor>,
    pub reservations: u32,
    pub longest_requests: Vec<Longest>,
    #[serde(skip)]
    pub busy_s: f64,
    #[serde(skip)]
    pub cpu_s: f64,
    #[serde(skip)]
    pub early_ends: u64,
    /// Why xqos stepped aside.
    #[serde(skip)]
    pub aside: Option<String>,
    #[serde(skip)]
    pub lost: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Longest {
    pub name: String,
    pub ms: f64,
    /// Since its end.
    pub ago_ms: f64,
    pub pid: i32,
    pub client: String,
    #[serde(skip)]
    pub program: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Client {
    pub pid: Option<i32>,
    pub name: String,
    pub client: String,
    pub title: Option<String>,
    pub role: Option<&'static str>,
    pub share: f64,
    pub server_time_ms: f64,
    pub requests: u64,
    pub requests_per_s: f64,
    pub response: Option<Response>,
    pub waiting_ms: Option<f64>,
    pub longest_wait_ms: f64,
    pub longest_request: Option<LongestRequest>,
    pub grabs: u32,
    pub grabbed_ms: f64,
    /// How the kernel schedules the program's main thread, where that is not as usual.
    pub cpu: Option<Processor>,
    pub holds_grab: bool,
    pub depletions: u32,
    pub misses: u32,
    pub sync_priority: i32,
    pub reservation: Option<Reserved>,
    #[serde(skip)]
    pub entry: ClientEntry,
    #[serde(skip)]
    pub waited_s: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Response {
    pub count: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub worst_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct LongestRequest {
    pub name: String,
    pub ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Reserved {
    pub budget_ms: f64,
    pub period_ms: f64,
    pub hard: bool,
    pub left_ms: f64,
    /// Part of the reservation that was used.
    pub used: f64,
    pub held_back: bool,
}

/// Samples one after the other.
pub struct Sampler {
    pub session: Session,
    names: Names,
    reader: Option<Reader>,
    model: Model,
    before: Option<(ClientList, ServerInfo)>,
    titles: HashMap<u32, String>,
    titles_at: Option<Instant>,
    level: Level,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl Sampler {
    /// Response times from now on, and figures since this moment.
    pub fn open(display: Option<&str>) -> Result<Sampler> {
        let mut sampler = Sampler::connect(display)?;
        sampler.trace(Level::Slices);
        sampler.before = Some(sampler.look()?);
        Ok(sampler)
    }

    /// The figures since each client connected.
    pub fn once(display: Option<&str>) -> Result<Sample> {
        Sampler::connect(display)?.sample()
    }

    fn connect(display: Option<&str>) -> Result<Sampler> {
        let session = Session::open(display)?;
        let names = names_of(session.control.connection())?;
        Ok(Sampler {
            session,
            names,
            reader: None,
            model: Model::without_causes(),
            before: None,
            titles: HashMap::new(),
            titles_at: None,
            level: Level::Slices,
        })
    }

    /// Asks for a trace; without one (a server of another machine) there are no response times.
    pub fn trace(&mut self, level: Level) {
        self.level = level;
        match self.session.control.start_trace(level, 0) {
            // The reader that is there goes on: its next records are a new beginning.
            Ok(reader) if self.reader.is_none() => self.reader = Some(reader),
            _ => {}
        }
    }

    pub fn level(&self) -> Level {
        self.level
    }

    pub fn has_trace(&self) -> bool {
        self.reader.is_some()
    }

    /// Lets time pass, reading the trace meanwhile; `stop` may end it early.
    pub fn wait(&mut self, time: Duration, mut stop: impl FnMut() -> bool) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            self.read();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop() {
                return Ok(());
            }
            std::thread::sleep(left.min(READ_EVERY));
        }
    }

    pub fn read(&mut self) {
        let mut lost = false;
        let Some(reader) = &mut self.reader else { return };
        loop {
            match reader.read() {
                Next::Record(words) => {
                    if let Some(event) = Event::decode(words) {
                        self.model.take(&event);
                    }
                }
                Next::Lost(records) => {
                    self.model.lost += records;
                    lost = true;
                }
                Next::Nothing => break,
                Next::Ended => {
                    self.reader = None;
                    break;
                }
            }
        }
        if lost {
            self.trace(self.level);
        }
    }

    fn look(&self) -> Result<(ClientList, ServerInfo)> {
        Ok((self.session.control.clients()?, self.session.control.server_info()?))
    }

    /// A sample since the last one; the first of `once` is since each client connected.
    pub fn sample(&mut self) -> Result<Sample> {
        self.read();
        self.look_for_titles();
        let (list, info) = self.look()?;
        let recent: BTreeMap<u32, Figures> = self
            .model
            .take_recent()
            .into_iter()
            .map(|(key, figures)| (self.model.clients()[key].identity.base, figures))
            .collect();
        self.model.forget_gone();
        let before = self.before.replace((list.clone(), info.clone()));
        let server = self.server(&list, &info, before.as_ref())?;
        let running = server.running;
        let mut clients: Vec<Client> = list
            .clients
            .iter()
            .filter(|entry| entry.flags & entry_flag::YOU == 0)
            .map(|entry| self.client(entry, &list, before.as_ref().map(|(list, _)| list), recent.get(&entry.client)))
            .map(|client| Client { share: client.share * running, ..client })
            .collect();
        clients.sort_by(|a, b| b.share.total_cmp(&a.share).then(b.server_time_ms.total_cmp(&a.server_time_ms)));
        let interval_ms = before.map(|(before, _)| ms(list.now_ns.saturating_sub(before.now_ns)));
        Ok(Sample { now_ms: ms(list.now_ns), interval_ms, server, clients })
    }

    fn server(
        &self,
        list: &ClientList,
        info: &ServerInfo,
        before: Option<&(ClientList, ServerInfo)>,
    ) -> Result<Server> {
        let sum_reserved = |list: &ClientList| list.clients.iter().map(|entry| entry.reserved_time_ns).sum::<u64>();
        // Since the last sample, or since the server began.
        let (elapsed_ns, busy_ns, cpu_ns, reserved_ns) = match before {
            Some((before_list, before_info)) => (
                list.now_ns.saturating_sub(before_list.now_ns),
                info.busy_ns.saturating_sub(before_info.busy_ns),
                list.server_cpu_ns.saturating_sub(before_list.server_cpu_ns),
                sum_reserved(list).saturating_sub(sum_reserved(before_list)),
            ),
            None => (info.uptime_ns, info.busy_ns, list.server_cpu_ns, sum_reserved(list)),
        };
        let part = |ns: u64| ns as f64 / elapsed_ns.max(1) as f64;
        // Slices last longer than the server works in them where the kernel gives the processor to others.
        let running = (cpu_ns as f64 / busy_ns.max(1) as f64).min(1.0);
        let longest = self.session.control.longest_requests()?.requests;
        // No more can be promised than the server gets itself.
        let limit_ppm = if info.armed { self.session.control.processor()?.limit_ppm } else { 0 };
        Ok(Server {
            policy: info.policy.name(),
            clients: list.clients.iter().filter(|entry| entry.flags & entry_flag::YOU == 0).count(),
            share: part(busy_ns) * running,
            running,
            outside_share: part(cpu_ns.saturating_sub(busy_ns)),
            utilization_admitted: f64::from(info.admitted_utilization_ppm) / 1e6,
            utilization_limit: f64::from(limit_ppm) / 1e6,
            utilization_used: part(reserved_ns),
            blocking_ms: f64::from(info.blocking_observed_us) / 1e3,
            cpu: i32::try_from(info.server_pid).ok().and_then(Processor::of),
            reservations: info.reservations,
            longest_requests: longest
                .into_iter()
                .map(|request| Longest {
                    name: self.names.of(request.request),
                    ms: ms(request.ns),
                    ago_ms: ms(list.now_ns.saturating_sub(request.at_ns)),
                    pid: request.pid,
                    client: format!("{:#x}", request.client),
                    program: printable(&request.name),
                })
                .collect(),
            busy_s: info.busy_ns as f64 / 1e9,
            cpu_s: list.server_cpu_ns as f64 / 1e9,
            early_ends: info.early_ends,
            aside: (!info.armed).then(|| info.reason.clone()),
            lost: self.model.lost,
        })
    }

    fn client(
        &self,
        entry: &ClientEntry,
        list: &ClientList,
        before: Option<&ClientList>,
        recent: Option<&Figures>,
    ) -> Client {
        let has = |flag: u32| entry.flags & flag != 0;
        let same = |other: &&ClientEntry| (other.client, other.connected_ns) == (entry.client, entry.connected_ns);
        let earlier = before.and_then(|list| list.clients.iter().find(same));
        let since_ns = match (before, earlier) {
            (Some(before), Some(_)) => before.now_ns,
            _ => entry.connected_ns,
        };
        let elapsed_ns = list.now_ns.saturating_sub(since_ns).max(1);
        let (used_ns, requests) = match earlier {
            Some(earlier) => (
                entry.server_time_ns.saturating_sub(earlier.server_time_ns),
                entry.requests.saturating_sub(earlier.requests),
            ),
            None => (entry.server_time_ns, entry.requests),
        };
        let reserved_ns = entry.reserved_time_ns.saturating_sub(earlier.map_or(0, |earlier| earlier.reserved_time_ns));
        let (major, minor) = opcodes(entry.longest_request);
        let of_model = self.model.present().find(|client| client.identity.base == entry.client);
        // Of the whole trace: what was the longest does not become shorter in the next interval.
        let longest = of_model.and_then(|client| client.total.longest_request);
        let longest = longest.filter(|&(ns, _)| ns > entry.longest_request_ns);
        Client {
            pid: (entry.pid != 0).then_some(entry.pid),
            name: if entry.name.is_empty() { format!("{:#x}", entry.client) } else { printable(&entry.name) },
            client: format!("{:#x}", entry.client),
            title: self.titles.get(&entry.client).cloned(),
            share: used_ns as f64 / elapsed_ns as f64,
            server_time_ms: ms(entry.server_time_ns),
            requests: entry.requests,
            requests_per_s: requests as f64 / (elapsed_ns as f64 / 1e9),
            response: recent.map(|figures| &figures.responses).filter(|responses| responses.count() > 0).map(
                |responses| Response {
                    count: responses.count(),
                    p50_ms: ms(responses.quantile_ns(0.5)),
                    p99_ms: ms(responses.quantile_ns(0.99)),
                    worst_ms: ms(responses.worst_ns()),
                },
            ),
            waiting_ms: of_model
                .and_then(|client| client.waits_since())
                .map(|since| ms(list.now_ns.saturating_sub(since.0))),
            longest_wait_ms: ms(entry.longest_wait_ns),
            longest_request: match longest {
                Some((ns, request)) => Some(LongestRequest { name: self.names.of(request), ms: ms(ns) }),
                None => (major != 0)
                    .then(|| LongestRequest { name: self.names.name(major, minor), ms: ms(entry.longest_request_ns) }),
            },
            role: role_of(entry),
            grabs: entry.grabs,
            grabbed_ms: ms(entry.grabbed_ns),
            cpu: Some(entry.pid).filter(|&pid| pid > 0).and_then(Processor::of),
            holds_grab: has(entry_flag::GRABS_SERVER),
            depletions: entry.depletions,
            misses: entry.misses,
            sync_priority: entry.sync_priority,
            reservation: has(entry_flag::RESERVED).then(|| Reserved {
                budget_ms: f64::from(entry.budget_us) / 1e3,
                period_ms: f64::from(entry.period_us) / 1e3,
                hard: has(entry_flag::HARD),
                left_ms: entry.budget_left_ns as f64 / 1e6,
                used: reserved_ns as f64 / elapsed_ns as f64 * f64::from(entry.period_us)
                    / f64::from(entry.budget_us.max(1)),
                held_back: has(entry_flag::HELD_BACK),
            }),
            waited_s: entry.waited_ns as f64 / 1e9,
            entry: entry.clone(),
        }
    }

    /// The most expensive kinds of requests of a client since its trace began; empty below level requests.
    pub fn kinds(&self, base: u32) -> Vec<(String, Kind)> {
        let Some(client) = self.model.present().find(|client| client.identity.base == base) else { return Vec::new() };
        let mut kinds: Vec<(String, Kind)> =
            client.total.kinds.iter().map(|(&request, &kind)| (self.names.of(request), kind)).collect();
        kinds.sort_by_key(|(_, kind)| std::cmp::Reverse(kind.ns));
        kinds
    }

    fn look_for_titles(&mut self) {
        let is_due = self.titles_at.is_none_or(|at| at.elapsed() >= TITLES_EVERY);
        if !is_due {
            return;
        }
        self.titles_at = Some(Instant::now());
        let connection = self.session.control.connection();
        // Windows come and go while we look; without titles the rest is worth as much.
        if let Ok(titles) = windows::titles(connection) {
            let mask = x11rb::connection::Connection::setup(connection).resource_id_mask;
            self.titles.clear();
            for (window, title) in titles {
                self.titles.entry(window & !mask).or_insert_with(|| printable(&title));
            }
        }
    }
}
