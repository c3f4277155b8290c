// SPDX-License-Identifier: MIT
//! The thread for a loan ([`crate::host::cpu`]): it raises the server's thread when data from a reserved client arrive,
//! and lowers it when the time for the raise is over. The thread exists only during a loan.

use crate::host::cpu::{Loan, WATCHER_SLICE_NS, ask_for_slices};
use crate::host::kernel::{drain, new_epoll, new_event, notify, now, spawn};
use crate::host::real_libc::{arm, control};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

const TIMER_TOKEN: u64 = u64::MAX;
const STOP_TOKEN: u64 = u64::MAX - 1;

/// The server thread's handle for the loan. Dropping it ends the loan and the thread.
#[derive(Debug)]
pub struct Lender {
    loan: Arc<Loan>,
    epoll: Arc<OwnedFd>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Lender {
    /// Begins a loan to the calling thread, which must be the server's and have slices of the kernel's default length.
    pub fn begin() -> io::Result<Lender> {
        let (loan, epoll, stop) = (Arc::new(Loan::new()?), Arc::new(new_epoll()?), new_event()?);
        control(&*epoll, libc::EPOLL_CTL_ADD, loan.timer(), libc::EPOLLIN as u32, TIMER_TOKEN)?;
        control(&*epoll, libc::EPOLL_CTL_ADD, stop.as_raw_fd(), libc::EPOLLIN as u32, STOP_TOKEN)?;
        let (is_here, here) = mpsc::channel();
        let (its_loan, its_epoll) = (Arc::clone(&loan), Arc::clone(&epoll));
        let thread = spawn("xqos-loan", move || {
            ask_for_slices(WATCHER_SLICE_NS);
            its_loan.watcher_is_here();
            let _ = is_here.send(());
            run(&its_loan, &its_epoll);
        })?;
        let _ = here.recv();
        let lender = Lender { loan, epoll, stop, thread: Some(thread) };
        lender.loan.begin()?;
        Ok(lender)
    }

    pub fn loan(&self) -> &Loan {
        &self.loan
    }

    /// Raises the server for this time when data arrive on this socket.
    pub fn watch(&self, socket: RawFd, loan_ns: u64) {
        // If the socket cannot be watched, its data do not raise the server.
        let _ = arm(&*self.epoll, socket, true, loan_ns.min(STOP_TOKEN - 1));
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.loan.end();
        notify(&self.stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(loan: &Loan, epoll: &OwnedFd) {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    loop {
        // SAFETY: the epoll is open, and the array has room for this many events.
        let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1) };
        for event in events.iter().take(usize::try_from(count).unwrap_or(0)) {
            match event.u64 {
                STOP_TOKEN => return,
                TIMER_TOKEN => {
                    drain(loan.timer());
                    loan.lower();
                }
                loan_ns => loan.raise(now().after(loan_ns)),
            }
        }
    }
}
