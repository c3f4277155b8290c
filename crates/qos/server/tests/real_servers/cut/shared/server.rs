// SPDX-License-Identifier: MIT
//! A server on which cases are executed, and the messages that clients receive there.

use super::super::world::{half, message, word};
use super::requests::{Case, Ending};
use super::world::{CLIENTS, SELECTIONS, pair, request};
use crate::fixture::Fixture;
use crate::wire::{Wire, opcode};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::ptr::{null, null_mut};
use std::time::Duration;
use xqos_lab::server::Setup;

pub const SCREEN: (u32, u32) = (160, 120);
const SEGMENT_BYTES: usize = 32 * 1024;
/// A later answer never arrives: a client that holds the server grab waits for this client.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Majors {
    pub big: u8,
    pub render: u8,
    pub shm: u8,
    pub composite: u8,
    pub damage: u8,
    pub xfixes: u8,
    pub present: u8,
    pub sync: u8,
    pub shape: u8,
    pub double_buffer: u8,
}

/// The data about a server that requests need. It is the same for all servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub bases: [u32; CLIENTS],
    pub root: u32,
    pub majors: Majors,
    /// Formats of depth 1, 8, 24 and 32.
    pub formats: [u32; 4],
    /// A visual of depth 32.
    pub visual: u32,
    /// The first events of DAMAGE and SHAPE.
    pub events: [u8; 2],
    /// The segment of shared memory.
    pub key: u32,
}

/// Shared memory, which all servers attach.
#[derive(Debug)]
pub struct Segment {
    key: u32,
    memory: *mut u8,
}

impl Segment {
    pub fn new() -> Segment {
        // SAFETY: these calls take no pointers.
        let (key, memory) = unsafe {
            let key = libc::shmget(libc::IPC_PRIVATE, SEGMENT_BYTES, libc::IPC_CREAT | 0o600);
            (key, libc::shmat(key, null(), 0))
        };
        assert!(key >= 0 && memory as isize != -1, "shared memory");
        Segment { key: key as u32, memory: memory.cast() }
    }

    fn fill(&self) {
        for at in 0..SEGMENT_BYTES {
            // SAFETY: the segment has this many bytes, and no server uses it now.
            unsafe { self.memory.add(at).write((at * 7 + at / 251) as u8) };
        }
    }

    fn contents(&self) -> Vec<u8> {
        // SAFETY: the segment has this many bytes, and the server has executed all requests.
        let mut bytes = unsafe { std::slice::from_raw_parts(self.memory, SEGMENT_BYTES) }.to_vec();
        mask_pixels(&mut bytes);
        bytes
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the segment is attached at this address and no longer used.
        unsafe {
            libc::shmdt(self.memory.cast());
            libc::shmctl(self.key as i32, libc::IPC_RMID, null_mut());
        }
    }
}

/// The fourth byte of a pixel of depth 24 is unused. Drawing may leave any value in it.
fn mask_pixels(bytes: &mut [u8]) {
    bytes.chunks_exact_mut(4).for_each(|pixel| pixel[3] = 0);
}

/// The connection of a client of a case.
#[derive(Debug)]
struct Peer {
    stream: UnixStream,
    sent: u16,
    /// The number of the request for a last reply; 0 if there is none.
    last: u16,
    /// The sequence numbers of the requests of the case.
    requests: Vec<u16>,
    received: Vec<Vec<u8>>,
    is_open: bool,
}

impl Peer {
    /// Sends requests in one write. The server may have closed the connection.
    fn send(&mut self, requests: &[Vec<u8>], is_of_case: bool, ends: bool) {
        if is_of_case {
            self.requests.extend((1..).take(requests.len()).map(|number| self.sent + number));
        }
        self.sent += requests.len() as u16;
        let mut bytes = requests.concat();
        self.last = 0;
        if ends {
            self.sent += 1;
            self.last = self.sent;
            bytes.extend(message(opcode::GET_INPUT_FOCUS, 0).finish());
        }
        _ = self.stream.write_all(&bytes);
    }

