// SPDX-License-Identifier: MIT
//! Implements [`Host`] by changing what interposed libc calls return.

use super::clients::LibcClient;
use super::lender::Lender;
use super::{Libc, LibcSlice};
use crate::host::cpu::{self, Loan};
use crate::host::kernel::{self, now};
use crate::host::real_libc;
use crate::mechanism::host::{Host, ObservedRequests, Work};
use crate::mechanism::identity::Identity;
use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::Notify;
use xqos_core::{Choice, ClientId, Contest, Rank, Slice, Time};

impl Host for Libc {
    /// This host requires nothing of the server.
    type Error = Infallible;

    fn log(&self, line: &str) {
        eprintln!("xqos: {line}");
    }

    fn check(&mut self) -> Result<Option<String>, Infallible> {
        let program = || std::fs::read_link("/proc/self/exe").unwrap_or_default().display().to_string();
        Ok((!std::mem::replace(&mut self.named, true)).then(|| format!("{}, through libc", program())))
    }

    fn screens(&self) -> usize {
        0
    }

    fn redirector(&self, _screen: usize) -> Option<u32> {
        None
    }

    fn memory_bytes(&self) -> usize {
        self.clients.capacity() * size_of::<Option<LibcClient>>()
    }

    fn is_open(&self, client: ClientId) -> bool {
        self.known(client).is_some()
    }

    fn address(&self, client: ClientId) -> Option<String> {
        kernel::peer_address(self.known(client)?.descriptor)
    }

    fn forget(&mut self, client: ClientId) {
        let Some(known) = self.clients.get_mut(usize::from(client.0)).and_then(Option::take) else { return };
        self.by_data.remove(&known.data);
        self.muted -= usize::from(known.muted);
        if let Some(place) = self.by_descriptor.get_mut(known.descriptor as usize) {
            *place = None;
        }
    }

    fn hold(&mut self, client: ClientId) {
        if let Some(known) = self.known_mut(client) {
            known.held = true;
        }
    }

    fn resume(&mut self, client: ClientId) {
        if let Some(known) = self.known_mut(client) {
            known.held = false;
        }
    }

    fn identity_of_control(&self, asker: ClientId) -> Option<Identity> {
        self.control.identity(asker)
    }

    fn notify(&self, listener: ClientId, event: &Notify) {
        self.control.send_event(listener, event);
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

    fn begin(&mut self, slice: &Slice, _ready: &[ClientId], now: Time) {
        let chosen = match slice.choice {
            Choice::Client(id, _) => Some(id),
            Choice::Server => None,
        };
        self.end.set(false);
        self.running = LibcSlice { chosen, checked_at: now, ..LibcSlice::default() };
    }

    fn finish(&mut self) -> Option<Work> {
        self.measure(now());
        let running = std::mem::take(&mut self.running);
        let client = running.reader.or(running.chosen)?;
        let still_ready = self.known(client).is_some_and(LibcClient::is_ready);
        let LibcSlice { requests, bytes, last_request, .. } = running;
        Some(Work { client, requests, bytes, last_request, still_ready, is_cut: false, in_parts_ns: None })
    }

    fn running_client(&self) -> Option<ClientId> {
        self.running.reader
    }

    fn end_slice(&self) {
        self.end.set(true);
    }

    fn observe_requests(&mut self, _seen: ObservedRequests) {}

    fn count_exactly(&mut self, is_traced: bool) {
        self.is_traced = is_traced;
    }

    fn watch(&mut self, contest: &Contest, until: Time) {
        self.slice += 1;
        self.running.contest = Some((*contest, until));
        self.ask_at.set(until);
    }

    fn unwatch(&mut self) -> Option<u64> {
        self.running.contest.take()?;
        self.running.ended_at.take().map(|at| now().since(at))
    }

    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64) {
        let Some(known) = self.known_mut(client) else { return };
        (known.watched, known.arrived) = (Some(rank), None);
        let (descriptor, muted) = (known.descriptor, known.muted);
        if muted {
            let _ = real_libc::arm(&self.waiting, descriptor, false, client.0.into());
        }
        if let Some(lender) = self.lender.as_ref().filter(|_| loan_ns > 0) {
            lender.watch(descriptor, loan_ns);
        }
    }

    fn arrival(&self, client: ClientId) -> Option<Time> {
        self.known(client)?.arrived
    }

    fn server_fds_may_preempt(&mut self, _now: Time) {
        self.running.server_may_preempt = true;
    }

    fn wake_at(&mut self, at: Time) {
        kernel::set_timer(&self.timer, at);
    }

    fn wait_for(&self, clients: impl Iterator<Item = ClientId>, until: Time) -> Time {
        kernel::wait_for(clients.filter_map(|id| self.known(id)).map(|known| known.descriptor), until);
        now()
    }

    fn begin_loan(&mut self) -> io::Result<()> {
        let lender = Lender::begin()?;
        self.raised_before = self.raises();
        self.lender = Some(lender);
        Ok(())
    }

    fn end_loan(&mut self, limit_before: u32) {
        self.raised_before = self.raises();
        self.lender = None;
        cpu::limit_real_time(limit_before);
    }

    fn loan(&self) -> Option<&Loan> {
        self.lender.as_ref().map(Lender::loan)
    }

    fn raises(&self) -> u32 {
        self.raised_before + self.loan().map_or(0, Loan::raises)
    }

    fn step_back(&mut self) {
        self.alarm.keep(false);
        self.lender = None;
        for known in self.clients.iter_mut().flatten() {
            known.held = false;
        }
    }
}
