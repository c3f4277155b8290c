// SPDX-License-Identifier: MIT
//! Implements [`Host`] through the server's own functions.

use super::cell::tables;
use super::client::{LiveClient, device_grabs, redirector};
use super::clients::DixClient;
use super::cutting::Limit;
use super::error::Error;
use super::ready::Broken;
use super::symbols::symbols;
use super::{Dix, DixSlice, KERNEL_SLICE_NS, cut, order_of};
use crate::host::cpu;
use crate::host::engine_cell::Acts;
use crate::host::kernel;
use crate::host::watcher::Watcher;
use crate::mechanism::access::Identity;
use crate::mechanism::action::Action;
use crate::mechanism::host::{CutTotals, FinishedRest, Host, Work};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use xqos_abi::Notify;
use xqos_core::{Choice, ClientId, Rank, Slice, Supply, Time};

impl Host for Dix {
    type Error = Error;

    fn user(&self) -> u32 {
        kernel::user()
    }

    fn cpu_ns(&self) -> u64 {
        kernel::thread_cpu_ns()
    }

    fn run_times_ns(&self) -> Option<(u64, u64)> {
        kernel::thread_run_times_ns()
    }

    fn supply(&self) -> Supply {
        cpu::supply()
    }

    fn begin_loan(&mut self) -> io::Result<()> {
        self.watcher.begin_loan()
    }

    fn raises(&self) -> u32 {
        self.watcher.loan().raises()
    }

    fn screens(&self) -> usize {
        self.checked.roots.len()
    }

    fn redirector(&self, screen: usize) -> Option<u32> {
        let id = *self.checked.roots.get(screen).filter(|_| self.checked.windows_known)?;
        // SAFETY: `root` is the window with this id, and the window record of this server is known.
        self.symbols.window(id).and_then(|root| unsafe { redirector(root, id) })
    }

