// SPDX-License-Identifier: MIT
//! Memory that xqos takes in the server: once, and for each client.
//!
//! Two new servers for each turn, one of them with xqos, are read with no client and with 500 that are connected and
//! silent (/proc/PID/smaps_rollup). Resident memory (RSS) counts the module's file too, which is shared with other servers
//! and can be dropped; private dirty memory is what cannot. The goal is held against the larger figure, RSS. The
//! difference of two processes has noise of some pages: hence several turns and medians.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::process::Memory as Used;
use crate::server::Server;
use crate::statistics::Spread;
use crate::study::{Goal, Study, Table, Verdict, figure, spread_figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use x11rb::rust_connection::RustConnection;

const CLIENTS: usize = 500;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    clients: usize,
    turns: Vec<Turn>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Turn {
    stock: Growth,
    xqos: Growth,
    /// What the module says of itself, with all clients connected.
    reported_bytes: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Growth {
    empty: Used,
    full: Used,
}

impl Measure for Memory {
    const NAME: &'static str = "memory";
    const ABOUT: &'static str = "memory that xqos takes in the server, and for each of 500 clients";
    const TAKES: Takes = Takes { quick_s: 2, full_s: 10 };

    fn run(bench: &Bench) -> Result<Self> {
        let mut turns = Vec::new();
        for turn in 0..bench.pairs {
            bench.say(format!("turn {} of {}", turn + 1, bench.pairs));
            let (stock, xqos) = (bench.stock(1024)?, bench.xqos(bench.module(), 1024)?);
            let (stock, _) = Growth::measure(&stock)?;
            let (growth, connections) = Growth::measure(&xqos)?;
            let reported_bytes = xqos.control()?.server_info()?.memory_bytes;
            drop(connections);
            turns.push(Turn { stock, xqos: growth, reported_bytes });
        }
        Ok(Memory { clients: CLIENTS, turns })
    }

    fn study(&self) -> Study {
        type Figure = fn(&Used) -> u64;
        let figures: [(&str, Figure); 3] =
            [("RSS", |used| used.rss_kb), ("PSS", |used| used.pss_kb), ("private dirty", |used| used.private_dirty_kb)];
        let head = ["memory", "stock KB", "xqos KB", "added KB", "added per client KB"];
        let title = format!("Server without clients, and what each of {} clients adds", self.clients);
        let mut table = Table::new(title, &head);
        for (name, figure_of) in figures {
            let empty = |side: fn(&Turn) -> &Growth| {
                Spread::of(self.turns.iter().map(|turn| figure_of(&side(turn).empty) as f64)).median
            };
            table.rows.push(vec![
                name.to_owned(),
                figure(empty(|turn| &turn.stock)),
                figure(empty(|turn| &turn.xqos)),
                spread_figure(&self.added(figure_of)),
                spread_figure(&self.added_per_client(figure_of)),
            ]);
        }
        let own = Spread::of(self.turns.iter().map(|turn| f64::from(turn.reported_bytes) / 1024.0));
        let rss = figures[0].1;
        Study {
            title: "Memory in the server".to_owned(),
            question: "How much memory does xqos take in the server, once and for each client?".to_owned(),
            answer: String::new(),
            verdicts: vec![
                Verdict::of_spread("memory added (RSS)", self.added(rss), "KB", Goal::of(Key("memory.once"))),
                Verdict::of_spread(
                    "per client (RSS)",
                    self.added_per_client(rss),
                    "KB",
                    Goal::of(Key("memory.per_client")),
                ),
                Verdict::of_spread("the module's own account", own, "KB", Goal::Reported),
            ],
            tables: vec![table],
            charts: Vec::new(),
            notes: vec![
                "How it was measured. /proc/PID/smaps_rollup of two new Xvfb of 1,024 clients, one with xqos, without \
                 clients and with the clients connected and silent. RSS holds the module's file as well, of which \
                 several servers share one copy."
                    .to_owned(),
            ],
        }
    }
}

impl Memory {
    fn added(&self, figure: fn(&Used) -> u64) -> Spread {
        Spread::of(self.turns.iter().map(|turn| figure(&turn.xqos.empty) as f64 - figure(&turn.stock.empty) as f64))
    }

    fn added_per_client(&self, figure: fn(&Used) -> u64) -> Spread {
        let grown = |growth: &Growth| figure(&growth.full) as f64 - figure(&growth.empty) as f64;
        Spread::of(self.turns.iter().map(|turn| (grown(&turn.xqos) - grown(&turn.stock)) / self.clients as f64))
    }
}

impl Growth {
    /// With the connections, which are open still.
    fn measure(server: &Server) -> Result<(Growth, Vec<RustConnection>)> {
        // The first client makes a server touch what it needs once.
        server.version()?;
        let empty = server.memory()?;
        let connections = (0..CLIENTS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
        let full = server.memory()?;
        Ok((Growth { empty, full }, connections))
    }
}
