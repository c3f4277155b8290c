// SPDX-License-Identifier: MIT
//! Tests the emulated link in real namespaces, measured by ping and iperf3.
//!
//! A test is skipped with a message if the kernel permits no namespaces or a program is not installed.
//!
//! Tests that measure do not run in parallel. They subtract the machine's own delay, measured on a link without delay,
//! and compare the fastest of many packets: load can delay a packet, but never speed it up.

use serde_json::Value;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xqos_wire::link::log::{LogEntry, LogReader, LoggedPacket, PacketFate};
use xqos_wire::link::shape::{Queue, Shape};
use xqos_wire::link::{Error, Link, LinkSettings, Side};
use xqos_wire::observe::Direction;

const MS: u64 = 1_000_000;
/// IP length of a ping: 20 bytes of IP, 8 of ICMP, 56 of data.
const PING_BYTES: u64 = 84;
/// Number of turns with at least [`PINGS`] pings each.
const TURNS: u32 = 4;
const PINGS: usize = 31;

/// Starts a link, or prints why this machine permits none and returns `None`.
fn link(settings: &LinkSettings) -> Option<Link> {
    match Link::start(settings) {
        Ok(link) => Some(link),
        Err(error @ (Error::Namespace(_) | Error::Device(_))) => left_out(&error.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

fn left_out<T>(why: &str) -> Option<T> {
    xqos_testkit::left_out(why);
    None
}

fn log_file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("xqos-link-{name}-{}.log", std::process::id()))
}

fn mbit(megabits: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(megabits * 1_000_000)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Excludes other tests that measure while the guard lives.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends pings until enough are answered, however late. Returns their round trips in ms, as ping prints them, and the
/// number of pings that were sent.
fn round_trips_ms(link: &Link) -> (Vec<f64>, u64) {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-c", &PINGS.to_string(), "-i", "0.02", "-w", "60", "10.0.0.1"]);
    let output = link.command_in(Side::Client, &mut ping).output().expect("ping runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
    let times: Vec<f64> = text.lines().filter_map(time).collect();
    assert!(times.len() >= PINGS, "{text}");
    let sent = |line: &str| line.split_once(" packets transmitted")?.0.parse().ok();
    (times, text.lines().find_map(sent).expect("ping prints the count"))
}

#[test]
fn ping_measures_the_delay_within_0_3_ms() {
    if xqos_testkit::program("ping").is_none() {
        return;
    }
    let _machine = alone();
    let Some(near) = link(&LinkSettings::default()) else { return };
    // ping prints tenths of a millisecond below 100 ms, and whole milliseconds above.
    for (delay_ns, rate) in [(MS, None), (10 * MS, mbit(10)), (40 * MS, mbit(1))] {
        let far = link(&Shape { delay_ns, rate, ..Shape::default() }.into()).expect("there was one before");
        let sending_ns = rate.map_or(0, |rate| PING_BYTES * 8 * 1000 * MS / rate);
        let expected_ms = (delay_ns + sending_ns) as f64 / 1e6;
        let mut quickest = [f64::INFINITY; 2];
        // Alternate between the links, so that both are measured under the same load.
        for _ in 0..TURNS {
            let [far, near] = [&far, &near].map(|link| least(&round_trips_ms(link).0));
            quickest = [quickest[0].min(far), quickest[1].min(near)];
        }
        let off_ms = (quickest[0] - quickest[1]) / 2.0 - expected_ms;
        assert!(off_ms.abs() < 0.3, "the quickest ping is {off_ms:+.3} ms off {expected_ms:.3} ms one way");
    }
}

/// Sends at least `bytes` by TCP as fast as the link allows. Returns the number of bytes received.
fn transfer(link: &Link, bytes: u64) -> u64 {
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1", "-J"]).stdout(Stdio::piped());
    let server = link.command_in(Side::Server, &mut server).spawn().expect("iperf3 starts");
    let listens = || link.server_listens(5201).expect("the ports can be read");
    xqos_testkit::wait_for("iperf3 listens", Duration::from_secs(20), listens);
    let mut client = Command::new("iperf3");
    client.args(["-c", "10.0.0.1", "-l", "2K", "-n", &bytes.to_string()]).stdout(Stdio::null());
    assert!(link.command_in(Side::Client, &mut client).status().expect("iperf3 runs").success());
    let said = server.wait_with_output().expect("iperf3 exits after one test").stdout;
    let said: Value = serde_json::from_slice(&said).expect("JSON");
    said["end"]["sum_received"]["bytes"].as_u64().expect("bytes")
}

/// Uses the times of the link's own log, which do not depend on the load.
#[test]
fn a_bulk_transfer_sends_packets_back_to_back_at_the_link_rate() {
    if xqos_testkit::program("iperf3").is_none() {
        return;
    }
    for (megabits, bytes) in [(1, 500_000), (10, 1_000_000), (100, 10_000_000)] {
        let file = log_file(&format!("bulk-{megabits}"));
        // The queue is long enough that TCP's reaction to a loss does not empty it.
        let queue = Some(Queue::Bytes(20_000 * megabits.max(5)));
        let delay_ns = 2 * MS;
        let shape = Shape { rate: mbit(megabits), delay_ns, queue, ..Shape::default() };
        let settings = LinkSettings { shape, log: Some(file.clone()), ..LinkSettings::default() };
        let Some(link) = link(&settings) else { return };
        let received = transfer(&link, bytes);
        link.finish().expect("the link ends cleanly");
        let packets = packets(&file, Direction::Requests);
        std::fs::remove_file(&file).unwrap();
        let (mut free_ns, mut delivered, mut queued) = (0, 0, 0);
        for packet in packets.iter().filter(|packet| packet.outcome == PacketFate::Delivered) {
            let (start_ns, end_ns) = packet.sent_ns.expect("a delivered packet was sent");
            assert_eq!(end_ns - start_ns, u64::from(packet.bytes) * 8 * 1000 / megabits, "{packet:?}");
            assert_eq!(
                start_ns,
                packet.arrived_ns.max(free_ns),
                "after the previous packet, and without a pause: {packet:?}"
            );
            assert!(packet.delivered_ns >= Some(end_ns + delay_ns), "{packet:?}");
            queued += usize::from(start_ns > packet.arrived_ns);
            free_ns = end_ns;
            delivered += u64::from(packet.bytes);
        }
        println!("{megabits} Mb/s: {received} bytes received, {delivered} carried in {} packets", packets.len());
        // iperf3 ends when everything is sent, before everything has arrived.
        assert!(received > bytes / 4 && delivered > received, "{received} received, {delivered} carried");
        // Otherwise the sender would not have kept the link busy, and the test would prove nothing.
        assert!(queued > packets.len() / 10, "{queued} of {} had to wait", packets.len());
    }
}

fn packets(log: &Path, direction: Direction) -> Vec<LoggedPacket> {
    let entries = LogReader::open(log).expect("a log").map(|entry| entry.expect("an entry"));
    entries
        .filter_map(|entry| match entry {
            LogEntry::Packet(record) if record.direction == direction => Some(record),
            _ => None,
        })
        .collect()
}

#[test]
fn the_log_agrees_with_ping() {
    if xqos_testkit::program("ping").is_none() {
        return;
    }
    if link(&LinkSettings::default()).is_none() {
        return;
    }
    let _machine = alone();
    let file = log_file("ping");
    let shape = Shape { rate: mbit(1), delay_ns: 5 * MS, ..Shape::default() };
    let settings = LinkSettings { shape, log: Some(file.clone()), ..LinkSettings::default() };
    let mut quickest_ms = f64::INFINITY;
    for _ in 0..TURNS {
        let link = link(&settings).expect("there was one before");
        let (seen_ms, sent) = round_trips_ms(&link);
        let [requests, replies] = link.finish().expect("the link ends cleanly");
        // ping does not wait for replies to packets that it sent while the link was late.
        let answered = seen_ms.len() as u64..=requests.packets;
        assert!(answered.contains(&replies.packets) && requests.packets <= sent, "{sent} of {requests:?}, {replies:?}");
        assert_eq!(requests.bytes, requests.packets * PING_BYTES);
        let (there, back) = (packets(&file, Direction::Requests), packets(&file, Direction::Replies));
        std::fs::remove_file(&file).unwrap();
        let logged_ms = there.iter().zip(&back).map_while(|(there, back)| {
            assert_eq!(there.sent_ns.map(|(start, end)| end - start), Some(PING_BYTES * 8 * 1000));
            Some((back.delivered_ns? - there.arrived_ns) as f64 / 1e6)
        });
        // ping shows whole milliseconds from 100 ms on.
        let pings = seen_ms.into_iter().zip(logged_ms).filter(|&(seen, _)| seen < 100.0);
        let beyond_ms: Vec<f64> = pings.map(|(seen, logged)| seen - logged).collect();
        quickest_ms = quickest_ms.min(least(&beyond_ms));
    }
    assert!(quickest_ms.abs() < 0.3, "ping and the log differ by {quickest_ms:.3} ms for the quickest");
}

#[test]
fn the_log_distinguishes_drops_from_losses() {
    if xqos_testkit::program("ping").is_none() {
        return;
    }
    let flood = |shape: Shape| {
        let file = log_file(&format!("flood-{}", shape.loss_ppm));
        let link = link(&LinkSettings { shape, log: Some(file.clone()), ..LinkSettings::default() })?;
        let mut ping = Command::new("ping");
        ping.args(["-n", "-q", "-c", "50", "-l", "50", "-W", "1", "-s", "1472", "10.0.0.1"]);
        link.command_in(Side::Client, ping.stdout(Stdio::null())).status().expect("ping runs");
        let [requests, _] = link.finish().expect("the link ends cleanly");
        let outcomes = packets(&file, Direction::Requests).into_iter().map(|packet| packet.outcome).collect::<Vec<_>>();
        std::fs::remove_file(&file).unwrap();
        let count = |outcome| outcomes.iter().filter(|&&other| other == outcome).count() as u64;
        assert_eq!((count(PacketFate::Lost), count(PacketFate::Dropped)), (requests.lost, requests.dropped));
        Some((requests.packets, requests.lost, requests.dropped))
    };
    let short = Shape { rate: mbit(1), queue: Some(Queue::Packets(2)), ..Shape::default() };
    let Some((packets, lost, dropped)) = flood(short) else { return };
    assert!(packets == 50 && lost == 0 && dropped > 20, "{packets} packets, {lost} lost, {dropped} dropped");
    let bad = Shape { loss_ppm: 1_000_000, ..Shape::default() };
    assert_eq!(flood(bad), Some((50, 50, 0)));
}

#[test]
fn every_process_on_a_link_ends_with_it() {
    let Some(link) = link(&LinkSettings::default()) else { return };
    let file = log_file("pid");
    // An orphan in its own session that ignores SIGTERM, like a daemon.
    let script = format!("setsid sh -c 'trap \"\" TERM; echo $$ >{}; while :; do sleep 0.1; done' &", file.display());
    let mut command = Command::new("sh");
    link.command_in(Side::Server, command.args(["-c", &script])).status().expect("a shell runs");
    let pid = xqos_testkit::find("the daemon starts", Duration::from_secs(20), || {
        std::fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok()
    });
    std::fs::remove_file(&file).unwrap();
    let is_there = || PathBuf::from(format!("/proc/{pid}/cwd")).read_link().is_ok();
    assert!(is_there());
    link.finish().expect("the link ends cleanly");
    assert!(!is_there(), "pid {pid} outlived its link");
}

#[test]
fn two_links_have_separate_networks() {
    let (Some(one), Some(other)) = (link(&LinkSettings::default()), link(&LinkSettings::default())) else { return };
    let place = |link: &Link, side| {
        let mut command = Command::new("readlink");
        let output = link.command_in(side, command.arg("/proc/self/ns/net")).output().expect("readlink runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let mut places = vec![
        place(&one, Side::Client),
        place(&one, Side::Server),
        place(&other, Side::Client),
        place(&other, Side::Server),
    ];
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 4, "{places:?}");
}