    fn device_grabs(&self) -> [u32; 2] {
        let input = NonNull::new(self.symbols.input_info).filter(|_| self.checked.windows_known);
        // SAFETY: `input` is the server's inputInfo, and the records of this server are known.
        input.map_or([0; 2], |input| unsafe { device_grabs(input) })
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<DixClient>>() + Watcher::memory_bytes()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.open(client).is_some()
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.identity(asker)
    }

    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()> {
        if usize::from(client.0) >= ClientId::LIMIT {
            return self.control.hand_over(client, fd);
        }
        let client = self.open(client).ok_or(io::ErrorKind::NotConnected)?;
        let write = self.symbols.write_fd_to_client.ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: the client is open, and the server closes the descriptor once it is sent.
        let written = unsafe { write(client.raw(), fd.into_raw_fd(), 1) };
        if written < 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    fn sees_each_request(&self) -> bool {
        true
    }

    fn ends_slices_itself(&self) -> bool {
        true
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Error> {
        self.candidates.clear();
        if !self.ring.is_known() && !self.find_ring()? {
            return Ok(());
        }
        let (clients, candidates) = (&mut self.clients, &mut self.candidates);
        let walked = self.ring.walk(|client| {
            let index = client.index();
            let known = clients.get_mut(index).and_then(Option::as_mut).filter(|known| known.client == client);
            known.ok_or(Broken)?.sequence = client.sequence();
            candidates.push(ClientId(index as u16));
            Ok(())
        });
        walked.map_err(|Broken| Error::BrokenRing)?;
        ready.extend(&self.candidates);
        Ok(())
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.watcher.arrival(client)
    }

    fn running_client(&self) -> Option<ClientId> {
        self.candidates
            .iter()
            .copied()
            .find(|&id| self.known(id).is_some_and(|known| known.client.sequence() != known.sequence))
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.watcher.slice_ends()
    }

    fn finish(&mut self) -> Option<Work> {
        let (chosen, returned) = (self.running.take(), cut::take_returned());
        let id = match chosen.map(|running| running.choice) {
            Some(Choice::Client(id, _)) => {
                if let Some(known) = self.known(id).filter(|_| !self.priorities_shown) {
                    known.client.set_priority(0);
                }
                id
            }
            Some(Choice::Server) | None => {
                let cut = || returned.and_then(|client| self.id_of(client));
                // It sent a part of a request, and the rest is not there yet.
                let reading = || match self.candidates[..] {
                    [id] => self.known(id).filter(|known| !known.client.is_linked()).map(|_| id),
                    _ => None,
                };
                self.running_client().or_else(cut).or_else(reading)?
            }
        };
        let known = self.known(id)?;
        let requests = known.client.sequence().wrapping_sub(known.sequence);
        // When a request must wait, the server decrements the sequence number and counts the request again later.
        let established = known.established && chosen.is_none_or(|running| running.established);
        Some(Work {
            client: id,
            requests: if requests > u32::MAX / 2 || !established { 0 } else { requests },
            bytes: if self.sees_requests { tables().bytes() } else { 0 },
            last_request: known.client.last_request(),
            still_ready: known.client.is_linked(),
            is_cut: returned == Some(known.client),
            in_parts_ns: cut::take_ended(known.client),
        })
    }

    fn take_finished(&mut self) -> Option<FinishedRest> {
        let (client, request, ns) = cut::take_finished()?;
        Some(FinishedRest { client: self.id_of(client)?, request, ns })
    }

    fn cut_totals(&self) -> Option<CutTotals> {
        cut::totals()
    }
}

/// A call into the server. No reference to the engine is held during the call, because the server may call xqos.
#[derive(Debug)]
pub enum ServerCall {
    Ignore(LiveClient),
    Attend(LiveClient),
    Send(LiveClient, [u8; 32]),
}

impl Acts for Dix {
    type Call = ServerCall;

    fn carry_out(&mut self, action: Action) -> Option<ServerCall> {
        match action {
            Action::Serve { slice, at } => self.serve(&slice, at),
            Action::EndSlice => self.symbols.end_slice(),
            Action::Watch { contest, until } => self.watcher.slice_begins(&contest, until),
            Action::WatchServer { at } => self.watcher.server_fds_may_preempt(at),
            Action::WatchClient { client, rank, loan_ns } => self.watch_client(client, rank, loan_ns),
            Action::Hold(client) => return self.open(client).map(ServerCall::Ignore),
            Action::Resume(client) => return self.open(client).map(ServerCall::Attend),
            Action::Notify { listener, event } => return self.notify(listener, &event),
            Action::WakeAt(at) => kernel::set_timer(&self.wakeup_timer, at),
            Action::Await(client) => self.awaited.push(self.descriptor(client)),
            Action::WaitUntil(until) => kernel::wait_for(self.awaited.drain(..), until),
            Action::ShortSlices(is_wanted) => {
                self.watcher.loan().ask_for_slices(if is_wanted { KERNEL_SLICE_NS } else { 0 });
            }
            Action::Raise(until) => self.watcher.loan().raise(until),
            Action::Lower => self.watcher.loan().lower(),
            Action::EndLoan { limit_before } => {
                self.watcher.loan().end();
                cpu::limit_real_time(limit_before);
            }
            Action::Observe(seen) => {
                self.sees_requests = seen.counted || seen.timed;
                tables().configure(self.symbols, seen.counted, seen.timed);
            }
            Action::Cut { part_ns } if self.checked.windows_known => {
                cut::configure(self.symbols, Limit { ns: part_ns, always: self.cuts_always });
            }
            Action::Cut { .. } => {}
            Action::Log(line) => self.symbols.log(&line),
        }
        None
    }

    fn call(call: ServerCall) {
        let Ok(symbols) = symbols() else { return };
        match call {
            // SAFETY: the client was open when the action was carried out, and no code ran since.
            ServerCall::Ignore(client) => unsafe { (symbols.ignore_client)(client.raw()) },
            // SAFETY: as above; the client was ignored before.
            ServerCall::Attend(client) => unsafe { (symbols.attend_client)(client.raw()) },
            ServerCall::Send(client, event) => symbols.send(client, &event),
        }
    }

    fn step_back(&mut self) {
        cut::stop(self.symbols);
        tables().configure(self.symbols, false, false);
        tables().set_sync(self.symbols, 0);
        self.watcher.loan().ask_for_slices(0);
        self.show_priorities();
        unsafe extern "C" fn nobody(_: i32, _: i32, _: *mut std::ffi::c_void) {}
        for fd in [&self.wakeup_timer, &self.control_epoll] {
            // SAFETY: a mask of 0 removes the descriptor from the server's poll.
            unsafe { (self.symbols.set_notify_fd)(fd.as_raw_fd(), nobody, 0, std::ptr::null_mut()) };
        }
    }
}

impl Dix {
    fn serve(&mut self, slice: &Slice, now: Time) {
        let mut established = true;
        match slice.choice {
            Choice::Client(id, _) => {
                self.hide_priorities();
                if let Some(known) = self.known(id) {
                    known.client.set_priority(1);
                    established = known.established;
                }
            }
            Choice::Server => self.show_priorities(),
        }
        if self.sees_requests {
            tables().slice_begins(slice.requests, slice.bytes, now);
        }
        self.running = Some(DixSlice { choice: slice.choice, established });
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64) {
        let fd = self.descriptor(client);
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::as_mut) else { return };
        // Data on a socket that cannot be watched is noticed at the end of the slice, as in a stock server.
        if fd >= 0 && self.watcher.arm(client, fd, known.armed_before, rank, loan_ns).is_ok() {
            known.armed_before = true;
        }
    }

    fn notify(&mut self, listener: ClientId, event: &Notify) -> Option<ServerCall> {
        if usize::from(listener.0) >= ClientId::LIMIT {
            self.control.send_event(listener, event);
            return None;
        }
        let client = self.open(listener)?;
        Some(ServerCall::Send(client, event.encode(self.first_event, client.sequence() as u16, order_of(client))))
    }
}
