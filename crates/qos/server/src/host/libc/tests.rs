// SPDX-License-Identifier: MIT
//! Tests this host in a small server that polls, reads and closes like an X server. Each request must be served once
//! and in its client's order, no matter what the clients send and at which call xqos fails.

use super::instance;
use crate::mechanism::settings::{FaultPlace, PlannedFault, Settings};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use xqos_testkit::Random;

const BUFFER_BYTES: usize = 4096;
const IN: u32 = libc::EPOLLIN as u32;
const EDGE: u32 = libc::EPOLLET as u32;
/// The number of requests in a slice while other clients wait.
const SLICE_REQUESTS: usize = 20;
/// The opcodes of requests that have an effect.
const WORK: u8 = 1;
const SYNC: u8 = 43;
const GRAB: u8 = 36;
const UNGRAB: u8 = 37;

/// A connection as the server sees it.
struct Connection {
    buffer: Vec<u8>,
    is_set_up: bool,
    /// The number of requests served; each request carries its number.
    served: u32,
    is_ready: bool,
}

struct Server {
    epoll: OwnedFd,
    connections: BTreeMap<RawFd, Connection>,
    grab: Option<RawFd>,
    output: Vec<(RawFd, Vec<u8>)>,
    /// The number of requests served for each client that has gone.
    gone: Vec<u32>,
}

fn listen(epoll: &OwnedFd, operation: i32, fd: RawFd, events: u32) {
    let mut event = libc::epoll_event { events, u64: 0x1000 + 16 * fd as u64 };
    // SAFETY: the descriptors are open, and the event lives through the call.
    assert_eq!(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd, &mut event) }, 0);
}

impl Server {
    fn add(&mut self, socket: UnixStream) {
        socket.set_nonblocking(true).unwrap();
        let fd = socket.into_raw_fd();
        listen(&self.epoll, libc::EPOLL_CTL_ADD, fd, EDGE);
        let is_heard = self.grab.is_none();
        listen(&self.epoll, libc::EPOLL_CTL_MOD, fd, if is_heard { EDGE | IN } else { EDGE });
        let connection = Connection { buffer: Vec::new(), is_set_up: false, served: 0, is_ready: false };
        self.connections.insert(fd, connection);
    }

    fn close(&mut self, fd: RawFd) {
        let Some(connection) = self.connections.remove(&fd) else { return };
        self.gone.push(connection.served);
        if self.grab == Some(fd) {
            self.set_grab(None);
        }
        listen(&self.epoll, libc::EPOLL_CTL_DEL, fd, 0);
        // SAFETY: the descriptor was taken from a stream and is no longer used.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }

    fn set_grab(&mut self, holder: Option<RawFd>) {
        self.grab = holder;
        for &fd in self.connections.keys() {
            let is_heard = holder.is_none_or(|holder| holder == fd);
            listen(&self.epoll, libc::EPOLL_CTL_MOD, fd, if is_heard { EDGE | IN } else { EDGE });
        }
    }

    /// Polls and serves until all clients have gone.
    fn run(&mut self) {
        while !self.connections.is_empty() {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
            // Clients with requests in the server's buffer are served without an event.
            let timeout = if self.ready().is_empty() { 60_000 } else { 0 };
            // A wait in which xqos steps aside may end early, as it began with xqos's own time limit.
            let may_end_early = instance::is_served();
            // SAFETY: the epoll is open, and the array has room for this many events.
            let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), 256, timeout) };
            assert!(count > 0 || timeout == 0 || may_end_early, "no more events");
            for event in &events[..count.max(0) as usize] {
                let (data, bits) = (event.u64, event.events);
                let fd = ((data - 0x1000) / 16) as RawFd;
                if bits & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0 {
                    self.close(fd);
                } else if let Some(connection) = self.connections.get_mut(&fd).filter(|_| bits & IN != 0) {
                    connection.is_ready = true;
                }
            }
            self.serve_ready();
            for (fd, bytes) in std::mem::take(&mut self.output) {
                let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
                // SAFETY: the single part lives through the call. A client that has gone needs no reply.
                unsafe { libc::writev(fd, &part, 1) };
            }
        }
    }

    fn ready(&self) -> Vec<RawFd> {
        let is_heard = |fd: &RawFd| self.grab.is_none_or(|holder| holder == *fd);
        self.connections.iter().filter(|(fd, it)| it.is_ready && is_heard(fd)).map(|(&fd, _)| fd).collect()
    }

    fn serve_ready(&mut self) {
        loop {
            let ready = self.ready();
            for &fd in &ready {
                for _ in 0..SLICE_REQUESTS {
                    if !self.serve_one(fd) {
                        break;
                    }
                }
            }
            if ready.is_empty() || !self.output.is_empty() {
                return;
            }
        }
    }

    /// Reads and executes one request. Returns false if the client has no request or has gone.
    fn serve_one(&mut self, fd: RawFd) -> bool {
        let Some(connection) = self.connections.get_mut(&fd) else { return false };
        if self.grab.is_some_and(|holder| holder != fd) {
            return false;
        }
        let length = loop {
            let have = connection.buffer.len();
            let length = if connection.is_set_up { length(&connection.buffer) } else { 12 };
            if have >= length {
                break length;
            }
            let mut bytes = vec![0; BUFFER_BYTES.max(length) - have];
            // SAFETY: the buffer has room for this many bytes.
            let read = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
            match usize::try_from(read) {
                Ok(0) => {
                    self.close(fd);
                    return false;
                }
                Ok(read) => connection.buffer.extend_from_slice(&bytes[..read]),
                Err(_) => {
                    connection.is_ready = false;
                    return false;
                }
            }
        };
        let request: Vec<u8> = connection.buffer.drain(..length).collect();
        if !std::mem::replace(&mut connection.is_set_up, true) {
            self.output.push((fd, setup(fd)));
            return true;
        }
        let number = u32::from_ne_bytes(request[request.len() - 4..].try_into().unwrap());
        assert_eq!(number, connection.served, "each request must be served once and in order");
        connection.served += 1;
        match request[0] {
            SYNC => self.output.push((fd, [1; 32].to_vec())),
            GRAB => self.set_grab(Some(fd)),
            UNGRAB => self.set_grab(None),
            _ => {}
        }
        true
    }
}

