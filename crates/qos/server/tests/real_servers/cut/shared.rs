// SPDX-License-Identifier: MIT
//! Random cases in which three clients share windows, pixmaps, contexts, pictures, redirection, damage and more.
//!
//! The messages to clients and the final contents must be those of a stock server that executes whole requests in some
//! order. The test searches for this order, beginning with the order in a trace.

mod requests;
mod server;
mod world;

use super::world::half;
use super::{cutting_setup, number};
use crate::busy::Busy;
use crate::fixture::{Fixture, in_parallel, module, setup, uses_libc_host};
use crate::wire::{Wire, opcode};
use requests::Case;
use server::{Answer, Known, Outcome, Segment, Site, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};
use world::CLIENTS;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_client::Control;
use xqos_core::{ClientId, Fact};
use xqos_lab::server::{Module, ServerKind, Setup};
use xqos_testkit::Random;

/// The level at which DAMAGE reports only that there is damage.
const NON_EMPTY: u8 = 3;
/// A run ends after this many unexplained cases.
const MOST_FAILURES: usize = 5;
/// The maximum number of orders to try.
const ATTEMPTS: usize = 3000;

/// An event of a case, from a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Request(usize),
    Left(usize),
    SliceEnd,
}

struct Trace {
    reader: RingReader,
    bases: BTreeMap<ClientId, u32>,
    /// How often requests of cases were cut, and finished for another client.
    cuts: u64,
    finished: u64,
    _control: Control,
}

impl Trace {
    /// Skips the records before the next case. Busy clients may have overwritten some of them while orders of the last
    /// case were tried.
    fn skip(&mut self) {
        loop {
            match self.reader.read() {
                Next::Record(words) => {
                    if let Entry::Identity { client, base, .. } = Event::decode(words).expect("a record").what {
                        self.bases.insert(client, base);
                    }
                }
                Next::Lost(_) => {}
                Next::Nothing => return,
                Next::Ended => panic!("the trace ended"),
            }
        }
    }

    /// The events of the case that has just ended.
    fn case(&mut self, known: &Known, keeper: u32) -> Vec<Seen> {
        let (mut seen, mut has_begun) = (Vec::new(), false);
        loop {
            let event = match self.reader.read() {
                Next::Record(words) => Event::decode(words).expect("a record").what,
                Next::Lost(records) => panic!("{records} records of the trace were overwritten"),
                Next::Nothing => {
                    std::thread::yield_now();
                    continue;
                }
                Next::Ended => panic!("the trace ended"),
            };
            let of = |client: ClientId| {
                let base = self.bases.get(&client)?;
                known.bases.iter().position(|one| one == base)
            };
            match event {
                Entry::Identity { client, base, .. } => _ = self.bases.insert(client, base),
                Entry::Request { client, request, .. } if self.bases.get(&client) == Some(&keeper) => {
                    if has_begun && request == u32::from(opcode::NO_OPERATION) {
                        (0..CLIENTS).for_each(|client| move_end(&mut seen, client));
                        return seen;
                    }
                    has_begun |= request == u32::from(opcode::GRAB_SERVER);
                }
                Entry::Request { client, request, .. } if request != u32::from(opcode::GET_INPUT_FOCUS) => {
                    seen.extend(of(client).filter(|_| has_begun).map(Seen::Request));
                }
                Entry::Cut { client, .. } => self.cuts += u64::from(has_begun && of(client).is_some()),
                Entry::Finished { client, .. } => self.finished += u64::from(has_begun && of(client).is_some()),
                Entry::Fact(Fact::Disconnected { client }) => {
                    seen.extend(of(client).filter(|_| has_begun).map(Seen::Left));
                }
                Entry::Fact(Fact::Served(_)) if has_begun && seen.last() != Some(&Seen::SliceEnd) => {
                    seen.push(Seen::SliceEnd)
                }
                _ => {}
            }
        }
    }
}

/// The end of a client is recorded before the rest that the server executes first.
fn move_end(seen: &mut [Seen], client: usize) {
    let at = |what| seen.iter().rposition(|&one| one == what);
    let places = at(Seen::Left(client)).zip(at(Seen::Request(client)));
    if let Some((left, last)) = places.filter(|(left, last)| left < last) {
        seen[left..=last].rotate_left(1);
    }
}

