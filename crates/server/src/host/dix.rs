// SPDX-License-Identifier: MIT
//! A server that exports its functions and variables, and whose client record we know.
//!
//! | file | what |
//! |---|---|
//! | `symbols` | the server's functions and variables, found by name at run time |
//! | `hooks` | what the server calls; each a panic boundary |
//! | `client` | the server's client record, through the C shim |
//! | `clients` | clients come and go; whether this server and its records are those we know |
//! | `ready` | the server's ring of ready clients |
//! | `watcher`, `polled` | the thread that ends a slice early, and the server's own descriptors |
//! | `sync_priority` | what SYNC clients see of the priority field that we use |
//! | `per_request`, `ticks` | counting and timing requests, only while the policy `classic` or a trace asks for it |
//!
//! Between slices every priority field is what `sync_priority` says it must be.

pub mod client;
pub mod clients;
pub mod error;
pub mod hooks;
pub mod per_request;
pub mod polled;
pub mod ready;
pub mod symbols;
pub mod sync_priority;
pub mod ticks;
pub mod watcher;

use crate::host::behind;
use crate::host::control::{Asked, Connections};
use crate::host::cpu;
use crate::host::dix::client::{Client, device_grabs, redirector};
use crate::host::dix::clients::{Checked, Known};
use crate::host::dix::error::Error;
use crate::host::dix::ready::{Broken, ReadyRing};
use crate::host::dix::symbols::{ExtensionEntry, NotifyFd, RequestProc, Symbols};
use crate::host::dix::sync_priority::Wrapped;
use crate::host::dix::watcher::Watcher;
use crate::host::identity::Identity;
use crate::host::kernel;
use crate::host::{Host, SeenRequests, Work};
use crate::mechanism::settings::{FaultPlace, PlannedFault};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use xqos_abi::{Notify, Order};
use xqos_core::{Choice, ClientId, Contest, Rank, Slice, Time};

/// Where clients compete with the server for the processors, it gets its turn after this time and not after one of theirs
/// (3 ms): the better half of a reserved client's wait beside twelve of NoOp. Shorter ones gained nothing more.
const KERNEL_SLICE_NS: u64 = 300_000;

/// One generation of such a server.
#[derive(Debug)]
pub struct Dix {
    symbols: &'static Symbols,
    clients: Vec<Option<Known>>,
    ring: ReadyRing,
    running: Option<Running>,
    /// The clients that the server may choose from, where it chooses.
    candidates: Vec<ClientId>,
    /// Somebody holds the server grab: the ring holds other clients then.
    pub grabbed: bool,
    watcher: Watcher,
    wakeup_timer: OwnedFd,
    /// Answered also while somebody holds the server grab, and when the server has no place for another client.
    pub control: Connections,
    /// The sockets of `control`; the server polls it as one descriptor of ours.
    control_epoll: OwnedFd,
    /// Clients with a SYNC priority other than 0.
    prioritized: Vec<ClientId>,
    priorities_shown: bool,
    sync: Option<Wrapped>,
    sees_requests: bool,
    checked: Checked,
    first_event: u8,
    pub first_error: u8,
}

/// The running slice.
#[derive(Clone, Copy, Debug)]
struct Running {
    choice: Choice,
    sequence: u32,
    /// Its connection was set up before: setting it up is no request of its.
    established: bool,
}

impl Dix {
    pub fn new(
        symbols: &'static Symbols,
        extension: &ExtensionEntry,
        planned: Option<PlannedFault>,
    ) -> Result<Dix, Error> {
        let wakeup_timer = kernel::new_timer().map_err(Error::Timer)?;
        let fault_in = planned.filter(|fault| fault.place == FaultPlace::Watcher).map_or(0, |fault| fault.count);
        let watcher =
            Watcher::start(|| symbols.end_slice(), wakeup_timer.as_raw_fd(), fault_in).map_err(Error::Watcher)?;
        Ok(Dix {
            symbols,
            clients: Vec::new(),
            ring: ReadyRing::new(),
            running: None,
            candidates: Vec::new(),
            grabbed: false,
            watcher,
            wakeup_timer,
            control: Connections::default(),
            control_epoll: kernel::new_epoll().map_err(Error::Timer)?,
            prioritized: Vec::new(),
            priorities_shown: true,
            sync: None,
            sees_requests: false,
            checked: Checked::default(),
            first_event: extension.event_base as u8,
            first_error: extension.error_base as u8,
        })
    }

    /// Stands before SYNC, and has the server poll our timer and the control socket.
    pub fn hook(
        &mut self,
        sync_request: RequestProc,
        wakeup_timer: NotifyFd,
        control_asked: NotifyFd,
    ) -> Result<(), Error> {
        self.sync = Wrapped::install(self.symbols, sync_request);
        self.listen();
        for (fd, called) in [(&self.wakeup_timer, wakeup_timer), (&self.control_epoll, control_asked)] {
            // SAFETY: our own descriptor, taken back in `step_back` before it is closed.
            let set = unsafe { (self.symbols.set_notify_fd)(fd.as_raw_fd(), called, 1, std::ptr::null_mut()) };
            if set == 0 {
                return Err(Error::NotPolled);
            }
        }
        Ok(())
    }

