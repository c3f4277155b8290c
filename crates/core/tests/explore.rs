//! scratch
#![allow(dead_code)]
#[path = "guarantees/server.rs"]
mod server;
use server::*;
use xqos_core::*;
#[test]
fn x() {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 0);
    for _ in 0..12 { server.connect(Load::backlogged(15*US..=60*US)); }
    let behaviour = Behaviour::Periodic { period_ns: 10 * MS, requests: 1 };
    let light = server.connect(Load { start_ns: 50 * MS, ..Load::new(behaviour, 200 * US..=300 * US) });
    server.run_until(5 * SECOND);
    let mut n = 0;
    for (i, r) in server.runs.iter().enumerate() {
        if r.client == light && r.end_ns - r.arrived_ns > 400 * US { n += 1; if n <= 3 {
            println!("{r:?} resp {}", r.end_ns - r.arrived_ns);
            let first = server.runs[..i].iter().rposition(|x| x.start_ns < r.arrived_ns).unwrap();
            for s in server.runs[first].slice.saturating_sub(3)..=r.slice { println!("   slice {s}: {:?}", server.slices[s]); }
        } }
    }
    println!("{n}");
}
