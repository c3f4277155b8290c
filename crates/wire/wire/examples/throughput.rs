// SPDX-License-Identifier: MIT
//! Measures how fast a capture with five million requests is read, compared with summing its bytes.
//!
//! `cargo run --release -p xqos-wire --example throughput -- [REQUESTS] [TURNS]`
//!
//! Each turn measures three steps, in alternating order: summing the bytes of the file, decoding the capture, and
//! decoding with the whole analysis. If tshark is installed, it also reads the file once. All times are
//! processor times, which depend less on other load.

#[path = "../tests/packets/mod.rs"]
mod packets;

use packets::{Order, Talk, query_extension, reply, request};
use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use xqos_wire::analysis::Analysis;
use xqos_wire::capture::CaptureWriter;
use xqos_wire::observe::{ConnectionId, Kind, Message, Observer};
use xqos_wire::session::{Session, read};

/// TCP payload of an Ethernet packet.
const SEGMENT_BYTES: usize = 1448;
/// Unit of process times in /proc.
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

/// Writes drawing requests like those of toolkits: 12 to 120 bytes, every hundredth with a reply that is awaited.
fn write(path: &Path, requests: u64) {
    let order = Order::Little;
    let mut writer = CaptureWriter::new(BufWriter::new(File::create(path).unwrap()), "throughput").unwrap();
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

/// Processor seconds in user and in kernel mode, first of this process, then of its finished children.
fn processor_seconds() -> [f64; 4] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [11, 12, 13, 14].map(|field: usize| fields[field].parse::<f64>().unwrap() * TICK_SECONDS)
}

fn timed(work: impl FnOnce()) -> [f64; 2] {
    let before = processor_seconds();
    work();
    let after = processor_seconds();
    [0, 1].map(|place: usize| after[place] + after[place + 2] - before[place] - before[place + 2])
}

/// Processor seconds that tshark needs for some fields of each packet; `None` if it is not installed.
fn tshark(path: &Path) -> Option<f64> {
    let mut command = Command::new("tshark");
    command.args([
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "x11.opcode",
        "-e",
        "x11.reply-sequencenumber",
        "-r",
    ]);
    command.arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    let mut has_read = false;
    let [own, kernel] = timed(|| has_read = command.status().is_ok_and(|status| status.success()));
    has_read.then_some(own + kernel)
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
    let mut analysed = Vec::new();
    for turn in 0..turns {
        let mut counter = Counter::default();
        let mut times = [[0.0; 2]; 3];
        for step in 0..3 {
            let step = if turn % 2 == 0 { step } else { 2 - step };
            times[step] = match step {
                0 => timed(|| assert_ne!(sum(&path), 0)),
                1 => timed(|| _ = read(&path, Session::new(vec![&mut counter])).unwrap()),
                _ => timed(|| _ = read(&path, Session::new(vec![&mut Analysis::default()])).unwrap()),
            };
        }
        let [plain, whole, analysis] = times.map(|[own, kernel]| own + kernel);
        assert_eq!(
            (counter.requests, counter.answered, counter.last),
            (requests, requests / 100, requests / 100 * 100)
        );
        println!(
            "{:.0} MB/s ({:.0} without the kernel's part), {:.1} x the time of summing; analysed at {:.0} MB/s",
            megabytes / whole,
            megabytes / times[1][0],
            whole / plain,
            megabytes / analysis,
        );
        analysed.push(analysis);
    }
    println!("{:.0} MB of memory at most", peak_megabytes());
    analysed.sort_by(f64::total_cmp);
    match tshark(&path).zip(analysed.get(analysed.len() / 2)) {
        Some((tshark, ours)) => {
            println!("tshark took {tshark:.1} s, {:.0} x the analysis's {ours:.2} s", tshark / ours)
        }
        None => println!("tshark is not installed: not compared"),
    }
    fs::remove_file(&path).unwrap();
}