/// The same events, but with a rest that was finished in another client's slice before that slice, so that the server
/// does its deferred work after the slice.
fn finished_early(seen: &[Seen]) -> Vec<Seen> {
    let of = |one: &Seen| if let Seen::Request(client) = *one { Some(client) } else { None };
    let slices = seen.split(|&one| one == Seen::SliceEnd).map(|slice| {
        // A rest is finished before the request that it would disturb.
        let served = slice.iter().rev().find_map(of);
        let (rests, others): (Vec<_>, Vec<_>) =
            slice.iter().partition(|one| of(one).is_some_and(|_| of(one) != served));
        rests.into_iter().flat_map(|rest| [rest, Seen::SliceEnd]).chain(others).collect::<Vec<_>>()
    });
    slices.collect::<Vec<_>>().join(&Seen::SliceEnd)
}

/// The steps of a replay in the order of the trace. `kills`: a client that another one killed does not disconnect by
/// itself.
fn steps(case: &Case, seen: &[Seen], in_slices: bool, kills: bool) -> Vec<Step> {
    let (mut steps, mut done, mut is_new) = (Vec::new(), [0; CLIENTS], true);
    for (at, &one) in seen.iter().enumerate() {
        match one {
            Seen::SliceEnd => is_new = true,
            Seen::Left(client) => {
                let is_killed = kills
                    && matches!(seen.get(at + 1), Some(&Seen::Request(by))
                    if case.requests[by].get(done[by]).is_some_and(|request| request[0] == opcode::KILL_CLIENT));
                if case.endings[client].is_some() && !is_killed {
                    add(&mut steps, Step::Leaves(client), in_slices && !is_new);
                }
                is_new = true;
            }
            Seen::Request(client) => {
                done[client] += 1;
                add(&mut steps, Step::Requests(client, 1), in_slices && !is_new);
                is_new = false;
            }
        }
    }
    steps
}

/// Adds a step, if possible in the slice of the previous step.
fn add(steps: &mut Vec<Step>, step: Step, is_in_slice: bool) {
    match (steps.last_mut().filter(|_| is_in_slice), step) {
        (Some(Step::Requests(of, count)), Step::Requests(client, more)) if *of == client => *count += more,
        (Some(last @ &mut Step::Requests(of, count)), Step::Leaves(client)) if of == client => {
            *last = Step::Last(client, count);
        }
        _ => steps.push(step),
    }
}

/// Another order, which keeps the order of each client's own requests: some neighbouring steps are exchanged, or run in
/// other slices. `None` if a client would run while another one holds the server grab.
fn other_order(case: &Case, steps: &[Step], random: &mut Random, has_frames: bool) -> Option<Vec<Step>> {
    let of = |step: &Step| match *step {
        Step::Requests(client, _) | Step::Leaves(client) | Step::Last(client, _) => Some(client),
        Step::Frame => None,
    };
    let mut steps = steps.to_vec();
    for _ in 0..random.below(2 * steps.len()) * random.below(2) {
        let at = random.below(steps.len() - 1);
        if of(&steps[at]) != of(&steps[at + 1]) {
            steps.swap(at, at + 1);
        }
    }
    let (mut holder, mut done) = (None, [0; CLIENTS]);
    for step in &steps {
        let client = of(step)?;
        if holder.is_some_and(|holder| holder != client) && !matches!(step, Step::Leaves(_)) {
            return None;
        }
        match *step {
            Step::Requests(..) => match case.requests[client][done[client]][0] {
                opcode::GRAB_SERVER => holder = Some(client),
                opcode::UNGRAB_SERVER => holder = None,
                _ => {}
            },
            _ => holder = holder.filter(|&holder| holder != client),
        }
        done[client] += 1;
    }
    // The server does its deferred work between two slices. Some requests share a slice with the previous one.
    steps = steps.into_iter().fold(Vec::new(), |mut all, step| {
        add(&mut all, step, random.below(2) == 0);
        all
    });
    if has_frames && random.below(2) == 0 {
        let mut all = with_frame(case, &steps);
        steps = all.swap_remove(random.below(all.len()));
    }
    Some(steps)
}

/// These steps with a frame of Present at each position, except where a client may hold the server grab.
fn with_frame(case: &Case, steps: &[Step]) -> Vec<Vec<Step>> {
    let has_grabs = case.requests.iter().flatten().any(|request| request[0] == opcode::GRAB_SERVER);
    let places = if has_grabs { 0..1 } else { 0..steps.len() + 1 };
    let framed = places.map(|at| {
        let mut steps = steps.to_vec();
        steps.insert(at, Step::Frame);
        steps
    });
    framed.collect()
}

/// The attempt that explained a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Explained {
    attempt: usize,
    is_loose: bool,
}

