// SPDX-License-Identifier: MIT
//! An idle server stays asleep: wakeups that xqos adds while nothing happens.
//!
//! A thread that is woken runs and goes to sleep again, which the kernel counts as a voluntary context switch of that
//! thread (an involuntary one if it was interrupted before). So the switches of all threads of the server between two
//! readings of /proc/PID/task/TID/status are its wakeups in that time. A stock server and one with xqos are watched in the
//! same seconds: without clients, and with clients that have drawn something and then fell silent. Reading /proc wakes
//! nobody.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::process::ThreadSwitches;
use crate::server::Server;
use crate::study::{Goal, Study, Table, Verdict};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;

const CLIENTS: usize = 20;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Idle {
    watched: Vec<Watched>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Watched {
    clients: usize,
    server: String,
    seconds: f64,
    before: Vec<ThreadSwitches>,
    after: Vec<ThreadSwitches>,
}

impl Measure for Idle {
    const NAME: &'static str = "idle";
    const ABOUT: &'static str = "wakeups of an idle server, with and without xqos, in 10 s";
    const TAKES: Takes = Takes { quick_s: 7, full_s: 25 };

    const PAIRED: bool = false;

    fn run(bench: &Bench) -> Result<Self> {
        let time = bench.time(10_000, 2000);
        let servers = [("stock", bench.stock(256)?), ("xqos", bench.xqos(bench.module(), 256)?)];
        // What a server does once after its start and after its first clients is not idleness.
        let settle = Duration::from_secs(1);
        std::thread::sleep(settle);
        bench.say(format!("no clients, {} s", time.as_secs()));
        let mut watched = watch(&servers, 0, time)?;
        let mut connections = Vec::new();
        for (_, server) in &servers {
            for _ in 0..CLIENTS {
                connections.push(draw_once(server)?);
            }
        }
        std::thread::sleep(settle);
        bench.say(format!("{CLIENTS} silent clients, {} s", time.as_secs()));
        watched.extend(watch(&servers, CLIENTS, time)?);
        drop(connections);
        Ok(Idle { watched })
    }

    fn study(&self) -> Study {
        let head = ["clients", "server", "thread", "voluntary switches", "involuntary switches"];
        let mut table = Table::new("Context switches of each thread of the server in the measured time", &head);
        for watched in &self.watched {
            for (name, voluntary, involuntary) in watched.threads() {
                let numbers = [voluntary.to_string(), involuntary.to_string()];
                let names = [watched.clients.to_string(), watched.server.clone(), name];
                table.rows.push(names.into_iter().chain(numbers).collect());
            }
        }
        let verdicts = [0, CLIENTS].iter().filter_map(|&clients| self.verdict(clients)).collect();
        Study {
            title: "An idle server".to_owned(),
            question: "How often does xqos wake a server that has nothing to do?".to_owned(),
            answer: String::new(),
            verdicts,
            tables: vec![table],
            charts: Vec::new(),
            notes: vec![
                "How it was counted. A thread that wakes up and sleeps again has made a context switch; the kernel \
                 counts them for each thread (/proc/PID/task/TID/status, voluntary_ctxt_switches and \
                 nonvoluntary_ctxt_switches). Both servers were read before and after the same seconds. Wakeups by xqos \
                 are those of the server with xqos less those of the stock server."
                    .to_owned(),
            ],
        }
    }
}

impl Idle {
    fn verdict(&self, clients: usize) -> Option<Verdict> {
        let find =
            |name: &str| self.watched.iter().find(|watched| watched.clients == clients && watched.server == name);
        let (stock, xqos) = (find("stock")?, find("xqos")?);
        let added = xqos.total() as f64 - stock.total() as f64;
        let what = format!("wakeups by xqos in {} s, {clients} clients", xqos.seconds.round());
        Some(Verdict::of_value(what, added, "wakeups", Goal::of(Key("idle.wakeups"))))
    }
}

impl Watched {
    /// Name, voluntary and involuntary switches of each thread; one that came in between began at 0.
    fn threads(&self) -> Vec<(String, u64, u64)> {
        let before: BTreeMap<u32, (u64, u64)> =
            self.before.iter().map(|thread| (thread.tid, (thread.voluntary, thread.involuntary))).collect();
        let since = |thread: &ThreadSwitches| {
            let (voluntary, involuntary) = before.get(&thread.tid).copied().unwrap_or_default();
            (thread.name.clone(), thread.voluntary - voluntary, thread.involuntary - involuntary)
        };
        self.after.iter().map(since).collect()
    }

    fn total(&self) -> u64 {
        self.threads().iter().map(|(_, voluntary, involuntary)| voluntary + involuntary).sum()
    }
}

fn watch(servers: &[(&str, Server)], clients: usize, time: Duration) -> Result<Vec<Watched>> {
    let read = |(_, server): &(&str, Server)| server.switches();
    let before: Vec<_> = servers.iter().map(read).collect::<Result<_>>()?;
    std::thread::sleep(time);
    let after: Vec<_> = servers.iter().map(read).collect::<Result<_>>()?;
    let names = servers.iter().map(|(name, _)| (*name).to_owned());
    let watched = names.zip(before.into_iter().zip(after)).map(|(server, (before, after))| Watched {
        clients,
        server,
        seconds: time.as_secs_f64(),
        before,
        after,
    });
    Ok(watched.collect())
}

fn draw_once(server: &Server) -> Result<RustConnection> {
    let connection = server.connect()?;
    let root = connection.setup().roots[0].root;
    for x in 0..100 {
        connection.clear_area(false, root, x, 0, 10, 10)?;
    }
    connection.get_input_focus()?.reply()?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(tid: u32, voluntary: u64) -> ThreadSwitches {
        ThreadSwitches { tid, name: "Xvfb".to_owned(), voluntary, involuntary: 1 }
    }

    #[test]
    fn only_what_xqos_adds_counts_against_it() {
        let watched = |server: &str, after| Watched {
            clients: 0,
            server: server.to_owned(),
            seconds: 10.0,
            before: vec![switches(1, 100)],
            after,
        };
        let stock = watched("stock", vec![switches(1, 103)]);
        let xqos = watched("xqos", vec![switches(1, 103), switches(2, 4)]);
        let study = Idle { watched: vec![stock, xqos] }.study();
        // A thread that came meanwhile has made all its switches in that time.
        assert_eq!((study.verdicts.len(), study.verdicts[0].value), (1, 5.0));
    }
}
