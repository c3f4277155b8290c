// SPDX-License-Identifier: MIT
//! The host for servers that export nothing: it schedules through interposed libc calls.
//!
//! A current X server adds its clients to an epoll, edge-triggered. It waits in `epoll_wait` for clients with data and
//! reads a client's requests until a read returns EAGAIN. This host makes use of this behaviour:
//!
//! | task | how this host does it |
//! |---|---|
//! | find ready clients | tracks each client until the server has read all its data |
//! | choose a client | reports only this client to the server, in an event with the data that the server registered |
//! | end a slice | answers EAGAIN to the next read from the running client |
//! | limit the work of one read | lets it return complete requests worth one chunk of time, estimated from past reads |
//! | hold a client back | does not report it to the server |
//! | see arrivals during a slice | checks the server's epoll at a read, at most every 50 us |
//!
//! | file | contents |
//! |---|---|
//! | `as_host` | answers and acts through these calls |
//! | `calls` | the interposed calls |
//! | `redirect` | redirects the program's calls to `calls` if xqos is not preloaded |
//! | `instance` | the engine of this process; each call into it is a panic boundary |
//! | `clients` | handles clients whose sockets open or close |
//! | `reading` | how much a read may return, and when the slice is over |
//! | `framing` | the boundaries of requests in the data that is read |
//! | `output` | events in the data that is written |
//!
//! The server's own timer, which would end its slices, is withheld while xqos chooses. Single requests are not timed,
//! and the policy `classic`, which counts them, is not available. The number of small requests in a flood is estimated
//! unless a trace is running.

mod as_host;
pub mod calls;
pub mod clients;
mod framing;
pub mod instance;
mod output;
mod reading;
pub mod redirect;
#[cfg(test)]
mod tests;

use crate::host::control::Connections;
use crate::host::kernel::{self, now};
use crate::host::real_libc::{self, OWN, is_own};
use crate::host::watcher::Watcher;
use crate::mechanism::early_end::EarlyEnd;
use clients::LibcClient;
use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use xqos_core::{Choice, ClientId, Contest, Time};

/// The minimum number of bytes to peek at, to find the end of the first request.
const MIN_PEEK_BYTES: usize = 256;
/// How long xqos continues to serve requests sent before a hangup. A stock server drops them immediately.
const HANGUP_NS: u64 = 100_000_000;
const HANGUP: u32 = (libc::EPOLLHUP | libc::EPOLLRDHUP) as u32;

#[derive(Debug, Default)]
struct LibcSlice {
    chosen: Option<ClientId>,
    /// The client that the server reads from. Not `chosen` if the server had buffered another client's requests.
    reader: Option<ClientId>,
    chunks: u32,
    requests: u32,
    bytes: u64,
    last_request: u32,
    checked_at: Time,
    contest: Option<(Contest, Time)>,
    server_may_preempt: bool,
    ended_at: Option<Time>,
}

#[derive(Debug)]
pub struct Libc {
    epoll: RawFd,
    clients: Vec<Option<LibcClient>>,
    /// Keyed by the data that the server registered with its epoll.
    by_data: HashMap<u64, ClientId>,
    by_descriptor: Vec<Option<ClientId>>,
    /// Clients with data, in order of arrival. May include clients whose data have been read since.
    queue: Vec<ClientId>,
    /// The number of clients that the server does not listen to.
    muted: usize,
    /// One read may return requests worth this much time, or a single longer request.
    chunk_ns: u64,
    /// The size of the server's input buffer for a client; 0 before the first client connects.
    buffer_bytes: usize,
    /// The bytes of the last peek. The buffer is kept, because clearing a new one takes longer than the peek itself.
    peeked: Vec<u8>,
    is_traced: bool,
    /// The sockets whose data end the next wait.
    awaited: Vec<RawFd>,
    running: LibcSlice,
    slice: u64,
    early: EarlyEnd,
    ask_at: Time,
    end: bool,
    timer: OwnedFd,
    /// The sockets of clients that the server does not listen to, watched for data.
    waiting: OwnedFd,
    pub alarm: Alarm,
    pub control: Connections,
    /// Raises the server's thread when data from a reserved client arrive. Exists only during a loan.
    lender: Option<Watcher>,
    /// The number of times that earlier lenders raised the thread.
    raised_before: u32,
    named: bool,
}

impl Libc {
    pub fn new(epoll: RawFd, chunk_ns: u64) -> io::Result<Libc> {
        let timer = kernel::new_timer()?;
        let waiting = kernel::new_epoll()?;
        real_libc::watch_own(epoll, timer.as_raw_fd());
        real_libc::watch_own(epoll, waiting.as_raw_fd());
        Ok(Libc {
            epoll,
            clients: Vec::new(),
            by_data: HashMap::new(),
            by_descriptor: Vec::new(),
            queue: Vec::new(),
            muted: 0,
            chunk_ns,
            buffer_bytes: 0,
            peeked: Vec::new(),
            is_traced: false,
            awaited: Vec::new(),
            running: LibcSlice::default(),
            slice: 0,
            early: EarlyEnd::default(),
            ask_at: Time::NEVER,
            end: false,
            timer,
            waiting,
            alarm: Alarm::default(),
            control: Connections::default(),
            lender: None,
            raised_before: 0,
            named: false,
        })
    }

