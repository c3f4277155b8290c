// SPDX-License-Identifier: MIT
//! One client sends the same random drawing requests to a server that cuts each of them after each part, and to a stock
//! server. Every reply, error, event and image must be the same, byte for byte.
//!
//! A failure prints the seed of its scene and the fewest requests that show the difference. XQOS_DRAWING_SEED repeats a
//! scene, XQOS_DRAWING_REQUESTS sets how many requests are sent.

mod figures;
mod render;
pub mod scene;

use super::{cutting_setup, number};
use crate::fixture::{Fixture, in_parallel, uses_libc_host};
use crate::wire::{Wire, opcode};
use scene::{Scene, Step, World};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_lab::server::{ServerKind, Setup};

use super::world::{half, message};
use xqos_testkit::Random;

const REQUESTS: u64 = 20_000;
const OF_A_SCENE: usize = 300;
/// The number of requests sent together, so that the trace of their parts fits into the ring.
const AT_A_TIME: usize = 25;
/// Each request that is cut, with its opcodes.
const CUT: [(u8, u8); 11] =
    [(62, 0), (64, 0), (66, 0), (67, 0), (68, 0), (70, 0), (71, 0), (72, 0), (0, 8), (0, 10), (0, 26)];

/// Prints the seed of a scene that fails, whether it shows a difference or makes a server exit.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("XQOS_DRAWING_SEED={} XQOS_DRAWING_REQUESTS=1 repeats it", self.0);
        }
    }
}

/// The two servers, first the one that cuts.
struct Pair {
    wires: [Wire; 2],
    world: World,
}

impl Pair {
    /// Executes these requests on cleared servers. Returns the first one with different results, and the difference.
    fn difference(&mut self, steps: &[&Step]) -> Option<(usize, String)> {
        for wire in &mut self.wires {
            for request in self.world.clear() {
                wire.send(&request);
            }
            received(wire);
        }
        steps.chunks(AT_A_TIME).enumerate().find_map(|(chunk, steps)| {
            let (at, text) = self.difference_in(steps)?;
            Some((chunk * AT_A_TIME + at, text))
        })
    }

    fn difference_in(&mut self, steps: &[&Step]) -> Option<(usize, String)> {
        let first = self.wires[0].sequence();
        let requests = || steps.iter().flat_map(|step| [&step.request, &step.image]).filter(|one| !one.is_empty());
        let bytes: Vec<u8> = requests().flatten().copied().collect();
        self.wires.iter_mut().for_each(|wire| wire.send_many(&bytes, requests().count() as u16));
        let [is, wanted] = self.wires.each_mut().map(received);
        let at = (0..is.len().max(wanted.len())).find(|&at| is.get(at) != wanted.get(at))?;
        let [is, wanted] = [is.get(at), wanted.get(at)];
        let of = half(is.or(wanted)?, 2).wrapping_sub(first);
        // The step whose request or image has this number.
        let mut last = 0;
        let step = steps.iter().position(|step| {
            last += 1 + u16::from(!step.image.is_empty());
            last >= of
        });
        Some((step?, describe(is, wanted)))
    }

    /// Removes the requests that are not needed to show a difference.
    fn shortest<'a>(&mut self, mut steps: Vec<&'a Step>) -> Vec<&'a Step> {
        let mut count = steps.len() / 2;
        while count > 0 {
            let mut at = 0;
            while at < steps.len() {
                let mut fewer = steps.clone();
                fewer.drain(at..(at + count).min(steps.len()));
                match self.difference(&fewer) {
                    Some((last, _)) => steps = fewer[..=last].to_vec(),
                    None => at += count,
                }
            }
            count /= 2;
        }
        steps
    }
}

/// Starts a server with pixmaps of all depths.
pub fn with_all_depths(mut setup: Setup) -> Fixture {
    let depths = scene::DEPTHS.map(|depth| depth.to_string());
    setup.arguments.extend(["-pixdepths".to_owned()].into_iter().chain(depths).map(OsString::from));
    Fixture::start(&setup)
}

