// SPDX-License-Identifier: MIT
//! Measures which clients use an X server that does not run xqos, by tracing the server's system calls in the kernel.
//! This needs root.
//!
//! An X server reads a client's requests, executes them, and then reads from the next client or waits. The time from a
//! read to the thread's next read or wait therefore belongs to the client whose descriptor was read.
//!
//! | file | contents |
//! |---|---|
//! | `events` | parses a line of the kernel's trace |
//! | `account` | computes the time and calls of each descriptor from the events; uses no clock and no files |
//! | `target` | finds the process that serves a display |
//! | `watch` | watches many servers with one kernel trace |
//! | `peers` | finds the program at the other end of a descriptor |
//! | `served` | takes the times from a server that runs xqos |

mod account;
mod events;
mod peers;
mod served;
mod target;
pub mod watch;

pub use target::AttachedServer;

use crate::error::{Result, asking, bail};
use crate::field::{Value, count, fields, table, time};
use crate::sample::Readings;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use watch::{PeerUse, READ_INTERVAL, ServerWatch, Usage};
use xqos_sys::{self as sys, Signals};
use xqos_text::time::of_ms;

const VERSION: u32 = 1;

/// Measurements of one server over an interval.
#[derive(Debug, Serialize)]
pub struct Sample {
    version: u32,
    server_pid: i32,
    server: String,
    display: Option<String>,
    elapsed_ms: f64,
    /// Fraction of the interval in which the server did not wait.
    busy: f64,
    /// The server runs xqos, so shares and times come from the server itself.
    served: bool,
    /// Number of events that did not fit into the kernel's buffer. If there are any, all figures are too low.
    lost: u64,
    pub clients: Vec<TracedClient>,
}

/// A program at the other end of one or more descriptors of the server.
#[derive(Debug)]
pub struct TracedClient {
    /// `None` if the program is on another machine or unknown.
    pid: Option<i32>,
    program: String,
    departed: bool,
    connections: usize,
    used: Usage,
    /// Length of the interval.
    elapsed: Duration,
}

fields! {
pub const ATTACHED of client: TracedClient as JSON;

"pid" number("PID", 7, ""): "process; null: on another machine, not known, or the server's own work" =>
    Value::or_none(client.pid, count);
"program" elastic("PROGRAM", 14, ""): "name of the program" =>
    Value::Other(json!(client.program), format!("{}{}", client.program, if client.departed { ", left" } else { "" }));
"share" number("SHARE", 6, ""): "part of the time" => Value::Share(client.used.ns as f64 / client.elapsed.as_nanos() as f64);
"longest_ms" number("LONGEST", 7, ""): "longest uninterrupted work for the client" =>
    time(client.used.longest_ns);
"calls_per_s" number("CALLS/S", 7, ""): "reads by the server, per second" =>
    Value::Rate(client.used.calls as f64 / client.elapsed.as_secs_f64());
"busy_ms" number("TIME", 7, ""): "server time used" => time(client.used.ns);
"connections" number("CONNECTIONS", 11, ""): "number of connections" => count(client.connections);
"departed": "true for closed connections, which are summed up by program" => Value::Flag(client.departed);
}

/// A server under observation, until this value is dropped.
#[derive(Debug)]
pub struct Attached {
    target: AttachedServer,
    watch: ServerWatch,
    signals: Signals,
    since: Instant,
    /// Figures at the start of the interval, if the server runs xqos.
    before: Option<Readings>,
}

impl Attached {
    pub fn new(target: AttachedServer) -> Result<Attached> {
        // Watch for signals before the trace starts, so that a signal at any time ends the trace cleanly.
        let signals = Signals::watch().map_err(asking("cannot watch for signals"))?;
        let watch = ServerWatch::start(&[target.pid])?;
        let before = served::ask(target.display);
        Ok(Attached { target, watch, signals, since: Instant::now(), before })
    }

    /// Watches the server for this time. Returns `None` when a signal ends the program.
    pub fn watch(&mut self, time: Duration) -> Result<Option<Sample>> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            sys::poll(&[std::os::fd::AsRawFd::as_raw_fd(&self.signals)], Some(left.min(READ_INTERVAL)))
                .map_err(asking("cannot wait"))?;
            self.watch.read()?;
            if self.signals.termination_requested() {
                return Ok(None);
            }
            if !xqos_sys::exists(self.target.pid) {
                bail!("the server (process {}) has ended", self.target.pid);
            }
            if Instant::now() >= end {
                return Ok(Some(self.sample()?));
            }
        }
    }

    fn sample(&mut self) -> Result<Sample> {
        let elapsed = self.since.elapsed();
        self.since = Instant::now();
        let seen = self.watch.take_usage(self.target.pid);
        let mut busy_ns: u64 = seen.iter().map(|one| one.used.ns).sum();
        let mut clients: Vec<TracedClient> = Vec::new();
        for PeerUse { pid, program, departed, used } in seen {
            let is_it = |one: &TracedClient| (one.pid, &one.program, one.departed) == (pid, &program, departed);
            let at = clients.iter().position(is_it).unwrap_or_else(|| {
                clients.push(TracedClient { pid, program, departed, connections: 0, used: Usage::default(), elapsed });
                clients.len() - 1
            });
            clients[at].connections += 1;
            clients[at].used.add(&used);
        }
        let now = served::ask(self.target.display);
        let served = self.before.as_ref().zip(now.as_ref());
        if let Some((before, now)) = served {
            busy_ns = served::correct(&mut clients, before, now, elapsed);
        }
        let served = served.is_some();
        self.before = now;
        clients.sort_by_key(|client| std::cmp::Reverse(client.used.ns));
        Ok(Sample {
            version: VERSION,
            server_pid: self.target.pid,
            server: self.target.program.clone(),
            display: self.target.display.map(|display| format!(":{display}")),
            elapsed_ms: elapsed.as_secs_f64() * 1e3,
            busy: busy_ns as f64 / elapsed.as_nanos() as f64,
            served,
            lost: self.watch.trace.lost(),
            clients,
        })
    }
}

impl Sample {
    /// The table with its headline and warnings.
    pub fn text(&self, width: Option<usize>) -> String {
        let display = self.display.as_deref().unwrap_or("no local display");
        let mut text = format!(
            "{} (process {}, {display}), {}: busy {:.0} % of {}\n",
            self.server,
            self.server_pid,
            if self.served { "with xqos, which measured these times" } else { "without xqos" },
            100.0 * self.busy,
            of_ms(self.elapsed_ms)
        );
        text += &table(ATTACHED, &self.clients.iter().collect::<Vec<_>>()).render(width);
        if self.lost > 0 {
            text += &format!("{} trace events were lost: shares are too low\n", self.lost);
        }
        text
    }
}