struct Form {
    cutting: Site,
    stock: Site,
    segment: Segment,
    trace: Trace,
    size: usize,
    _others: (Vec<Busy>, Vec<Wire>),
}

impl Form {
    fn start(setup: Setup, busy: usize, size: usize) -> Form {
        let segment = Segment::new();
        let connect = |fixture: &Fixture| {
            (fixture.control().unwrap(), (0..busy).map(|_| Busy::start(fixture)).collect::<Vec<_>>())
        };
        let (cutting, (control, busy)) = Site::start(setup, &segment, connect);
        let connect = |fixture: &Fixture| (0..=busy.len()).map(|_| fixture.native()).collect::<Vec<_>>();
        let (stock, fillers) = Site::start(Setup::stock(ServerKind::Xvfb), &segment, connect);
        assert_eq!(cutting.known, stock.known, "the same ids and numbers on both servers");
        let reader = control.start_trace(Level::Requests, 1 << 18).unwrap();
        let trace = Trace { reader, bases: BTreeMap::new(), cuts: 0, finished: 0, _control: control };
        Form { cutting, stock, segment, trace, size, _others: (busy, fillers) }
    }

    fn check(&mut self, seed: u64) -> Result<Explained, String> {
        let case = Case::new(&self.cutting.known, seed, self.size);
        self.trace.skip();
        let is = self.cutting.run(&self.segment, &case).expect("each client is answered");
        let seen = self.trace.case(&self.cutting.known, self.cutting.keeper.base);
        for client in 0..CLIENTS {
            let count = seen.iter().filter(|&&one| one == Seen::Request(client)).count();
            if count > case.requests[client].len() {
                return Err(format!(
                    "client {client}: more requests in the trace\n{seen:?}\n{:?}\n{case}",
                    case.endings
                ));
            }
        }
        let early = finished_early(&seen);
        let flags = [(true, true), (false, true), (true, false), (false, false)];
        let orders: Vec<Vec<Step>> = [&seen, &early]
            .into_iter()
            .flat_map(|seen| flags.map(|(in_slices, kills)| steps(&case, seen, in_slices, kills)))
            .collect();
        let has_frames = case.has_frames(&self.cutting.known);
        let mut tried: Vec<Vec<Step>> = Vec::new();
        let (mut random, mut differences) = (Random(seed), Vec::new());
        // The order of the trace, then this order with a frame at each position, then other orders.
        let framed = orders.iter().filter(|_| has_frames).flat_map(|steps| with_frame(&case, steps));
        let likely: Vec<Vec<Step>> = orders.iter().cloned().chain(framed).collect();
        for attempt in 0..ATTEMPTS {
            let other = || other_order(&case, &orders[1 + attempt % 4 * 2], &mut random, has_frames);
            let order = likely.get(attempt).cloned().or_else(other).filter(|order| !tried.contains(order));
            let Some(order) = order else { continue };
            tried.push(order.clone());
            let known = &self.cutting.known;
            let Ok(wanted) = self.stock.replay(&self.segment, &case, &order) else {
                differences.push("a client waits for a grab".into());
                continue;
            };
            let Some(found) = difference(known, &is, &wanted, false) else {
                return Ok(Explained { attempt, is_loose: false });
            };
            if difference(known, &is, &wanted, true).is_none() {
                return Ok(Explained { attempt, is_loose: true });
            }
            differences.push(found);
        }
        differences.sort_by_key(|text| text.starts_with("client"));
        differences.truncate(2);
        Err(format!("{}\n{seen:?}\n{:?}\n{case}", differences.join("\n"), case.endings))
    }
}

