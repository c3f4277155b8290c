// SPDX-License-Identifier: MIT
//! A server that exports its functions and variables, and whose client record we know.
//!
//! | file | what |
//! |---|---|
//! | `as_host` | what the mechanism asks for, by the server's own functions |
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

mod as_host;
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
use crate::host::control::Connections;
use crate::host::dix::client::Client;
use crate::host::dix::clients::{Checked, Known};
use crate::host::dix::error::Error;
use crate::host::dix::ready::{Broken, ReadyRing};
use crate::host::dix::symbols::{ExtensionEntry, NotifyFd, RequestProc, Symbols};
use crate::host::dix::sync_priority::Wrapped;
use crate::host::dix::watcher::Watcher;
use crate::host::kernel;
use crate::mechanism::settings::{FaultPlace, PlannedFault};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use xqos_abi::Order;
use xqos_core::{Choice, ClientId};

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
    pub control_epoll: OwnedFd,
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
