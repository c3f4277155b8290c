// SPDX-License-Identifier: MIT
//! The watcher thread: waits for arrivals, the timer and the server's own descriptors, and ends the running slice.

use super::server_fds::ServerFds;
use super::shared::{SEVERAL, Shared};
use super::{LOAN_TOKEN, SERVER_TOKEN, STOP_TOKEN, TIMER_TOKEN, UPDATE_TOKEN};
use crate::host::kernel::{drain, now, read_clock, set_timer};
use crate::mechanism::early_end::{EarlyEnd, EarlyEndAction};
use crate::mechanism::fault::FaultCounter;
use crate::mechanism::settings::FaultPlace;
use std::convert::Infallible;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use xqos_core::{Contest, Rank, Time};

pub struct WatcherThread<F> {
    pub shared: Arc<Shared>,
    pub server_fds: ServerFds,
    pub end_slice: F,
    pub early_end: EarlyEnd,
    pub faults: FaultCounter,
}

impl<F: Fn()> WatcherThread<F> {
    pub fn run(&mut self) {
        self.shared.loan.watcher_is_here();
        let epoll = self.shared.epoll.as_raw_fd();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 32];
        while !self.shared.stop.load(Ordering::SeqCst) {
            // SAFETY: the epoll is open, and the array has room for this many events.
            let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, -1) };
            let now = now();
            for event in events.iter().take(usize::try_from(count).unwrap_or(0)) {
                let Ok(()) = self.faults.pass::<Infallible>(FaultPlace::Watcher) else { return };
                let token = event.u64;
                match token {
                    STOP_TOKEN => return,
                    TIMER_TOKEN => self.timer_fired(now),
                    LOAN_TOKEN => {
                        drain(self.shared.loan.timer.as_raw_fd());
                        self.shared.loan.lower();
                    }
                    SERVER_TOKEN => self.server_has_work(now),
                    UPDATE_TOKEN => {
                        drain(self.shared.update.as_raw_fd());
                        self.server_fds.update(self.shared.descriptors(), now);
                    }
                    _ => self.arrived(token, now),
                }
            }
        }
    }

    fn arrived(&mut self, token: u64, now: Time) {
        let Some(slot) = self.shared.slots.get((token & 0xffff) as usize) else { return };
        if u64::from(slot.generation.load(Ordering::Relaxed)) != token >> 16 {
            return;
        }
        slot.arrived.store(now.0, Ordering::Relaxed);
        let loan_ns = slot.loan_ns.load(Ordering::Relaxed);
        if loan_ns > 0 && self.shared.loan.is_on() {
            self.shared.loan.raise(now.after(loan_ns));
        }
        let Some((slice, contest)) = self.running_slice(token as u16) else { return };
        let rank = Rank { tier: slot.tier.load(Ordering::Relaxed), key: slot.key.load(Ordering::Relaxed) };
        let verdict = self.early_end.arrived(slice, &contest, rank, now);
        self.carry_out(verdict, slice, now);
    }

    /// The running slice and its contest. Between two slices, notes that this client's arrival was missed: the server
    /// may already have polled, and would find the arrival only after the slice that is about to begin.
    fn running_slice(&self, client: u16) -> Option<(u64, Contest)> {
        loop {
            let slice = self.shared.slice.load(Ordering::SeqCst);
            if let Some(contest) = self.shared.contest().filter(|_| slice != 0) {
                return Some((slice, contest));
            }
            if self.shared.missed.swap(client.into(), Ordering::SeqCst) != 0 {
                self.shared.missed.store(SEVERAL, Ordering::SeqCst);
            }
            // The server looks at `missed` after it has begun a slice.
            if self.shared.slice.load(Ordering::SeqCst) == slice {
                return None;
            }
        }
    }

    /// The server's own descriptors have work, such as input, which the server reads between two slices.
    fn server_has_work(&mut self, now: Time) {
        self.shared.server_fired.store(true, Ordering::Relaxed);
        let slice = self.shared.slice.load(Ordering::Acquire);
        if slice == 0 {
            return;
        }
        let verdict = self.early_end.server_has_work(slice, now);
        self.carry_out(verdict, slice, now);
    }

    fn timer_fired(&mut self, now: Time) {
        drain(self.shared.timer.as_raw_fd());
        self.shared.timer_at.store(u64::MAX, Ordering::SeqCst);
        let slice = self.shared.slice.load(Ordering::SeqCst);
        if slice == 0 {
            return;
        }
        let has_yielded = self.shared.yielded.load(Ordering::Relaxed) == slice;
        let until = if has_yielded { Time::NEVER } else { Time(self.shared.until.load(Ordering::SeqCst)) };
        let verdict = self.early_end.time_has_come(slice, until, now);
        self.carry_out(verdict, slice, now);
    }

    fn carry_out(&mut self, verdict: EarlyEndAction, slice: u64, now: Time) {
        match verdict {
            EarlyEndAction::Nothing => {}
            EarlyEndAction::End => self.end(slice, now),
            EarlyEndAction::AskAt(at) if at.0 < self.shared.timer_at.load(Ordering::SeqCst) => self.program(at),
            EarlyEndAction::AskAt(_) => {}
        }
    }

    /// Ends the slice at the next request boundary.
    fn end(&mut self, slice: u64, now: Time) {
        if self.shared.yielded.load(Ordering::Relaxed) != slice {
            self.shared.yield_cpu_ns.store(read_clock(self.shared.server_cpu_clock), Ordering::Relaxed);
            self.shared.yielded.store(slice, Ordering::Release);
        }
        if self.shared.slice.load(Ordering::Acquire) == slice {
            (self.end_slice)();
            if let EarlyEndAction::AskAt(at) = self.early_end.ended(slice, now) {
                self.program(at);
            }
        }
    }

    fn program(&self, at: Time) {
        self.shared.timer_at.store(at.0, Ordering::SeqCst);
        set_timer(&self.shared.timer, at);
        // `at` may have replaced the earlier end of a slice that the server's thread began meanwhile.
        let until = self.shared.until.load(Ordering::SeqCst);
        if until < at.0 && self.shared.yielded.load(Ordering::Relaxed) != self.shared.slice.load(Ordering::SeqCst) {
            self.shared.timer_at.store(until, Ordering::SeqCst);
            set_timer(&self.shared.timer, Time(until));
        }
    }
}
