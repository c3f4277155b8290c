//! How fast a capture is read: a connection of five million requests, made here, against the machine's own reading of it.
//!
//! `cargo run --release -p xqos-wire --example throughput -- [REQUESTS] [TURNS]`
//!
//! In each turn the file is read twice, in alternating order: once only by summing its bytes, once through all that a
//! capture goes through. Times are this process's own on the processor, so that others on the machine disturb them less.

#[path = "../tests/packets/mod.rs"]
mod packets;

use packets::{Order, Talk, query_extension, reply, request};
use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::Path;
use xqos_wire::capture::Writer;
use xqos_wire::observe::{ConnectionId, Kind, Message, Observer};
use xqos_wire::session::{Session, read};

/// What a packet of Ethernet carries.
const SEGMENT_BYTES: usize = 1448;
/// What the kernel counts a process's time in.
const TICK_SECONDS: f64 = 0.01;

#[derive(Default)]
struct Counter {
    requests: u64,
    answered: u64,
    last: u64,
}

impl Observer for Counter {
    fn message(&mut self, _id: ConnectionId, message: &Message<'_>) {
        match message.kind {
            Kind::Request => self.requests += 1,
            Kind::Reply if message.name == "GetInputFocus" => {
                (self.answered, self.last) = (self.answered + 1, message.sequence)
            }
            _ => {}
        }
    }
}

/// Drawing as toolkits do it: requests of 12 to 120 bytes, and every hundredth waits for its reply.
fn write(path: &Path, requests: u64) {
    let order = Order::Little;
    let mut writer = Writer::new(BufWriter::new(File::create(path).unwrap()), "throughput").unwrap();
    let mut talk = Talk::new();
    talk.open_x(order).client(&query_extension(order, "RENDER")).server(&packets::extension_reply(
        order,
        1,
        [139, 0, 142],
    ));
    let mut waiting = Vec::new();
    for sequence in 2..=requests {
        match sequence % 100 {
            0 => waiting.extend(request(order, 43, 0, 1)),
            it if it % 3 == 0 => waiting.extend(request(order, 139, 26, 7)),
            it if it % 7 == 0 => waiting.extend(request(order, 139, 23, 30)),
            it if it % 2 == 0 => waiting.extend(request(order, 70, 0, 5)),
            _ => waiting.extend(request(order, 56, 0, 4)),
        }
        if sequence % 100 == 0 {
            waiting.chunks(SEGMENT_BYTES).for_each(|part| _ = talk.client(part));
            waiting.clear();
            talk.server(&reply(order, sequence, 0, 0));
        }
        for packet in talk.packets.drain(..) {
            writer.write(&packet.record()).unwrap();
        }
    }
    writer.flush().unwrap();
}

fn sum(path: &Path) -> u64 {
    let (mut file, mut buffer, mut sum) = (File::open(path).unwrap(), vec![0; 1 << 20], 0_u64);
    loop {
        let length = file.read(&mut buffer).unwrap();
        if length == 0 {
            return sum;
        }
        sum = sum.wrapping_add(buffer[..length].iter().map(|&byte| u64::from(byte)).sum());
    }
}

/// Seconds of this process on the processor: in itself, and in the kernel.
fn processor_seconds() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [11, 12].map(|field: usize| fields[field].parse::<f64>().unwrap() * TICK_SECONDS)
}

fn timed(work: impl FnOnce()) -> [f64; 2] {
    let before = processor_seconds();
    work();
    let after = processor_seconds();
    [after[0] - before[0], after[1] - before[1]]
}

fn peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() / 1024.0
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let (requests, turns) = (arguments.next().unwrap_or(5_000_000), arguments.next().unwrap_or(5));
    let path = std::env::temp_dir().join(format!("xqos-throughput-{}.pcapng", std::process::id()));
    write(&path, requests);
    let megabytes = fs::metadata(&path).unwrap().len() as f64 / 1e6;
    println!("{requests} requests in {megabytes:.0} MB");
    for turn in 0..turns {
        let mut counter = Counter::default();
        let mut times = [[0.0; 2]; 2];
        for step in [turn % 2, 1 - turn % 2] {
            times[step as usize] = match step {
                0 => timed(|| assert_ne!(sum(&path), 0)),
                _ => timed(|| _ = read(&path, Session::new(vec![&mut counter])).unwrap()),
            };
        }
        let [plain, whole] = times.map(|[own, kernel]| own + kernel);
        assert_eq!(
            (counter.requests, counter.answered, counter.last),
            (requests, requests / 100, requests / 100 * 100)
        );
        let own = times[1][0];
        println!(
            "{:.0} MB/s ({:.0} without the kernel's part), {:.1} x the time of summing",
            megabytes / whole,
            megabytes / own,
            whole / plain
        );
    }
    println!("{:.0} MB of memory at most", peak_megabytes());
    fs::remove_file(&path).unwrap();
}
