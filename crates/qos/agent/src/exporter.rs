// SPDX-License-Identifier: MIT
//! Metrics of a host's X servers, for `xqos exporter`. Servers are found by their sockets and queried only when a
//! scrape asks for metrics.
//!
//! The exporter never becomes a server's only client, because a server resets or exits when its last client
//! disconnects. If a server has no clients, the exporter only checks that it answers: over the control socket, or with
//! a connection that a server with -noreset refuses. For the same reason, no connection stays open between two scrapes.
//!
//! | file | contents |
//! |---|---|
//! | `ask` | queries one server within a time limit |
//! | `authority` | finds the cookie for a server of another user |
//! | `account` | sums of clients by user and program, which never decrease |
//! | `attached` | figures of servers without xqos, from short kernel traces |
//! | `page`, `format` | formats everything as metrics |

mod account;
mod ask;
mod attached;
mod authority;
mod format;
mod page;

use crate::attach::watch;
use crate::displays::Displays;
use crate::rules::process::Users;
use crate::sample::{Readings, ServerSample};
use account::{Labels, UsageAccount};
use ask::{Found, QueryResult, ServerProcess, Visit};
use attached::Watched;
use clap::Args;
pub use format::MetricsFormat;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use xqos_abi::ClientEntry;
use xqos_cli::output;
use xqos_sys::proc;
use xqos_text::escape::{in_one_line, printable};
use xqos_text::quantity::{Micros, within};
use xqos_x11::display::local_number;

/// More frequent scrapes get the previous figures, so that nobody can overload servers through the exporter.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// Which servers to query, and how.
#[derive(Args, Clone, Debug)]
pub struct ExporterOptions {
    /// Also watch servers without xqos, for 0.2 s per query, through the kernel's trace of their system calls; root
    /// only
    #[arg(long)]
    pub attach: bool,
    /// Only these displays, such as :7,:8
    #[arg(long, value_name = "DISPLAYS", value_delimiter = ',', value_parser = number)]
    only: Vec<u32>,
    /// How long the servers may take to answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = patience)]
    wait: Micros,
    /// Pairs of user and program per display; further ones are combined as "other"
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    programs: u32,
}

fn patience(text: &str) -> Result<Micros, String> {
    within(text, 100_000..=8_000_000).map_err(|error| format!("{error}, to stay below Prometheus's timeout"))
}

fn number(text: &str) -> Result<u32, String> {
    local_number(text).ok_or_else(|| format!("{text} is not a display of this machine: write it like :7"))
}

#[derive(Debug)]
pub struct Exporter {
    options: ExporterOptions,
    /// Include what clients used before the first query.
    with_past: bool,
    displays: BTreeMap<u32, Display>,
    answers: (Sender<QueryResult>, Receiver<QueryResult>),
    users: Users,
    rounds: u64,
    queried_at: Option<Instant>,
    took: Duration,
    lost_events: u64,
}

#[derive(Debug, Default)]
struct Display {
    /// Round of a query that has not been answered yet.
    pending: Option<u64>,
    state: DisplayState,
    took: Duration,
    process: Option<ServerProcess>,
    server: Option<ServerSample>,
    account: Option<UsageAccount>,
    watched: Option<Watched>,
    /// The exporter has watched the server from its start, so all usage of its clients counts.
    is_known_from_start: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum DisplayState {
    /// The server has no clients.
    #[default]
    Idle,
    Served,
    /// The server runs without xqos.
    Stock,
    Failed(String),
}

impl Exporter {
    pub fn new(options: ExporterOptions, with_past: bool) -> Exporter {
        Exporter {
            options,
            with_past,
            displays: BTreeMap::new(),
            answers: channel(),
            users: Users::read(),
            rounds: 0,
            queried_at: None,
            took: Duration::ZERO,
            lost_events: 0,
        }
    }

    /// The current metrics, or the previous page if it is less than a second old.
    pub fn page(&mut self, format: MetricsFormat) -> String {
        if self.queried_at.is_none_or(|at| at.elapsed() >= LEAST_INTERVAL) {
            let begin = Instant::now();
            self.query_all();
            self.took = begin.elapsed();
            self.queried_at = Some(Instant::now());
        }
        page::render(self, format)
    }

    fn query_all(&mut self) {
        self.users = Users::read();
        self.rounds += 1;
        while let Ok(late) = self.answers.1.try_recv() {
            self.take(late);
        }
        let sockets = Displays::read();
        self.find(&sockets);
        self.ask(&sockets);
        self.collect();
        if self.options.attach {
            self.attach();
        }
    }

    /// Adds new displays and removes those that are gone. A display with an open query stays until it is answered.
    fn find(&mut self, sockets: &Displays) {
        let only = &self.options.only;
        let mut numbers = sockets.numbers();
        numbers.retain(|display| only.is_empty() || only.contains(display));
        self.displays.retain(|display, known| numbers.binary_search(display).is_ok() || known.pending.is_some());
        for display in numbers {
            let is_known_from_start = self.with_past || self.rounds > 1 || !sockets.has_clients(display);
            self.displays.entry(display).or_insert_with(|| Display { is_known_from_start, ..Display::default() });
        }
    }