/// Everything that the server sends until it has executed all requests.
fn received(wire: &mut Wire) -> Vec<Vec<u8>> {
    wire.send(&message(opcode::GET_INPUT_FOCUS, 0).finish());
    let mut messages = Vec::new();
    loop {
        let mut bytes = wire.message_of_any_kind().expect("a message");
        if bytes[0] == 1 && half(&bytes, 2) == wire.sequence() {
            return messages;
        }
        // Pixels have unused bits in these depths. Drawing may leave any value in them.
        match bytes[..2] {
            [1, 24] => bytes[32..].chunks_exact_mut(4).for_each(|pixel| pixel[3] = 0),
            [1, 15] => bytes[32..].chunks_exact_mut(2).for_each(|pixel| pixel[1] &= 0x7f),
            _ => {}
        }
        messages.push(bytes);
    }
}

fn describe(is: Option<&Vec<u8>>, wanted: Option<&Vec<u8>>) -> String {
    let ([Some(is), Some(wanted)], short) = ([is, wanted], |bytes: &Vec<u8>| bytes[..32].to_vec()) else {
        return format!("{:x?} instead of {:x?}", is.map(|is| &is[..32]), wanted.map(|wanted| &wanted[..32]));
    };
    if is[..32] != wanted[..32] {
        return format!("{:x?} instead of {:x?}", short(is), short(wanted));
    }
    let differs: Vec<usize> = (0..is.len()).filter(|&at| is[at] != wanted[at]).collect();
    let at = differs[0];
    format!("{} of {} bytes, first byte {at}: {:x} instead of {:x}", differs.len(), is.len(), is[at], wanted[at])
}

/// Adds the requests in the trace that were cut, and have not been counted.
fn count_cuts(reader: &mut RingReader, cut: &mut BTreeMap<(u8, u8), u64>) {
    loop {
        match reader.read() {
            Next::Record(words) => {
                if let Entry::Cut { request, done: 1, .. } = Event::decode(words).expect("a record").what {
                    *cut.entry((request as u8, (request >> 16) as u8)).or_default() += 1;
                }
            }
            Next::Lost(records) => panic!("{records} records of the trace were overwritten"),
            Next::Nothing | Next::Ended => return,
        }
    }
}

#[test]
fn random_drawing_in_parts_has_the_results_of_whole_requests() {
    let _turn = in_parallel();
    if uses_libc_host() {
        return;
    }
    let [cutting, stock] = [cutting_setup(), Setup::stock(ServerKind::Xvfb)].map(with_all_depths);
    let mut wires = [&cutting, &stock].map(Fixture::native);
    let [world, same] = wires.each_mut().map(World::new);
    assert_eq!(world, same, "the same ids on both servers");
    let render = world.render;
    let mut pair = Pair { wires, world };
    let control = cutting.control().unwrap();
    let mut reader = control.start_trace(Level::Requests, 1 << 18).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (mut seed, wanted) = (number("XQOS_DRAWING_SEED", now), number("XQOS_DRAWING_REQUESTS", REQUESTS));
    eprintln!("the first seed is {seed}");
    let (mut sent, mut cut) = (0, BTreeMap::new());
    while sent < wanted {
        let _repeat = Repeat(seed);
        let scene = Scene::new(&pair.world, Random(seed), OF_A_SCENE);
        let steps: Vec<&Step> = scene.steps.iter().collect();
        if let Some((at, text)) = pair.difference(&steps) {
            let shortest = pair.shortest(steps[..=at].to_vec());
            let [last] = [pair.difference(&shortest)];
            for step in &shortest {
                eprintln!("{step:?}");
            }
            panic!("request {at}: {text}; {last:?} after these {} requests", shortest.len());
        }
        count_cuts(&mut reader, &mut cut);
        sent += steps.len() as u64;
        seed = Random(seed).next();
    }
    eprintln!("{sent} requests, cut: {cut:?}");
    let enough = wanted.min(REQUESTS) / 150;
    for (major, minor) in CUT {
        let count = cut.get(&(if major == 0 { render } else { major }, minor)).copied().unwrap_or(0);
        assert!(count >= enough, "request {major}, {minor} was cut {count} times");
    }
}
