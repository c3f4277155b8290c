// SPDX-License-Identifier: MIT
//! Requests to the kernel's scheduler for the server's thread and for the watcher thread.
//!
//! **Short slices** let a thread run sooner but give it no more processor time. They need no privilege, and kernels
//! before 6.12 ignore them. The server's thread has them only under contention: on a mostly idle server, they delayed
//! programs that depend on each other (docs/contention.md).
//!
//! **A loan**: a privileged client (`xqos boost`) lends the server's thread a real-time priority, which the thread has
//! while it works for a reserved client. Without a loan, that client would wait for any CPU-bound program. The watcher
//! raises the thread when data from a reserved client arrive. The wakeup handler lowers it when another client is
//! chosen, and a timer lowers it at the latest after the length of the budget. The thread is also raised while a client
//! must redraw: otherwise input would wait for that client's use of the processor.
//!
//! Both threads use the loan without a lock. After raising, the caller checks whether the thread was lowered meanwhile
//! and lowers it again. A race can therefore lower the thread too early but never leave it raised.

use crate::host::kernel;
use rustix::process::{Pid, Resource, Rlimit, getpriority_process, getrlimit, setrlimit};
use rustix::thread::gettid;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use xqos_core::{Supply, Time};
use xqos_sys::Attributes;

/// The slice length of the watcher thread, which is the shortest that the kernel grants.
const WATCHER_SLICE_NS: u64 = 100_000;
/// The priority of the raised server thread. The programs that `xqos boost` raises stay below it.
const SERVER_PRIORITY: u32 = 3;
/// The watcher's priority during a loan. It is the highest, so that the watcher can always lower the server again.
const WATCHER_PRIORITY: u32 = 4;

/// The default scheduling policy with slices of this length and the current nice value.
fn usual(thread: i32, slice_ns: u64) -> Attributes {
    Attributes::normal(getpriority_process(Pid::from_raw(thread)).unwrap_or(0), slice_ns)
}

/// Sets the calling thread's slice length if it has the default scheduling policy; 0 lets the kernel choose.
fn ask_for_slices(ns: u64) {
    if Attributes::of(0).is_ok_and(|own| own.is_normal()) {
        let _ = usual(0, ns).give(0);
    }
}

/// The kernel's processor reservation for the calling thread.
pub fn supply() -> Supply {
    let reservation = Attributes::of(0).ok().and_then(|own| own.reservation());
    reservation.map_or_else(Supply::default, |(budget_ns, period_ns)| Supply { budget_ns, period_ns })
}

#[derive(Debug)]
pub struct Loan {
    server: i32,
    /// The slice length of the server's thread while it is not raised; 0 lets the kernel choose.
    server_slice_ns: AtomicU64,
    watcher: AtomicI32,
    /// The watcher calls [`lower`](Self::lower) when this timer expires, so that no raise outlasts its budget.
    pub timer: OwnedFd,
    is_on: AtomicBool,
    raised: AtomicBool,
    raises: AtomicU32,
}

impl Loan {
    /// Called on the server's thread.
    pub fn new() -> io::Result<Loan> {
        Ok(Loan {
            server: gettid().as_raw_pid(),
            server_slice_ns: AtomicU64::new(0),
            watcher: AtomicI32::new(0),
            timer: kernel::new_timer()?,
            is_on: AtomicBool::new(false),
            raised: AtomicBool::new(false),
            raises: AtomicU32::new(0),
        })
    }

    /// Sets the slice length that the calling server thread has while it is not raised.
    pub fn ask_for_slices(&self, ns: u64) {
        self.server_slice_ns.store(ns, Ordering::SeqCst);
        ask_for_slices(ns);
    }

    /// Registers the calling watcher thread, which needs a real-time priority if the server has a kernel reservation.
    pub fn watcher_is_here(&self) {
        // With short kernel slices, the thread runs promptly on busy processors. It needs hardly any processor time.
        ask_for_slices(WATCHER_SLICE_NS);
        self.watcher.store(gettid().as_raw_pid(), Ordering::SeqCst);
        if Attributes::of(self.server).is_ok_and(|server| server.reservation().is_some()) {
            // Without the privilege, the watcher keeps its default priority.
            let _ = Attributes::real_time(WATCHER_PRIORITY).give(0);
        }
    }

