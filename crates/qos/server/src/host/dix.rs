// SPDX-License-Identifier: MIT
//! The host for servers that export their functions and variables and that have a known client record.
//!
//! | file | contents |
//! |---|---|
//! | `as_host` | answers and acts through the server's own functions |
//! | `symbols` | the server's functions and variables, looked up by name at run time |
//! | `hooks` | callbacks from the server; each is a panic boundary |
//! | `client` | the server's client record, through the C shim |
//! | `clients` | handles clients that connect and disconnect; checks that the server and its records are known |
//! | `ready` | the server's ring of ready clients |
//! | `sync_priority` | hides our use of the priority field from SYNC clients |
//! | `tables`, `ticks` | the server's request tables; count and time requests while `classic` or a trace needs it |
//! | `cell` | the engine, the tables and the requests that are being cut, in one place |
//! | `cutting` | the state of requests that are executed in parts |
//! | `per_request` | the wrappers around requests |
//! | `cut` | executes long requests in parts, and serves other clients between two parts |
//!
//! Invariant: between slices, every priority field has the value that `sync_priority` requires.

mod as_host;
mod cell;
pub mod client;
pub mod clients;
mod cut;
mod cutting;
pub mod error;
pub mod hooks;
pub mod per_request;
pub mod ready;
pub mod symbols;
pub mod sync_priority;
mod tables;
pub mod ticks;

use crate::host::control::Connections;
use crate::host::dix::client::LiveClient;
use crate::host::dix::clients::{DixClient, ServerChecks};
use crate::host::dix::error::Error;
use crate::host::dix::ready::{Broken, ReadyRing};
use crate::host::dix::symbols::{ExtensionEntry, NotifyFd, Symbols};
use crate::host::dix::tables::ENTRIES;
use crate::host::kernel;
use crate::host::real_libc;
use crate::host::watcher::Watcher;
use crate::mechanism::settings::Settings;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use xqos_abi::ByteOrder;
use xqos_core::{Choice, ClientId};

/// When clients compete with the server for the processors, the kernel schedules the server after this time rather than
/// after a client's 3 ms slice. Even shorter slices brought no further gain.
const KERNEL_SLICE_NS: u64 = 300_000;

/// The state during one generation of the server.
#[derive(Debug)]
pub struct Dix {
    symbols: &'static Symbols,
    clients: Vec<Option<DixClient>>,
    ring: ReadyRing,
    running: Option<DixSlice>,
    /// The clients that are ready. If the server itself chooses, it chooses one of them.
    candidates: Vec<ClientId>,
    /// The sockets whose data end the next wait.
    awaited: Vec<RawFd>,
    /// True during a server grab, when the clients that wait are in another ring.
    pub grabbed: bool,
    watcher: Watcher,
    wakeup_timer: OwnedFd,
    /// The control socket is also served during a server grab and when the server has no room for another client.
    pub control: Connections,
    /// An epoll with the sockets of `control`, so that the server polls only one descriptor for all of them.
    pub control_epoll: OwnedFd,
    /// Clients with a SYNC priority other than 0.
    prioritized: Vec<ClientId>,
    priorities_shown: bool,
    sees_requests: bool,
    /// Each request with parts is cut after each part; for tests.
    cuts_always: bool,
    checked: ServerChecks,
    first_event: u8,
    pub first_error: u8,
}

#[derive(Clone, Copy, Debug)]
struct DixSlice {
    choice: Choice,
    /// The client was already set up when the slice began. The setup itself does not count as a request.
    established: bool,
}

impl Dix {
    pub fn new(symbols: &'static Symbols, extension: &ExtensionEntry, settings: &Settings) -> Result<Dix, Error> {
        let wakeup_timer = kernel::new_timer().map_err(Error::Timer)?;
        let watcher = Watcher::new(|| symbols.end_slice(), wakeup_timer.as_raw_fd(), settings.fault);
        Ok(Dix {
            symbols,
            clients: Vec::new(),
            ring: ReadyRing::new(),
            running: None,
            candidates: Vec::new(),
            awaited: Vec::new(),
            grabbed: false,
            watcher: watcher.map_err(Error::Watcher)?,
            wakeup_timer,
            control: Connections::default(),
            control_epoll: kernel::new_epoll().map_err(Error::Timer)?,
            prioritized: Vec::new(),
            priorities_shown: true,
            sees_requests: false,
            cuts_always: settings.cuts_always,
            checked: ServerChecks::default(),
            first_event: extension.event_base as u8,
            first_error: extension.error_base as u8,
        })
    }

    /// Wraps SYNC and makes the server poll our timer and the control socket.
    pub fn hook(&mut self, wakeup_timer: NotifyFd, control_asked: NotifyFd) -> Result<(), Error> {
        let sync = self.symbols.extension(c"SYNC").and_then(|sync| usize::try_from(sync.base).ok());
        cell::tables().set_sync(self.symbols, sync.filter(|opcode| (128..ENTRIES).contains(opcode)).unwrap_or(0));
        self.listen();
        for (fd, called) in [(&self.wakeup_timer, wakeup_timer), (&self.control_epoll, control_asked)] {
            // SAFETY: the descriptor is ours, and `step_back` removes it before it is closed.
            let set = unsafe { (self.symbols.set_notify_fd)(fd.as_raw_fd(), called, 1, std::ptr::null_mut()) };
            if set == 0 {
                return Err(Error::NotPolled);
            }
        }
        Ok(())
    }

    /// Opens the control socket. If that fails, the extension still works.
    fn listen(&mut self) {
        let Some(display) = real_libc::display_of_process() else { return };
        if let Err(error) = self.control.listen(self.control_epoll.as_raw_fd(), display) {
            self.symbols.log(&format!("the control socket for display {display} was not created: {error}"));
        }
    }

    pub fn id_of(&self, client: LiveClient) -> Option<ClientId> {
        let id = ClientId(u16::try_from(client.index()).ok()?);
        self.known(id).filter(|known| known.client == client).map(|_| id)
    }

    fn known(&self, id: ClientId) -> Option<&DixClient> {
        self.clients.get(usize::from(id.0))?.as_ref()
    }

    pub fn has_no_clients(&self) -> bool {
        self.clients.iter().all(Option::is_none)
    }

    fn known_mut(&mut self, id: ClientId) -> Option<&mut DixClient> {
        self.clients.get_mut(usize::from(id.0))?.as_mut()
    }

    /// The client, if its connection is open.
    fn open(&self, id: ClientId) -> Option<LiveClient> {
        self.known(id).map(|known| known.client).filter(|client| !client.is_gone())
    }

    /// The client's socket; -1 if its connection is closed.
    fn descriptor(&self, id: ClientId) -> RawFd {
        self.open(id).map_or(-1, |client| self.symbols.descriptor(client))
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

pub fn order_of(client: LiveClient) -> ByteOrder {
    ByteOrder::swapped_if(client.is_swapped())
}