    /// The next message; `None` if the connection is closed.
    fn message(&mut self) -> Result<Option<Vec<u8>>, Stuck> {
        let mut bytes = vec![0; 32];
        match self.stream.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock) => return Err(Stuck),
            Err(_) => return Ok(None),
        }
        if bytes[0] == 1 || bytes[0] & 0x7f == 35 {
            let length = 32 + 4 * word(&bytes, 4) as usize;
            bytes.resize(length, 0);
            if self.stream.read_exact(&mut bytes[32..]).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// Reads up to the last reply, or to the end of the connection.
    fn receive(&mut self, known: &Known) -> Result<(), Stuck> {
        let mut last = 0;
        while self.is_open {
            let Some(mut bytes) = self.message()? else {
                self.is_open = false;
                break;
            };
            let number = half(&bytes, 2);
            assert!(number >= last, "the sequence numbers went back from {last} to {number}");
            last = number;
            if bytes[0] == 1 && number == self.last {
                break;
            }
            // The number of the request in the case, so that messages from different servers can be compared.
            let of_case = self.requests.iter().filter(|&&one| one <= number).count() as u16;
            bytes[2..4].copy_from_slice(&of_case.to_ne_bytes());
            mask(&mut bytes, known);
            self.received.push(bytes);
        }
        Ok(())
    }

    fn sync(&mut self, known: &Known) -> Result<(), Stuck> {
        if self.is_open {
            self.send(&[], false, true);
        }
        self.receive(known)
    }
}

impl Peer {
    /// Asks whether another client has disconnected, while this one holds the server grab.
    fn sees_end_of(&mut self, client: usize, known: &Known) -> Result<bool, Stuck> {
        self.send(&[request(23, 0, &[SELECTIONS[client]])], false, true);
        self.receive(known)?;
        let owner = self.received.pop().expect("a reply");
        Ok(word(&owner, 8) == 0)
    }
}

/// Clears the data that differs from run to run: times, frames, and unused bytes.
fn mask(bytes: &mut [u8], known: &Known) {
    let [damage, shape] = known.events;
    match bytes[0] & 0x7f {
        1 if bytes.len() > 32 && bytes[1] == 24 => mask_pixels(&mut bytes[32..]),
        28 => bytes[12..16].fill(0),
        29 => bytes[4..8].fill(0),
        // CompleteNotify of Present has the time and the frame.
        35 if bytes[8] == 1 => bytes[24..40].fill(0),
        code if code == damage => bytes[12..16].fill(0),
        code if code == shape => bytes[16..20].fill(0),
        _ => {}
    }
}

/// A client got no answer, because another one holds the server grab.
#[derive(Clone, Copy, Debug)]
pub struct Stuck;

/// A request of the keeper and what the server has answered.
pub type Answer = (Vec<u8>, Vec<u8>);

/// The observable results of a case.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The messages that each client has received, unless it has closed its connection.
    pub received: Vec<Vec<Vec<u8>>>,
    /// The final contents, each with the request that reads it.
    pub contents: Vec<Answer>,
}

/// One step of an execution of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client's next requests, all in one slice if possible.
    Requests(usize, usize),
    /// A client closes its connection in a slice of its own.
    Leaves(usize),
    /// The same, but in the slice of its last requests.
    Last(usize, usize),
    /// The server waits for the next frame.
    Frame,
}

#[derive(Debug)]
pub struct Site {
    pub fixture: Fixture,
    pub keeper: Wire,
    pub known: Known,
    window: u32,
}