/// The length of the request that begins here; 8 if it cannot be determined yet.
fn length(stream: &[u8]) -> usize {
    let Some(head) = stream.first_chunk::<8>() else { return 8 };
    match u16::from_ne_bytes([head[2], head[3]]) {
        0 => 4 * u32::from_ne_bytes([head[4], head[5], head[6], head[7]]) as usize,
        words => 4 * usize::from(words),
    }
}

fn setup(fd: RawFd) -> Vec<u8> {
    let mut answer = vec![0; 40];
    answer[0] = 1;
    answer[6..8].copy_from_slice(&8_u16.to_ne_bytes());
    answer[12..16].copy_from_slice(&((fd as u32) << 21).to_ne_bytes());
    answer[16..20].copy_from_slice(&0x1f_ffff_u32.to_ne_bytes());
    answer
}

fn request(kind: u8, words: usize, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4 * words];
    bytes[0] = kind;
    if words > usize::from(u16::MAX) {
        bytes[4..8].copy_from_slice(&(words as u32).to_ne_bytes());
    } else {
        bytes[2..4].copy_from_slice(&(words as u16).to_ne_bytes());
    }
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(&number.to_ne_bytes());
    bytes
}

/// A client that sends random requests in pieces of random size. Returns how many requests it has sent.
fn client(mut socket: UnixStream, mut random: Random) -> JoinHandle<u32> {
    thread::spawn(move || {
        let mut hello = vec![0; 12];
        hello[0] = if cfg!(target_endian = "big") { b'B' } else { b'l' };
        socket.write_all(&hello).unwrap();
        socket.read_exact(&mut [0; 40]).unwrap();
        let mut number = 0;
        for _ in 0..1 + random.below(12) {
            let mut stream = Vec::new();
            let grabs = random.below(8) == 0;
            let mut add = |kind, words| {
                stream.extend(request(kind, words, number));
                number += 1;
            };
            if grabs {
                add(GRAB, 3);
            }
            for _ in 0..random.below(300) {
                let is_big = random.below(100) == 0;
                add(WORK, if is_big { 65_536 + random.below(9000) } else { 3 + random.below(30) });
            }
            if grabs {
                add(UNGRAB, 3);
            }
            add(SYNC, 3);
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (piece, later) = rest.split_at((1 + random.below(9000)).min(rest.len()));
                socket.write_all(piece).unwrap();
                rest = later;
                if random.below(10) == 0 {
                    thread::sleep(Duration::from_micros(random.below(300) as u64));
                }
            }
            socket.read_exact(&mut [0; 32]).unwrap();
        }
        if random.below(3) == 0 {
            // The client disconnects in the middle of a request.
            socket.write_all(&request(WORK, 30, number)[..50]).unwrap();
        }
        number
    })
}

fn served(seed: u64, fault: Option<PlannedFault>) -> bool {
    let mut random = Random(seed);
    // Shifts descriptor numbers, so that clients get numbers that xqos used in an earlier server.
    let _others: Vec<_> = (0..seed % 5).map(|_| File::open("/dev/null").unwrap()).collect();
    // SAFETY: the call takes no pointers, and the descriptor is new.
    let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
    let settings = Settings { fault, chunk_ns: 50_000, ..Settings::default() };
    instance::serve(epoll.as_raw_fd(), &settings);
    let connections = BTreeMap::new();
    let mut server = Server { epoll, connections, grab: None, output: Vec::new(), gone: Vec::new() };
    let clients: Vec<_> = (0..2 + random.below(6))
        .map(|_| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            server.add(theirs);
            client(ours, Random(random.next()))
        })
        .collect();
    server.run();
    let mut sent: Vec<u32> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    sent.sort_unstable();
    server.gone.sort_unstable();
    assert_eq!(server.gone, sent, "seed {seed}, fault {fault:?}");
    instance::end()
}

#[test]
fn each_request_is_served_once_and_in_order_even_after_a_fault_at_any_call() {
    for seed in xqos_testkit::seeds(15) {
        assert!(served(seed, None), "seed {seed}: xqos stepped aside");
    }
    let mut random = Random(xqos_testkit::seed());
    for (seed, nth) in xqos_testkit::seeds(48).zip(0..) {
        let count = 1 + random.below(1 << (nth % 12)) as u64;
        served(seed, Some(PlannedFault { place: FaultPlace::Call, count }));
    }
}