    /// Queries the displays. A display with an open query is not queried again.
    fn ask(&mut self, sockets: &Displays) {
        for (&display, known) in self.displays.iter_mut().filter(|(_, known)| known.pending.is_none()) {
            let visit = match sockets.has_clients(display) {
                true => Visit::Query,
                false if sockets.can_be_checked(display) => Visit::Check,
                false => Visit::ControlSocket,
            };
            if visit != Visit::Query {
                known.clear_clients();
            }
            known.pending = Some(self.rounds);
            if !ask::ask(display, visit, self.rounds, self.options.wait.duration(), self.answers.0.clone()) {
                known.pending = None;
                known.set_state(display, DisplayState::Failed("no further thread can be started".to_owned()));
            }
        }
    }

    fn collect(&mut self) {
        // Each query has its own time limit, which expires shortly before this one.
        let until = Instant::now() + self.options.wait.duration() + Duration::from_millis(100);
        while self.displays.values().any(|known| known.pending == Some(self.rounds)) {
            let Ok(answer) = self.answers.1.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                break;
            };
            self.take(answer);
        }
        for (&display, known) in self.displays.iter_mut().filter(|(_, known)| known.pending.is_some()) {
            known.set_state(display, DisplayState::Failed("the previous query has not ended yet".to_owned()));
        }
    }

    /// Takes an answer. The figures of a late answer are ignored, because the next answer contains them.
    fn take(&mut self, answer: QueryResult) {
        let Some(known) = self.displays.get_mut(&answer.display) else { return };
        known.pending = None;
        if answer.number != self.rounds {
            return;
        }
        known.took = answer.took;
        if answer.server.is_some() {
            known.process = answer.server;
        }
        let state = match answer.found {
            Ok(Found::Served(readings)) => {
                known.account_for(*readings, &self.users, self.options.programs as usize);
                DisplayState::Served
            }
            Ok(Found::Stock) => DisplayState::Stock,
            Ok(Found::Idle) => DisplayState::Idle,
            Err(why) => DisplayState::Failed(in_one_line(&why.to_string())),
        };
        known.set_state(answer.display, state);
    }

    /// Watches all servers without xqos, in parallel.
    fn attach(&mut self) {
        let stock = self.displays.values_mut().filter(|known| known.state == DisplayState::Stock);
        let servers: Vec<(i32, &mut Display)> =
            stock.filter_map(|known| Some((known.process.as_ref()?.peer.pid, known))).collect();
        if servers.is_empty() {
            return;
        }
        let pids: Vec<i32> = servers.iter().map(|&(pid, _)| pid).collect();
        match watch::watch_for(&pids, attached::TRACE_TIME) {
            Ok((mut watch, elapsed_ns)) => {
                self.lost_events += watch.trace.lost();
                let user = |pid| proc::owner(pid).map(|owner| self.users.name(owner)).unwrap_or_default();
                for (pid, known) in servers {
                    let watched = known.watched.take().filter(|watched| watched.server_pid == pid);
                    let mut watched = watched.unwrap_or_else(|| Watched::new(pid, self.options.programs as usize));
                    watched.add(watch.take_usage(pid), elapsed_ns, user);
                    known.watched = Some(watched);
                }
            }
            Err(error) => output::note(&format!("servers without xqos cannot be watched: {}", error.in_one_line())),
        }
    }
}

impl Display {
    fn set_state(&mut self, display: u32, state: DisplayState) {
        if let (true, DisplayState::Failed(why)) = (self.state != state, &state) {
            output::note(&format!("no metrics of display :{display}: {why}"));
        } else if matches!(self.state, DisplayState::Failed(_)) && self.state != state {
            output::note(&format!("display :{display} answers again"));
        }
        self.state = state;
    }

    fn clear_clients(&mut self) {
        if let Some(account) = &mut self.account {
            account.all_disconnected();
        }
        if let Some(server) = &mut self.server {
            server.clients = 0;
            (server.info.reservations, server.info.admitted_utilization_ppm) = (0, 0);
        }
    }

    fn account_for(&mut self, readings: Readings, users: &Users, max_labels: usize) {
        self.server = Some(ServerSample::new(&readings, None));
        let Readings { info, list, departed, .. } = readings;
        self.watched = None;
        let is_same = self.account.as_ref().is_some_and(|account| account.is_of(info.server_pid));
        if !is_same {
            let mut account = UsageAccount::new(info.server_pid, max_labels);
            // A server that replaces a known one is new, so all its usage counts.
            if self.account.is_none() && !self.is_known_from_start {
                account.begin_at(&list.clients, &departed);
            }
            self.account = Some(account);
        }
        if let Some(account) = &mut self.account {
            account.add(list.clients, departed, |entry| labels(entry, users));
        }
    }

    fn is_up(&self) -> bool {
        !matches!(self.state, DisplayState::Failed(_))
    }
}

/// The labels of a client. A client on another machine has no known user, and often no known program.
fn labels(entry: &ClientEntry, users: &Users) -> Labels {
    let user = if entry.uid == u32::MAX { String::new() } else { users.name(entry.uid) };
    let program =
        if entry.name.is_empty() && !entry.host.is_empty() { "(remote)".to_owned() } else { printable(&entry.name) };
    Labels { user, program }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_clients_share_one_label() {
        let users = Users::default();
        let remote = ClientEntry { uid: u32::MAX, host: "192.0.2.7".into(), ..ClientEntry::default() };
        assert_eq!(labels(&remote, &users), Labels { user: String::new(), program: "(remote)".into() });
        let local = ClientEntry { uid: 4711, name: "a\nb".into(), ..ClientEntry::default() };
        assert_eq!(labels(&local, &users), Labels { user: "4711".into(), program: "a?b".into() });
    }
}