impl Site {
    /// `connect` opens connections that last as long as the server: the same number on each, so that ids are equal.
    pub fn start<T>(mut setup: Setup, segment: &Segment, connect: impl FnOnce(&Fixture) -> T) -> (Site, T) {
        setup.screen = SCREEN;
        // New memory has the same bytes in all servers, so that drawing from it gives the same pixels.
        let tunables = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0";
        setup.environment.push(("GLIBC_TUNABLES".into(), tunables.into()));
        let fixture = Fixture::start(&setup);
        let mut keeper = fixture.native();
        let others = connect(&fixture);
        let mut clients: Vec<Wire> = (0..CLIENTS).map(|_| fixture.native()).collect();
        for client in &mut clients {
            let id = client.new_id();
            client.tell(&request(opcode::CREATE_GC, 0, &[id, keeper.root, 0])).unwrap();
        }
        let bases = [0, 1, 2].map(|client: usize| clients[client].base);
        let names = [
            "BIG-REQUESTS",
            "RENDER",
            "MIT-SHM",
            "Composite",
            "DAMAGE",
            "XFIXES",
            "Present",
            "SYNC",
            "SHAPE",
            "DOUBLE-BUFFER",
        ];
        let all = names.map(|name| keeper.extension(name).expect("an extension"));
        let [big, render, shm, composite, damage, xfixes, present, sync, shape, double_buffer] =
            all.map(|one| one.major);
        let majors = Majors { big, render, shm, composite, damage, xfixes, present, sync, shape, double_buffer };
        for (major, version) in [(composite, [0, 4]), (damage, [1, 1]), (xfixes, [5, 0]), (render, [0, 11])] {
            keeper.ask(&request(major, 0, &version)).unwrap();
        }
        let (formats, visual) = formats(&keeper.ask(&request(render, 1, &[])).unwrap());
        let events = [all[4].first_event, all[8].first_event];
        let known = Known { bases, root: keeper.root, majors, formats, visual, events, key: segment.key };
        let window = keeper.new_id();
        keeper.tell(&request(1, 0, &[window, known.root, 0, pair(1, 1), 0, 0, 0])).unwrap();
        let event = keeper.new_id();
        keeper.tell(&request(present, 3, &[event, window, 2])).unwrap();
        for (at, depth) in [(0x1001, 1), (0x1008, 8), (0x1018, 24), (0x1020, 32)] {
            let scratch = keeper.base + at;
            keeper.tell(&request(opcode::CREATE_PIXMAP, depth, &[scratch, known.root, pair(60, 50)])).unwrap();
            keeper.tell(&request(opcode::CREATE_GC, 0, &[scratch + 0x100, scratch, 0])).unwrap();
        }
        let (scratch, region) = (keeper.base + 0x1018, keeper.base + 0x1300);
        keeper.tell(&request(render, 4, &[scratch + 0x200, scratch, known.formats[2], 0])).unwrap();
        keeper.tell(&request(xfixes, 5, &[region])).unwrap();
        let mut site = Site { fixture, keeper, known, window };
        site.forget_clients();
        (site, others)
    }

    /// Waits until these clients are gone.
    fn wait_until_gone(&mut self, clients: impl Iterator<Item = usize>) {
        for client in clients {
            let owner = request(23, 0, &[SELECTIONS[client]]);
            while word(&self.keeper.ask(&owner).unwrap(), 8) != 0 {
                std::thread::yield_now();
            }
        }
    }

    /// Destroys everything that a case has created.
    fn forget_clients(&mut self) {
        for base in self.known.bases {
            // A client whose resources are retained must be killed twice.
            (0..2).for_each(|_| _ = self.keeper.tell(&request(opcode::KILL_CLIENT, 0, &[base + 1])));
        }
        self.keeper.tell(&request(61, 0, &[self.known.root, 0, 0])).unwrap();
        self.keeper.events.clear();
    }