    /// Opens the control socket. Without one the extension is still there.
    fn listen(&mut self) {
        let Some(display) = behind::display_of_process() else { return };
        if let Err(error) = self.control.listen(self.control_epoll.as_raw_fd(), display) {
            self.symbols.log(&format!("no control socket for display {display}: {error}"));
        }
    }

    /// What was asked over the control socket, and which connections to it have ended.
    pub fn receive(&mut self) -> (Vec<Asked>, Vec<ClientId>) {
        self.control.receive(self.control_epoll.as_raw_fd())
    }

    pub fn id_of(&self, client: Client) -> Option<ClientId> {
        let id = ClientId(u16::try_from(client.index()).ok()?);
        self.known(id).filter(|known| known.client == client).map(|_| id)
    }

    pub fn atom_name(&self, atom: u32) -> Option<String> {
        self.symbols.atom_name(atom)
    }

    fn known(&self, id: ClientId) -> Option<&Known> {
        self.clients.get(usize::from(id.0))?.as_ref()
    }

    pub fn has_no_clients(&self) -> bool {
        self.clients.iter().all(Option::is_none)
    }

    fn known_mut(&mut self, id: ClientId) -> Option<&mut Known> {
        self.clients.get_mut(usize::from(id.0))?.as_mut()
    }

    /// A client whose connection is open.
    fn open(&self, id: ClientId) -> Option<Client> {
        self.known(id).map(|known| known.client).filter(|client| !client.is_gone())
    }

    /// A client's socket; -1 where its connection is closed.
    fn descriptor(&self, id: ClientId) -> RawFd {
        self.open(id).map_or(-1, |client| self.symbols.descriptor(client))
    }

    /// Where the server chose: the client that executed a request, and its sequence number before.
    fn who_ran(&self) -> Option<(ClientId, u32)> {
        self.candidates.iter().find_map(|&id| {
            let known = self.known(id)?;
            (known.client.sequence() != known.sequence).then_some((id, known.sequence))
        })
    }

    fn find_ring(&mut self) -> Result<bool, Error> {
        if self.grabbed {
            return Ok(false);
        }
        let Some(ready) = self.clients.iter().flatten().map(|known| known.client).find(|client| client.is_linked())
        else {
            return Ok(false);
        };
        let clients = &self.clients;
        let is_client = |candidate| clients.iter().flatten().any(|known| known.client == candidate);
        self.ring.find(ready, is_client).map_err(|Broken| Error::NoRing)?;
        Ok(true)
    }
}

/// A client's byte order.
pub fn order_of(client: Client) -> Order {
    if client.is_swapped() { Order::Swapped } else { Order::Native }
}

impl Host for Dix {
    type Error = Error;

    fn log(&self, line: &str) {
        self.symbols.log(line);
    }

    fn check(&mut self) -> Result<Option<String>, Error> {
        if !self.watcher.is_alive() {
            return Err(Error::WatcherEnded);
        }
        self.check_server()
    }

    fn screens(&self) -> usize {
        self.checked.roots.len()
    }

    fn redirector(&self, screen: usize) -> Option<u32> {
        let id = *self.checked.roots.get(screen).filter(|_| self.checked.windows_known)?;
        // SAFETY: a window of that id of a server whose window record we know.
        self.symbols.window(id).and_then(|root| unsafe { redirector(root, id) })
    }

    fn device_grabs(&self) -> [u32; 2] {
        let input = NonNull::new(self.symbols.input_info).filter(|_| self.checked.windows_known);
        // SAFETY: the devices of a server whose records we know, as for its windows.
        input.map_or([0; 2], |input| unsafe { device_grabs(input) })
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<Known>>() + Watcher::memory_bytes()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.open(client).is_some()
    }

    fn address(&self, client: ClientId) -> Option<String> {
        kernel::peer_address(self.symbols.descriptor(self.open(client)?))
    }

    fn forget(&mut self, client: ClientId) {
        self.watcher.gone(client);
        self.prioritized.retain(|&other| other != client);
        self.clients[usize::from(client.0)] = None;
    }

    fn hold(&mut self, client: ClientId) {
        if let Some(client) = self.open(client) {
            // SAFETY: a client whose connection is open; undone by `resume`.
            unsafe { (self.symbols.ignore_client)(client.raw()) };
        }
    }

    fn resume(&mut self, client: ClientId) {
        if let Some(client) = self.open(client) {
            // SAFETY: a client that we ignored before.
            unsafe { (self.symbols.attend_client)(client.raw()) };
        }
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.identity(asker)
    }