/// The first difference between two outcomes. `is_loose`: ignores what cut requests may change: the events of Damage
/// objects of level NonEmpty, and smaller regions of these objects.
fn difference(known: &Known, is: &Outcome, wanted: &Outcome, is_loose: bool) -> Option<String> {
    let short = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| format!("{:02x?}", &bytes[..bytes.len().min(32)]));
    let is_left_out = |bytes: &&Vec<u8>| !is_loose || bytes[0] != known.events[0] || bytes[1] & 0x7f != NON_EMPTY;
    for (client, (is, wanted)) in is.received.iter().zip(&wanted.received).enumerate() {
        let [is, wanted] = [is, wanted].map(|all| all.iter().filter(is_left_out).collect::<Vec<_>>());
        let is_same = |at: usize| match (is.get(at), wanted.get(at)) {
            (Some(is), Some(wanted)) => is_same_message(is, wanted),
            _ => false,
        };
        if let Some(at) = (0..is.len().max(wanted.len())).find(|&at| !is_same(at)) {
            let [is, wanted] = [is, wanted].map(|all| short(all.get(at).copied()));
            return Some(format!("client {client}, message {at}: {is:?} instead of {wanted:?}"));
        }
    }
    if is.contents.len() != wanted.contents.len() {
        return Some(format!("{} answers instead of {}", is.contents.len(), wanted.contents.len()));
    }
    let differs = |(is, wanted): &(&Answer, &Answer)| {
        let is_region = is_loose && is.0.get(..2) == Some(&[known.majors.xfixes, 19]);
        is != wanted && !(is_region && is_within(&is.1, &wanted.1))
    };
    let (is, wanted) = is.contents.iter().zip(&wanted.contents).find(differs)?;
    let at = is.1.iter().zip(&wanted.1).position(|(is, wanted)| is != wanted);
    let [bytes, others] = [is, wanted].map(|one| short(Some(&one.1)));
    let from = at.unwrap_or(0) & !3;
    let values = [is, wanted].map(|one| format!("{:02x?}", &one.1[from.min(one.1.len())..one.1.len().min(from + 16)]));
    Some(format!("{}: {bytes:?} instead of {others:?}, from byte {at:?}: {values:?}", requests::short(&is.0)))
}

/// With cut requests, the region of a Damage object consists of their parts. With whole requests, it is the smallest
/// rectangle around them.
fn is_within(is: &[u8], wanted: &[u8]) -> bool {
    let points = |region: &[u8]| {
        let boxes = region[32..].chunks_exact(8).map(|one| [0, 2, 4, 6].map(|at| half(one, at) as i16));
        let all = boxes
            .flat_map(|[x, y, width, height]| (y..y + height).flat_map(move |y| (x..x + width).map(move |x| (x, y))));
        all.collect::<BTreeSet<_>>()
    };
    is[0] == 1 && wanted[0] == 1 && points(is).is_subset(&points(wanted))
}

/// An event that a cut request causes for its own client may have the number before that of the request.
fn is_same_message(is: &[u8], wanted: &[u8]) -> bool {
    let [is_number, wanted_number] = [is, wanted].map(|bytes| half(bytes, 2));
    let is_late = is[0] > 1 && is_number + 1 == wanted_number;
    is[..2] == wanted[..2] && is[4..] == wanted[4..] && (is_number == wanted_number || is_late)
}

/// Executes random cases, each on servers of this form.
fn check(form: &mut Form, name: &str, cases: u64) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let first = number("XQOS_SHARED_SEED", clock);
    println!("{name}: {cases} cases from seed {first} on");
    let (mut others, mut loose, mut failures) = (0, 0, Vec::new());
    for seed in (0..cases).map(|at| first.wrapping_add(at)) {
        match form.check(seed) {
            Ok(how) => {
                others += u64::from(how.attempt > 0);
                loose += u64::from(how.is_loose);
            }
            Err(text) => {
                println!("{name}, seed {seed}: {text}");
                failures.push(seed);
            }
        }
        assert!(failures.len() < MOST_FAILURES, "{name}: no order explains {failures:?}");
    }
    let Trace { cuts, finished, .. } = form.trace;
    println!("{name}: {others} in another order than that of the trace, {loose} with other damage");
    println!("{name}: {cuts} cuts, {finished} rests finished for another client");
    assert!(failures.is_empty(), "{name}: no order explains {failures:?}");
    assert!(cases < 50 || cuts > 0 && finished > 0, "{name}: {cuts} cuts, {finished} finished");
    form.cutting.fixture.assert_armed();
}

/// A server with a time limit for each part, two busy clients, and large requests.
fn with_part_time(part_us: &str, size: usize) -> Form {
    let mut setup = setup(ServerKind::Xvfb);
    setup.module = Some(Module { slice_us: Some(200), ..module() });
    setup.environment.push(("XQOS_CUT_US".into(), part_us.into()));
    Form::start(setup, 2, size)
}

#[test]
fn a_random_case_with_shared_objects_is_explained_by_an_order_of_whole_requests() {
    let _turn = in_parallel();
    if uses_libc_host() {
        return;
    }
    let cases = number("XQOS_SHARED_CASES", 2000);
    std::thread::scope(|scope| {
        scope.spawn(|| check(&mut Form::start(cutting_setup(), 0, 1), "each part", cases - cases / 10));
        check(&mut with_part_time("250", 400), "on", cases / 20);
        check(&mut with_part_time("50", 400), "0.05ms", cases / 20);
    });
}