    fn begin(&mut self, segment: &Segment, case: &Case) -> Result<Vec<Peer>, Stuck> {
        segment.fill();
        let peer = |base: &u32| {
            let wire = self.fixture.native();
            assert_eq!(wire.base, *base, "the same ids in each case");
            wire.set_patience(PATIENCE);
            let stream = wire.into_stream();
            Peer { stream, sent: 0, last: 0, requests: Vec::new(), received: Vec::new(), is_open: true }
        };
        let mut peers: Vec<Peer> = self.known.bases.iter().map(peer).collect();
        // The server's work between two slices must be the same in each world.
        let composite = self.known.majors.composite;
        let is_alone = |request: &[u8]| [1, 8, composite].contains(&request[0]);
        for run in case.build.chunk_by(|one, next| one.0 == next.0 && !is_alone(&one.1) && !is_alone(&next.1)) {
            let requests: Vec<Vec<u8>> = run.iter().map(|(_, request)| request.clone()).collect();
            let peer = &mut peers[run[0].0];
            peer.send(&requests, false, true);
            peer.receive(&self.known)?;
            self.end_slice();
        }
        for peer in &mut peers {
            peer.sync(&self.known)?;
            peer.received.clear();
        }
        Ok(peers)
    }

    /// Executes a case: all clients send their requests while the server is grabbed, and disconnect meanwhile or later.
    pub fn run(&mut self, segment: &Segment, case: &Case) -> Result<Outcome, Stuck> {
        let mut peers = self.begin(segment, case)?;
        self.keeper.set_grab(true);
        std::thread::scope(|scope| {
            let send = |(peer, requests): (&'_ mut Peer, &'_ Vec<Vec<u8>>)| peer.send(requests, true, true);
            let pairs = peers.iter_mut().zip(&case.requests);
            let threads: Vec<_> = pairs.map(|pair| scope.spawn(move || send(pair))).collect();
            // Requests that do not fit into the sockets are sent later.
            while !case.is_large() && !threads.iter().all(|thread| thread.is_finished()) {
                std::thread::yield_now();
            }
            self.keeper.send(&request(opcode::UNGRAB_SERVER, 0, &[]));
        });
        for (peer, ending) in peers.iter_mut().zip(case.endings) {
            if let Some(Ending::After(time)) = ending {
                std::thread::sleep(time);
                _ = peer.stream.shutdown(Shutdown::Both);
            }
        }
        for (peer, ending) in peers.iter_mut().zip(case.endings) {
            if !matches!(ending, Some(Ending::After(_))) {
                peer.receive(&self.known)?;
            }
        }
        // Wait for one after the other: otherwise a stock server may handle either first in a replay.
        self.wait_until_gone((0..CLIENTS).filter(|&client| matches!(case.endings[client], Some(Ending::After(_)))));
        for client in (0..CLIENTS).filter(|&client| case.endings[client] == Some(Ending::Done)) {
            _ = peers[client].stream.shutdown(Shutdown::Both);
            self.wait_until_gone([client].into_iter());
        }
        self.end(segment, case, peers)
    }

    /// Executes the requests of a case in a given order, each step after the previous one.
    pub fn replay(&mut self, segment: &Segment, case: &Case, steps: &[Step]) -> Result<Outcome, Stuck> {
        let (mut peers, mut holder) = (self.begin(segment, case)?, None);
        for &step in steps {
            if holder.is_none() {
                self.end_slice();
            }
            match step {
                Step::Requests(client, count) => {
                    let peer = &mut peers[client];
                    let at = peer.requests.len();
                    let requests = &case.requests[client][at..at + count];
                    peer.send(requests, true, true);
                    peer.receive(&self.known)?;
                    for request in requests {
                        match request[0] {
                            opcode::GRAB_SERVER => holder = Some(client),
                            opcode::UNGRAB_SERVER => holder = None,
                            _ => {}
                        }
                    }
                }
                Step::Leaves(client) | Step::Last(client, _) => {
                    let peer = &mut peers[client];
                    if let Step::Last(_, count) = step {
                        let at = peer.requests.len();
                        peer.send(&case.requests[client][at..at + count], true, false);
                        // The server executes what it has received first.
                        _ = peer.stream.shutdown(Shutdown::Write);
                    } else {
                        // The server notices this even while another client holds the server grab.
                        _ = peer.stream.shutdown(Shutdown::Both);
                    }
                    holder = holder.filter(|&holder| holder != client);
                    match holder {
                        Some(holder) => while !peers[holder].sees_end_of(client, &self.known)? {},
                        None => self.wait_until_gone([client].into_iter()),
                    }
                }
                Step::Frame => self.wait_for_frame(),
            }
        }
        self.end(segment, case, peers)
    }

