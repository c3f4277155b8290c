// SPDX-License-Identifier: MIT
//! The state that the server's thread and the watcher share: descriptors, and plain numbers without a lock.

use crate::host::cpu::Loan;
use crate::host::kernel::{new_epoll, new_event, new_timer};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};
use xqos_core::{ClientId, Contest, Rank, Time};

#[derive(Debug, Default)]
pub struct Slot {
    pub tier: AtomicI64,
    pub key: AtomicI64,
    /// When the watcher saw the socket become readable; 0 if it has not become readable since it was armed.
    pub arrived: AtomicU64,
    /// The longest loan for this client ([`Loan`]); 0 without a reservation.
    pub loan_ns: AtomicU64,
    /// The client's socket; -1 if there is none.
    pub descriptor: AtomicI32,
    /// Distinguishes successive clients with the same index.
    pub generation: AtomicU32,
}

pub const SEVERAL: u32 = u32::MAX;

#[derive(Debug)]
pub struct Shared {
    pub epoll: OwnedFd,
    pub timer: OwnedFd,
    /// An eventfd that asks the watcher to update the list of the server's own descriptors.
    pub update: OwnedFd,
    /// The processor time of the server's thread.
    pub server_cpu_clock: libc::clockid_t,
    pub slots: Box<[Slot]>,
    /// The number of the running slice; 0 between slices.
    pub slice: AtomicU64,
    pub until: AtomicU64,
    pub timer_at: AtomicU64,
    contest_version: AtomicU64,
    contest: [AtomicI64; 6],
    /// The client whose data arrived between two slices, after the server polled or before; [`SEVERAL`] if there were
    /// several; 0 if there was none.
    pub missed: AtomicU32,
    /// One of the server's own descriptors had data, so they must be armed again.
    pub server_fired: AtomicBool,
    /// The number of the last slice that was ended early.
    pub yielded: AtomicU64,
    /// Processor time of the server's thread when that slice was ended.
    pub yield_cpu_ns: AtomicU64,
    /// True if the watcher thread ended because of a fault.
    pub failed: AtomicBool,
    pub stop: AtomicBool,
    pub loan: Loan,
}

impl Shared {
    /// Called on the server's thread.
    pub fn new() -> io::Result<Self> {
        let mut server_cpu_clock = libc::CLOCK_THREAD_CPUTIME_ID;
        // SAFETY: the clock is that of the calling thread, which lives as long as the server.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut server_cpu_clock) };
        Ok(Shared {
            epoll: new_epoll()?,
            timer: new_timer()?,
            update: new_event()?,
            server_cpu_clock,
            slots: (0..ClientId::LIMIT).map(|_| Slot { descriptor: AtomicI32::new(-1), ..Slot::default() }).collect(),
            slice: AtomicU64::new(0),
            until: AtomicU64::new(u64::MAX),
            timer_at: AtomicU64::new(u64::MAX),
            contest_version: AtomicU64::new(0),
            contest: Default::default(),
            missed: AtomicU32::new(0),
            server_fired: AtomicBool::new(false),
            yielded: AtomicU64::new(0),
            yield_cpu_ns: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            loan: Loan::new()?,
        })
    }

    pub fn publish_contest(&self, contest: &Contest) {
        let version = self.contest_version.load(Ordering::Relaxed);
        self.contest_version.store(version + 1, Ordering::Relaxed);
        // Pairs with the acquire fence of `contest`: a reader of a new field also sees the odd version.
        fence(Ordering::Release);
        let Contest { rank, start, growth, margin, desktop_turn } = *contest;
        let fields = [rank.tier, rank.key, start.0 as i64, i64::from(growth), margin, desktop_turn.0 as i64];
        for (place, field) in self.contest.iter().zip(fields) {
            place.store(field, Ordering::Relaxed);
        }
        self.contest_version.store(version + 2, Ordering::Release);
    }

    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.slots.iter().map(|slot| slot.descriptor.load(Ordering::Acquire)).filter(|&fd| fd >= 0)
    }

    /// The contest; `None` while it changes at the start or end of a slice. The next check reads the new contest.
    pub fn contest(&self) -> Option<Contest> {
        let version = self.contest_version.load(Ordering::Acquire);
        let [tier, key, start, growth, margin, desktop_turn] =
            [0, 1, 2, 3, 4, 5].map(|i: usize| self.contest[i].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if version % 2 == 1 || self.contest_version.load(Ordering::Relaxed) != version {
            return None;
        }
        let rank = Rank { tier, key };
        let (start, desktop_turn) = (Time(start as u64), Time(desktop_turn as u64));
        Some(Contest { rank, start, growth: growth as u32, margin, desktop_turn })
    }
}