    fn notify(&self, listener: ClientId, event: &Notify) {
        if usize::from(listener.0) >= ClientId::LIMIT {
            self.control.send_event(listener, event);
        } else if let Some(client) = self.open(listener) {
            self.symbols.send(client, &event.encode(self.first_event, client.sequence() as u16, order_of(client)));
        }
    }

    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()> {
        if usize::from(client.0) >= ClientId::LIMIT {
            return self.control.hand_over(client, fd);
        }
        let client = self.open(client).ok_or(io::ErrorKind::NotConnected)?;
        let write = self.symbols.write_fd_to_client.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: an open client and a descriptor that the server closes once it is sent.
        let written = unsafe { write(client.raw(), fd.into_raw_fd(), 1) };
        if written < 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Error> {
        if !self.ring.is_known() && !self.find_ring()? {
            return Ok(());
        }
        let clients = &self.clients;
        let walked = self.ring.walk(|client| {
            let index = client.index();
            clients.get(index).and_then(Option::as_ref).filter(|known| known.client == client).ok_or(Broken)?;
            ready.push(ClientId(index as u16));
            Ok(())
        });
        walked.map_err(|Broken| Error::BrokenRing)
    }

    fn begin(&mut self, slice: &Slice, ready: &[ClientId], now: Time) {
        let (mut sequence, mut established) = (0, true);
        match slice.choice {
            Choice::Client(id, _) => {
                self.hide_priorities();
                if let Some(known) = self.known(id) {
                    known.client.set_priority(1);
                    (sequence, established) = (known.client.sequence(), known.established);
                }
            }
            Choice::Server => {
                self.show_priorities();
                self.candidates.clear();
                for &id in ready {
                    self.candidates.push(id);
                    if let Some(known) = self.known_mut(id) {
                        known.sequence = known.client.sequence();
                    }
                }
            }
        }
        if self.sees_requests {
            per_request::slice_begins(slice.requests, slice.bytes, now);
        }
        self.running = Some(Running { choice: slice.choice, sequence, established });
    }

    fn finish(&mut self) -> Option<Work> {
        let running = self.running.take()?;
        let (id, before) = match running.choice {
            Choice::Client(id, _) => {
                if let Some(known) = self.known(id).filter(|_| !self.priorities_shown) {
                    known.client.set_priority(0);
                }
                (id, running.sequence)
            }
            Choice::Server => self.who_ran()?,
        };
        let known = self.known(id)?;
        let requests = known.client.sequence().wrapping_sub(before);
        // The server takes a request back that has to wait, and counts it again when it is its turn.
        let established = running.established && known.established;
        Some(Work {
            client: id,
            requests: if requests > u32::MAX / 2 || !established { 0 } else { requests },
            bytes: if self.sees_requests { per_request::bytes() } else { 0 },
            last_request: known.client.last_request(),
            still_ready: known.client.is_linked(),
        })
    }

    fn who_runs(&self) -> Option<ClientId> {
        self.who_ran().map(|(id, _)| id)
    }

    fn end_slice(&self) {
        self.symbols.end_slice();
    }

    fn see_requests(&mut self, seen: SeenRequests) {
        self.sees_requests = seen.counted || seen.timed;
        per_request::want(self.symbols, seen.counted, seen.timed);
    }

    fn watch(&mut self, contest: &Contest, until: Time) {
        self.watcher.slice_begins(contest, until);
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.watcher.slice_ends()
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64) {
        let fd = self.descriptor(client);
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::as_mut) else { return };
        // A socket that cannot be watched is noticed at the end of the slice, as in a server without us.
        if fd >= 0 && self.watcher.arm(client, fd, known.armed_before, rank, loan_ns).is_ok() {
            known.armed_before = true;
        }
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.watcher.arrival(client)
    }

    fn server_fds_may_preempt(&mut self, now: Time) {
        self.watcher.server_fds_may_preempt(now);
    }

    fn wake_at(&mut self, at: Time) {
        kernel::set_timer(&self.wakeup_timer, at);
    }

    /// A signal ends the wait, too.
    fn wait_for(&self, clients: impl Iterator<Item = ClientId>, until: Time) {
        kernel::wait_for(clients.map(|id| self.descriptor(id)), until);
    }

    fn ask_for_short_slices(&mut self, is_wanted: bool) {
        self.watcher.loan().ask_for_slices(if is_wanted { KERNEL_SLICE_NS } else { 0 });
    }

    fn begin_loan(&mut self) -> io::Result<()> {
        self.watcher.loan().begin()
    }

    fn end_loan(&mut self, limit_before: u32) {
        self.watcher.loan().end();
        cpu::limit_real_time(limit_before);
    }

    fn raise(&self, until: Time) {
        self.watcher.loan().raise(until);
    }

    fn lower(&self) {
        self.watcher.loan().lower();
    }

    fn raises(&self) -> u32 {
        self.watcher.loan().raises()
    }

    fn step_back(&mut self) {
        per_request::want(self.symbols, false, false);
        self.watcher.loan().ask_for_slices(0);
        if let Some(sync) = self.sync.take() {
            sync.remove(self.symbols);
        }
        self.show_priorities();
        unsafe extern "C" fn nobody(_: i32, _: i32, _: *mut std::ffi::c_void) {}
        for fd in [&self.wakeup_timer, &self.control_epoll] {
            // SAFETY: a mask of 0 takes the descriptor out of the server's poll.
            unsafe { (self.symbols.set_notify_fd)(fd.as_raw_fd(), nobody, 0, std::ptr::null_mut()) };
        }
    }
}
