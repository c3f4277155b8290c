// SPDX-License-Identifier: MIT
//! Handles clients that connect and disconnect, and checks that xqos knows this server and its client records.

use super::client::{ConnectionState, LiveClient, roots, vendor_and_release};
use super::{Dix, Error};
use crate::host::peer;
use crate::mechanism::access::Identity;
use crate::mechanism::engine::{Engine, HookResult};
use crate::mechanism::host::NewConnection;
use std::os::fd::RawFd;
use xqos_core::{Choice, ClientId};

/// Earlier releases have a different client record. For later releases, the contents of the record are checked.
const FIRST_RELEASE: u32 = 12_000_000;
/// Releases whose window record has the layout in the shim's headers. Its contents cannot be checked at run time.
const KNOWN_WINDOWS: std::ops::Range<u32> = 12_101_000..12_200_000;

#[derive(Debug)]
pub struct DixClient {
    pub client: LiveClient,
    pub established: bool,
    pub armed_before: bool,
    /// The priority that a client has set through SYNC.
    pub sync_priority: i32,
    /// The client's sequence number when the slice began.
    pub sequence: u32,
}

#[derive(Debug, Default)]
pub struct ServerChecks {
    server: bool,
    record: bool,
    /// The root windows of all screens.
    pub roots: Vec<u32>,
    /// True if window records may be read.
    pub windows_known: bool,
    pub xinput_opcode: i32,
}

/// A client has connected, is set up, or has gone.
pub fn state_changed(engine: &mut Engine<Dix>, client: LiveClient) -> HookResult<Dix> {
    let id = match client.index() {
        index @ 1..ClientId::LIMIT => ClientId(index as u16),
        index => return Err(Error::ClientIndex(index).into()),
    };
    match client.state() {
        ConnectionState::Connecting => {
            // Check before the server polls the client's socket, while the libc host can still take over.
            if let Some(server) = engine.host.check_server()? {
                engine.server_is_known(&server);
            }
            engine.host.check_new_record(client)?;
            forget(engine, id);
            let connection = engine.host.connected(id, client);
            engine.connected(id, connection);
        }
        ConnectionState::Running => {
            engine.host.established(id, client)?;
            // A command with a space may contain arguments. In that case, the program is looked up by pid.
            let command = engine.host.symbols.command_of(client.raw()).filter(|command| !command.contains(' '));
            let program = command.map(|command| xqos_sys::last_part(&command).to_owned());
            if let Some(identity) = engine.identity(id) {
                let fd = engine.host.descriptor(id);
                engine.established(id, peer::established(identity, fd, program));
            }
        }
        ConnectionState::Retained => {
            // The server keeps the client's record and resources, and other clients may query its priority.
            if let Some(known) = engine.host.known(id) {
                known.client.set_priority(known.sync_priority);
            }
            forget(engine, id);
        }
        ConnectionState::Gone => forget(engine, id),
    }
    Ok(())
}

fn forget(engine: &mut Engine<Dix>, id: ClientId) {
    engine.gone(id);
    let host = &mut engine.host;
    host.watcher.gone(id);
    host.prioritized.retain(|&other| other != id);
    if let Some(known) = host.clients.get_mut(usize::from(id.0)) {
        *known = None;
    }
}

impl Dix {
    fn connected(&mut self, id: ClientId, client: LiveClient) -> NewConnection {
        let index = usize::from(id.0);
        if self.clients.len() <= index {
            self.clients.resize_with(index + 1, || None);
        }
        self.clients[index] =
            Some(DixClient { client, established: false, armed_before: false, sync_priority: 0, sequence: 0 });
        self.candidates.reserve(self.clients.len() - self.candidates.len());
        let fd: RawFd = self.symbols.descriptor(client);
        self.watcher.connected(id, fd);
        NewConnection {
            identity: if fd >= 0 { peer::identity_of(fd) } else { Identity::REMOTE },
            base: client.base(),
            ids: client.base() / u32::from(id.0),
            descriptor: u32::try_from(fd).unwrap_or(0),
        }
    }

    /// The client is set up. The server counts its requests from now on.
    fn established(&mut self, id: ClientId, client: LiveClient) -> Result<(), Error> {
        self.check_record(client)?;
        let chosen = |choice| matches!(choice, Choice::Client(chosen, _) if chosen == id);
        if let Some(running) = self.running.as_mut().filter(|running| chosen(running.choice)) {
            running.established = true;
        }
        if let Some(known) = self.known_mut(id) {
            (known.sequence, known.established) = (0, true);
        }
        Ok(())
    }

    /// Checks that xqos can continue. Returns the server's name once, when it becomes known.
    pub fn check(&mut self) -> Result<Option<String>, Error> {
        if !self.watcher.is_alive() {
            return Err(Error::WatcherEnded);
        }
        self.check_server()
    }

    /// Accepts X.Org servers. Returns the server's name the first time. The layout of a client's record is checked when
    /// it connects, before anything is written to the record.
    pub fn check_server(&mut self) -> Result<Option<String>, Error> {
        let setup = self.symbols.connection_setup();
        if self.checked.server || setup.is_null() {
            return Ok(None);
        }
        // SAFETY: `setup` is not null, and it is complete before the server dispatches.
        let (vendor, release) = unsafe { vendor_and_release(setup) };
        if !vendor.contains("X.Org") || release < FIRST_RELEASE {
            return Err(Error::UnknownServer(vendor, release));
        }
        self.checked = ServerChecks {
            server: true,
            record: self.checked.record,
            // SAFETY: `setup` is the server's connection setup and not null.
            roots: unsafe { roots(setup) },
            windows_known: KNOWN_WINDOWS.contains(&release),
            xinput_opcode: self.symbols.extension(c"XInputExtension").map_or(0, |extension| extension.base),
        };
        Ok(Some(format!("{vendor}, release {release}")))
    }

    /// Checks a new client's record against the layout in the headers, before anything is written to it.
    fn check_new_record(&self, client: LiveClient) -> Result<(), Error> {
        let index = client.index();
        let sound = self.symbols.client_at(index) == client.raw()
            && client.priority() == 0
            && client.base() != 0
            && client.base() as usize % index == 0
            && client.sequence() == 0;
        if sound || self.checked.record { Ok(()) } else { Err(Error::UnknownRecord) }
    }

    /// Repeats the check with fields that are known only for a running client.
    fn check_record(&mut self, client: LiveClient) -> Result<(), Error> {
        let tables = [self.symbols.proc_vector, self.symbols.swapped_proc_vector];
        let expected = tables[usize::from(client.is_swapped())].cast::<std::ffi::c_void>();
        self.checked.record |= client.request_vector() == expected.cast_const();
        if self.checked.record { Ok(()) } else { Err(Error::UnknownRecord) }
    }
}
