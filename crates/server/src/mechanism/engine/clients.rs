//! Clients come, are set up, grab the server, and go; and whether this server and its client records are those we know.

use super::{Engine, Outcome, Slot, Told};
use crate::host::dix::client::{Client, State, vendor_and_release};
use crate::host::dix::watcher::now;
use crate::mechanism::access::{Identity, program_name};
use xqos_abi::NotifyKind;
use xqos_core::{Choice, ClientId, Fact};

const UNKNOWN_RECORD: &str = "the client record is not laid out as this build expects";

impl Engine {
    pub fn client_state(&mut self, client: Client) -> Outcome {
        let index = client.index();
        if index == 0 || index >= ClientId::LIMIT {
            return Err(format!("a client has the index {index}"));
        }
        let id = ClientId(index as u16);
        match client.state() {
            State::Connecting => {
                if !self.record_checked {
                    self.check_new_record(client)?;
                }
                self.connecting(id, client);
            }
            State::Running => return self.running(id, client),
            State::Retained => {
                // Its record lives on with its resources, and other clients may ask for its priority.
                if let Some(slot) = self.slot(id) {
                    slot.client.set_priority(slot.sync_priority);
                }
                self.gone(id);
            }
            State::Gone => self.gone(id),
        }
        Ok(())
    }

    fn connecting(&mut self, id: ClientId, client: Client) {
        let index = usize::from(id.0);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.gone(id);
        // SAFETY: the client just got its connection.
        let fd = unsafe { (self.host.get_client_fd)(client.raw()) };
        let identity = if fd >= 0 { Identity::of_peer(fd) } else { Identity::REMOTE };
        self.slots[index] = Some(Slot {
            client,
            identity,
            program: Box::default(),
            sync_priority: 0,
            event_mask: 0,
            established: false,
            linked: false,
            ignored: false,
            armed_before: false,
            seen: 0,
            sequence: 0,
            told: Told::default(),
        });
        self.ready.reserve(self.slots.len() - self.ready.len());
        self.watcher.connected(id, fd);
        let descriptor = u32::try_from(fd).unwrap_or(0);
        self.scheduler.handle(now(), Fact::Connected { client: id, descriptor });
    }

    fn running(&mut self, id: ClientId, client: Client) -> Outcome {
        if !self.record_checked {
            self.check_record(client)?;
        }
        let host = self.host;
        if let Some(running) =
            self.running.as_mut().filter(|running| matches!(running.choice, Choice::Client(chosen, _) if chosen == id))
        {
            // The server counts requests from here on.
            (running.sequence, running.established) = (0, true);
        }
        if let Some(slot) = self.slot_mut(id) {
            slot.established = true;
            slot.sequence = 0;
            let command = host.command_of(client.raw()).map(|command| program_name(&command));
            slot.program = command.unwrap_or_else(|| slot.identity.program()).into();
        }
        self.note_identity(id);
        self.tell(NotifyKind::ClientConnected, id, 0);
        Ok(())
    }

    fn gone(&mut self, id: ClientId) {
        if self.slot(id).is_none() {
            return;
        }
        self.tell(NotifyKind::ClientGone, id, 0);
        self.leave_seats(id);
        self.set_linked(id, false);
        self.watcher.gone(id);
        let at = now();
        self.scheduler.handle(at, Fact::Gone { client: id });
        if self.scheduler.trace.end(id, at) {
            self.see_requests();
        }
        self.prioritized.retain(|&other| other != id);
        self.listeners.retain(|&other| other != id);
        self.attention.end(id);
        if self.lender.is_some_and(|(lender, _)| lender == id) {
            self.end_loan();
        }
        self.slots[usize::from(id.0)] = None;
    }

    pub fn grabbed(&mut self, client: Client, grabs: bool) -> Outcome {
        let Some(id) = self.id_of(client) else { return Ok(()) };
        let at = now();
        self.scheduler.handle(at, Fact::Grabbed { by: grabs.then_some(id) });
        self.grab_reported = false;
        // Who holds the grab is not held back, and may be again afterwards.
        self.sync_hold(id);
        Ok(())
    }

    // Self-checks.

    /// A server that we know: X.Org's, of the releases whose records we were built for.
    pub(super) fn check_server(&mut self) -> Outcome {
        let setup = self.host.connection_setup();
        if setup.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and made by the server before it dispatches.
        let (vendor, release) = unsafe { vendor_and_release(setup) };
        let known = vendor.contains("X.Org") && (12_000_000..12_200_000).contains(&release);
        if !known {
            return Err(format!(
                "the server is \"{vendor}\" {release}, whose client record is not known to this build"
            ));
        }
        self.server_checked = true;
        self.find_roots(setup, release);
        self.xinput_opcode = self.host.extension(c"XInputExtension").map_or(0, |extension| extension.base);
        self.see_requests();
        let (policy, version) = (self.scheduler.policy().name(), env!("CARGO_PKG_VERSION"));
        self.host.log(&format!("version {version} serves this server ({vendor}, release {release}); policy {policy}"));
        Ok(())
    }

    /// The client record is laid out as we were compiled: before anything is written to one.
    fn check_new_record(&self, client: Client) -> Outcome {
        let index = client.index();
        let sound = self.host.client_at(index) == client.raw()
            && client.priority() == 0
            && client.base() != 0
            && client.base() as usize % index == 0;
        if sound { Ok(()) } else { Err(UNKNOWN_RECORD.to_owned()) }
    }

    /// The same, for what is only known of a client that runs.
    fn check_record(&mut self, client: Client) -> Outcome {
        let tables = [self.host.proc_vector, self.host.swapped_proc_vector];
        let expected = tables[usize::from(client.is_swapped())].cast::<std::ffi::c_void>();
        if client.request_vector() != expected.cast_const() {
            return Err(UNKNOWN_RECORD.to_owned());
        }
        self.record_checked = true;
        Ok(())
    }
}