    /// How long the server may sleep, given the time that it `wanted`, in milliseconds; negative means forever.
    pub fn timeout(&self, wanted: c_int) -> c_int {
        let mut limit = c_int::MAX;
        for known in self.queue.iter().filter_map(|&id| self.known(id)) {
            if known.is_ready() {
                return 0;
            }
            if known.saved & HANGUP != 0 {
                limit = (HANGUP_NS / 1_000_000) as c_int;
            }
        }
        match (wanted < 0, limit) {
            (true, c_int::MAX) => wanted,
            (true, limit) => limit,
            (false, limit) => limit.min(wanted),
        }
    }

    /// Handles events from the server's epoll. Moves the events that are not ours to the front. Returns their number,
    /// and true if a control connection has data.
    pub fn take_events(&mut self, events: &mut [libc::epoll_event]) -> (usize, bool) {
        let mut is_asked = false;
        let kept = real_libc::retain_events(events, |event| {
            let data = event.u64;
            if data == OWN | self.timer.as_raw_fd() as u64 {
                kernel::drain(self.timer.as_raw_fd());
            } else if data == OWN | self.waiting.as_raw_fd() as u64 {
                self.note_muted_arrivals();
            } else if is_own(data) {
                is_asked = true;
            } else if let Some(id) = self.by_data.get(&data).copied() {
                self.has(id, event.events);
            } else {
                return true;
            }
            false
        });
        (kept, is_asked)
    }

    /// Records arrivals of clients that the server does not listen to.
    fn note_muted_arrivals(&mut self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
        // Events that do not fit into this array stay pending until the next call.
        let count = real_libc::epoll_wait_now(self.waiting.as_raw_fd(), &mut events);
        for event in &events[..count] {
            if let Some(known) = self.known_mut(ClientId(event.u64 as u16)) {
                known.arrived = Some(now());
            }
        }
    }

    /// The events that make the server carry out the decision.
    pub fn events_for_server(&mut self, choice: Option<Choice>, mut add: impl FnMut(libc::epoll_event) -> bool) {
        let chosen = match choice {
            Some(Choice::Client(id, _)) => Some(id),
            _ => None,
        };
        let now = now();
        let leaves_all = choice == Some(Choice::Server);
        if choice.is_some() {
            self.alarm.keep(!leaves_all);
        }
        let Libc { queue, clients, .. } = self;
        for &id in queue.iter() {
            let Some(known) = clients.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { continue };
            let is_served = known.is_ready() && (leaves_all || chosen == Some(id));
            // A hangup makes the server close the client immediately, so it is reported only after the data are read,
            // or after HANGUP_NS.
            let later = if known.pending && known.hung_up_at.after(HANGUP_NS) > now { HANGUP } else { 0 };
            let rest = known.saved & !later;
            let bits = rest | if is_served { libc::EPOLLIN as u32 } else { 0 };
            if bits != 0 && add(libc::epoll_event { events: bits, u64: known.data }) {
                known.saved &= !rest;
            }
        }
    }

    /// Records the events that the epoll reported for a client.
    fn has(&mut self, id: ClientId, bits: u32) {
        let Some(known) = self.known_mut(id) else { return };
        known.has(bits);
        if bits & HANGUP != 0 {
            known.hung_up_at = now();
        }
        if !std::mem::replace(&mut known.is_queued, true) {
            self.queue.push(id);
        }
    }

    pub fn known(&self, id: ClientId) -> Option<&LibcClient> {
        self.clients.get(usize::from(id.0))?.as_ref()
    }

    pub fn known_mut(&mut self, id: ClientId) -> Option<&mut LibcClient> {
        self.clients.get_mut(usize::from(id.0))?.as_mut()
    }
}

/// The server's own timer, which ends its slices. It is withheld while xqos chooses.
///
/// A slice that the server ends leaves requests in its buffer, and the server serves those next, whichever client xqos
/// chooses. xqos therefore only records the server's calls to set the timer, and repeats the last call when the server
/// is to choose clients or xqos steps aside.
#[derive(Debug, Default)]
pub struct Alarm {
    wanted: Option<libc::itimerval>,
    is_kept: bool,
}

impl Alarm {
    /// Records the timer that the server sets. Returns true if it must not take effect.
    pub fn keeps(&mut self, value: libc::itimerval) -> bool {
        self.wanted = Some(value);
        self.is_kept
    }

    /// Withholds the timer from now on, or sets it again.
    pub fn keep(&mut self, is_kept: bool) {
        if std::mem::replace(&mut self.is_kept, is_kept) == is_kept {
            return;
        }
        // SAFETY: a timer of zeroes is off.
        let off = unsafe { std::mem::zeroed() };
        if let Some(wanted) = self.wanted {
            real_libc::set_alarm(if is_kept { &off } else { &wanted });
        }
    }
}
