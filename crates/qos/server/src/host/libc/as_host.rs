// SPDX-License-Identifier: MIT
//! Implements [`Host`] by changing what interposed libc calls return.

use super::clients::LibcClient;
use super::{Libc, LibcSlice};
use crate::host::cpu;
use crate::host::engine_cell::Acts;
use crate::host::kernel::{self, now};
use crate::host::real_libc;
use crate::host::watcher::Watcher;
use crate::mechanism::access::Identity;
use crate::mechanism::action::Action;
use crate::mechanism::host::{Host, Work};
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use xqos_core::{Choice, ClientId, Rank, Slice, Supply, Time};

impl Host for Libc {
    /// This host requires nothing of the server.
    type Error = Infallible;

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
        let mut watcher = Watcher::new(|| {}, self.timer.as_raw_fd(), None)?;
        watcher.begin_loan()?;
        self.end_loan();
        self.lender = Some(watcher);
        Ok(())
    }

    fn raises(&self) -> u32 {
        self.raised_before + self.lender.as_ref().map_or(0, |lender| lender.loan().raises())
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<LibcClient>>()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.known(client).is_some()
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.identity(asker)
    }

    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()> {
        self.control.hand_over(client, fd)
    }

    fn sees_each_request(&self) -> bool {
        false
    }

    /// The server sees only one ready client at a time and would let that client continue.
    fn ends_slices_itself(&self) -> bool {
        false
    }

    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Infallible> {
        let clients = &mut self.clients;
        self.queue.retain(|id| {
            let Some(known) = clients.get_mut(usize::from(id.0)).and_then(Option::as_mut) else { return false };
            known.is_queued = known.pending || known.saved != 0;
            if known.is_ready() {
                ready.push(*id);
            }
            known.is_queued
        });
        Ok(())
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.known(client)?.arrived
    }

    fn running_client(&self) -> Option<ClientId> {
        self.running.reader
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.running.contest.take()?;
        self.running.ended_at.take().map(|at| now().since(at))
    }

    fn finish(&mut self) -> Option<Work> {
        self.measure(now());
        let running = std::mem::take(&mut self.running);
        let client = running.reader.or(running.chosen)?;
        let still_ready = self.known(client).is_some_and(LibcClient::is_ready);
        let LibcSlice { requests, bytes, last_request, .. } = running;
        Some(Work { client, requests, bytes, last_request, still_ready, is_cut: false, in_parts_ns: None })
    }
}

impl Acts for Libc {
    /// No action of this host calls the server.
    type Call = Infallible;

    fn carry_out(&mut self, action: Action) -> Option<Infallible> {
        match action {
            Action::Serve { slice, at } => self.serve(&slice, at),
            Action::EndSlice => self.end = true,
            Action::Watch { contest, until } => {
                self.slice += 1;
                self.running.contest = Some((contest, until));
                self.ask_at = until;
            }
            Action::WatchServer { .. } => self.running.server_may_preempt = true,
            Action::WatchClient { client, rank, loan_ns } => self.watch_client(client, rank, loan_ns),
            Action::Hold(client) => self.set_held(client, true),
            Action::Resume(client) => self.set_held(client, false),
            Action::Notify { listener, event } => self.control.send_event(listener, &event),
            Action::WakeAt(at) => kernel::set_timer(&self.timer, at),
            Action::Await(client) => self.awaited.extend(self.known(client).map(|known| known.descriptor)),
            Action::WaitUntil(until) => kernel::wait_for(self.awaited.drain(..), until),
            Action::Raise(until) => self.lender.iter().for_each(|lender| lender.loan().raise(until)),
            Action::Lower => self.lender.iter().for_each(|lender| lender.loan().lower()),
            Action::EndLoan { limit_before } => {
                self.end_loan();
                cpu::limit_real_time(limit_before);
            }
            Action::Observe(seen) => self.is_traced = seen.exact,
            Action::ShortSlices(_) | Action::Cut { .. } => {}
            Action::Log(line) => eprintln!("xqos: {line}"),
        }
        None
    }

    fn call(call: Infallible) {
        match call {}
    }

    fn step_back(&mut self) {
        self.alarm.keep(false);
        self.end_loan();
        for known in self.clients.iter_mut().flatten() {
            known.held = false;
        }
    }
}

impl Libc {
    fn serve(&mut self, slice: &Slice, now: Time) {
        let chosen = match slice.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => None,
        };
        self.end = false;
        self.running = LibcSlice { chosen, checked_at: now, ..LibcSlice::default() };
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64) {
        let Some(known) = self.known_mut(client) else { return };
        (known.watched, known.arrived) = (Some(rank), None);
        let (descriptor, muted) = (known.descriptor, known.muted);
        if muted {
            let _ = real_libc::arm(&self.waiting, descriptor, false, client.0.into());
        }
        if let Some(lender) = self.lender.as_mut().filter(|_| loan_ns > 0) {
            // If the socket cannot be watched, its data do not raise the server.
            let _ = lender.arm(client, descriptor, true, rank, loan_ns);
        }
    }

    fn end_loan(&mut self) {
        if let Some(lender) = self.lender.take() {
            lender.loan().end();
            self.raised_before += lender.loan().raises();
        }
    }

    fn set_held(&mut self, client: ClientId, held: bool) {
        if let Some(known) = self.known_mut(client) {
            known.held = held;
        }
    }

    /// The server's name once, when it becomes known.
    pub fn name(&mut self) -> Option<String> {
        let program = || std::env::current_exe().unwrap_or_default().display().to_string();
        (!std::mem::replace(&mut self.named, true)).then(|| format!("{}, through libc", program()))
    }

    pub fn forget(&mut self, client: ClientId) {
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::take) else { return };
        self.by_data.remove(&known.data);
        self.muted -= usize::from(known.muted);
        if let Some(place) = self.by_descriptor.get_mut(known.descriptor as usize) {
            *place = None;
        }
    }
}