    /// Makes the server do its deferred work and serve another client. Otherwise, it may serve a client that has just
    /// received a reply again in the same slice.
    fn end_slice(&mut self) {
        self.keeper.sync();
    }

    fn wait_for_frame(&mut self) {
        for _ in 0..2 {
            let words = [self.window, 0, 0, 0, 0, 1, 0, 0, 0];
            self.keeper.tell(&request(self.known.majors.present, 2, &words)).unwrap();
            if self.keeper.events.is_empty() {
                _ = self.keeper.event(PATIENCE);
            }
            self.keeper.events.clear();
        }
    }

    fn end(&mut self, segment: &Segment, case: &Case, mut peers: Vec<Peer>) -> Result<Outcome, Stuck> {
        if case.has_frames(&self.known) {
            self.wait_for_frame();
        }
        for (peer, ending) in peers.iter_mut().zip(case.endings) {
            if ending.is_none() {
                peer.sync(&self.known)?;
            }
        }
        // In a trace, this request marks the end of the case.
        self.keeper.tell(&request(opcode::NO_OPERATION, 0, &[])).unwrap();
        let contents = self.contents(segment, case);
        self.forget_clients();
        let mut received = peers.into_iter().map(|peer| peer.received).collect::<Vec<_>>();
        for (received, ending) in received.iter_mut().zip(case.endings) {
            if ending.is_some() {
                received.clear();
            }
        }
        Ok(Outcome { received, contents })
    }

    /// The replies and errors to these requests of the keeper, each with its request.
    fn ask(&mut self, requests: Vec<Vec<u8>>) -> Vec<Answer> {
        let (first, count) = (self.keeper.sequence(), requests.len() as u16);
        self.keeper.send_many(&requests.concat(), count);
        self.keeper.send(&request(opcode::GET_INPUT_FOCUS, 0, &[]));
        let mut answers = Vec::new();
        loop {
            let mut bytes = self.keeper.message_of_any_kind().expect("an answer");
            let number = half(&bytes, 2).wrapping_sub(first).wrapping_sub(1);
            match bytes[0] {
                1 if number == count => return answers,
                0 | 1 => {
                    bytes[2..4].fill(0);
                    mask(&mut bytes, &self.known);
                    let mut request = requests[usize::from(number)].clone();
                    request.truncate(24);
                    answers.push((request, bytes));
                }
                _ => {}
            }
        }
    }

    /// The final contents: pixels, windows, regions, damage, and the output of contexts, pictures and backgrounds.
    fn contents(&mut self, segment: &Segment, case: &Case) -> Vec<Answer> {
        let (known, pool, base) = (self.known, &case.pool, self.keeper.base);
        let majors = known.majors;
        let mut all = vec![(Vec::new(), segment.contents())];
        let mut sizes = Vec::new();
        for (window, name) in pool.windows.iter().zip(base + 0x2000..) {
            let named = request(majors.composite, 6, &[window.id, name]);
            let queries = [3, 14, 15].map(|major| request(major, 0, &[window.id]));
            sizes.extend([&[named], &queries[..], &[request(14, 0, &[name])]].concat());
        }
        sizes.extend(pool.pixmaps.iter().map(|pixmap| request(14, 0, &[pixmap.id])));
        let sizes = self.ask(sizes);
        let screen = image(known.root, [SCREEN.0 as u16, SCREEN.1 as u16]);
        let mut images = vec![screen.clone()];
        for (of, reply) in &sizes {
            let id = word(of, 4);
            if of[0] == 14 && reply[0] == 1 && !pool.windows.iter().any(|window| window.id == id) {
                images.push(image(id, [half(reply, 16), half(reply, 18)]));
            }
        }
        all.extend(sizes);
        let frees = (0..pool.windows.len() as u32).map(|at| request(54, 0, &[base + 0x2000 + at]));
        images.extend(frees);
        all.extend(self.ask(images));
        all.extend(self.counted(case));
        all.extend(self.what_draws(case));
        // Read backgrounds one by one, because the server copies redirected windows meanwhile.
        for window in &pool.windows {
            all.extend(self.ask(vec![request(61, 0, &[window.id, 0, 0])]));
        }
        all.extend(self.ask(vec![screen]));
        all
    }