    /// Waits until the watcher thread, which was started, is registered.
    pub fn wait_for_watcher(&self) {
        while self.watcher.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Begins the loan. Fails if the kernel does not allow it or the server's thread does not have the default policy.
    pub fn begin(&self) -> io::Result<()> {
        let watcher = self.watcher.load(Ordering::SeqCst);
        if watcher == 0 || !Attributes::of(self.server)?.is_normal() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        Attributes::real_time(WATCHER_PRIORITY).give(watcher)?;
        self.is_on.store(true, Ordering::SeqCst);
        Ok(())
    }

    pub fn end(&self) {
        self.is_on.store(false, Ordering::SeqCst);
        self.lower();
        let thread = self.watcher.load(Ordering::SeqCst);
        if thread != 0 {
            let _ = usual(thread, WATCHER_SLICE_NS).give(thread);
        }
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// The number of times that the server's thread was raised.
    pub fn raises(&self) -> u32 {
        self.raises.load(Ordering::Relaxed)
    }

    /// Raises the server's thread for a reserved client, at most until this time.
    pub fn raise(&self, until: Time) {
        kernel::set_timer(&self.timer, until);
        if self.raised.swap(true, Ordering::SeqCst) {
            return;
        }
        self.raises.fetch_add(1, Ordering::Relaxed);
        let is_done = Attributes::real_time(SERVER_PRIORITY).give(self.server).is_ok();
        let is_wanted = self.raised.load(Ordering::SeqCst) && self.is_on.load(Ordering::SeqCst);
        if !is_done || !is_wanted {
            self.lower_now();
        }
    }

    /// Lowers the server's thread.
    pub fn lower(&self) {
        if self.raised.load(Ordering::SeqCst) {
            self.lower_now();
        }
    }

    fn lower_now(&self) {
        self.raised.store(false, Ordering::SeqCst);
        let _ = usual(self.server, self.server_slice_ns.load(Ordering::SeqCst)).give(self.server);
    }
}

/// Restores this process's limit on real-time priorities after a loan. Never raises the limit.
pub fn limit_real_time(priority: u32) {
    let wanted = u64::from(priority);
    // `None` stands for no limit.
    if getrlimit(Resource::Rtprio).maximum.is_none_or(|most| most > wanted) {
        let _ = setrlimit(Resource::Rtprio, Rlimit { current: Some(wanted), maximum: Some(wanted) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_ended_loan_does_not_raise_the_thread() {
        let loan = Arc::new(Loan::new().unwrap());
        loan.raise(Time::NEVER);
        assert!(!loan.is_raised(), "no loan is active");
        assert!(Attributes::of(0).unwrap().is_normal());
    }

    #[test]
    fn a_loan_is_refused_without_the_right_and_raises_and_lowers_with_it() {
        let loan = Arc::new(Loan::new().unwrap());
        let (started, wait) = std::sync::mpsc::channel();
        let (done, end) = std::sync::mpsc::channel::<()>();
        let watcher = std::thread::spawn({
            let loan = Arc::clone(&loan);
            move || {
                loan.watcher_is_here();
                started.send(()).unwrap();
                let _ = end.recv();
            }
        });
        wait.recv().unwrap();
        match loan.begin() {
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EPERM));
                assert!(!loan.is_on());
            }
            Ok(()) => {
                loan.raise(Time::NEVER);
                assert_eq!(Attributes::of(0).unwrap().real_time_priority(), Some(SERVER_PRIORITY));
                loan.lower();
                assert!(Attributes::of(0).unwrap().is_normal());
                loan.raise(Time::NEVER);
                loan.end();
                assert!(!loan.is_raised() && !loan.is_on());
                assert!(Attributes::of(0).unwrap().is_normal());
                assert!(Attributes::of(loan.watcher.load(Ordering::SeqCst)).unwrap().is_normal());
            }
        }
        drop(done);
        watcher.join().unwrap();
    }
}