    /// Regions, damage, fences and counters.
    fn counted(&mut self, case: &Case) -> Vec<Answer> {
        let (pool, majors, region) = (&case.pool, self.known.majors, self.keeper.base + 0x1300);
        let fetch = |&region: &u32| request(majors.xfixes, 19, &[region]);
        let mut reads: Vec<_> = pool.regions.iter().chain(&pool.damaged).map(fetch).collect();
        for &damage in &pool.damages {
            // Empty the region first, in case the object does not exist.
            reads.push(request(majors.xfixes, 11, &[region]));
            reads.push(request(majors.damage, 3, &[damage, 0, region]));
            reads.push(fetch(&region));
        }
        reads.extend(pool.fences.iter().map(|&fence| request(majors.sync, 18, &[fence])));
        reads.extend(pool.counters.iter().map(|&counter| request(majors.sync, 5, &[counter])));
        self.ask(reads)
    }

    /// The output of contexts and pictures, drawn to pixmaps of the keeper.
    fn what_draws(&mut self, case: &Case) -> Vec<Answer> {
        let (pool, render, base) = (&case.pool, self.known.majors.render, self.keeper.base);
        let scratches = [0x1001, 0x1008, 0x1018, 0x1020].map(|at| base + at);
        let fill = |id: u32, context: u32, place: u32, size: u32| {
            request(opcode::POLY_FILL_RECTANGLE, 0, &[id, context, place, size])
        };
        let mut draw = scratches.map(|id| fill(id, id + 0x100, 0, pair(60, 50))).to_vec();
        for context in &pool.contexts {
            let scratch = base + 0x1000 + context.depth;
            draw.push(fill(scratch, context.id, pair(2, 3), pair(40, 30)));
            draw.push(request(67, 0, &[scratch, context.id, pair(2, 3), pair(40, 30)]));
        }
        let places = [0, 0, pair(5, 5), pair(50, 40)];
        let composite = |&picture: &u32| request(render, 8, &[&[3, picture, 0, base + 0x1218], &places[..]].concat());
        draw.extend(pool.pictures.iter().map(composite));
        draw.extend(scratches.map(|scratch| image(scratch, [60, 50])));
        self.ask(draw)
    }
}

/// A request for the pixels of a drawable.
fn image(id: u32, [width, height]: [u16; 2]) -> Vec<u8> {
    request(opcode::GET_IMAGE, 2, &[id, 0, pair(width.into(), height.into()), !0])
}

/// The formats of depth 1, 8, 24 and 32, and a visual of depth 32, from the reply to QueryPictFormats.
fn formats(reply: &[u8]) -> ([u32; 4], u32) {
    let count = word(reply, 8) as usize;
    let format = |depth: u8, alpha_bits: u16| {
        let entry = reply[32..].chunks(28).take(count).find(|entry| {
            // A direct format with the usual order of colours, or with alpha alone.
            let has_order = depth <= 8 || half(entry, 8) == 16;
            entry[4] == 1 && entry[5] == depth && half(entry, 22) == alpha_bits && has_order
        });
        word(entry.expect("a format"), 0)
    };
    let formats = [format(1, 1), format(8, 0xff), format(24, 0), format(32, 0xff)];
    // A screen, its depths, and the visuals of each.
    let mut at = 32 + 28 * count + 8;
    loop {
        let (depth, visuals) = (reply[at], usize::from(half(reply, at + 2)));
        if depth == 32 && visuals > 0 {
            return (formats, word(reply, at + 8));
        }
        at += 8 + 8 * visuals;
    }
}
