// SPDX-License-Identifier: MIT
//! The kernel's scheduling of a thread: reading and setting its `struct sched_attr`.
//!
//! xqos in the server uses it for the server's thread, `xqos boost` for exposing programs, and `xqos run --cpu` for its
//! program; other commands show these settings. Raised settings use reset-on-fork: children and new threads start with
//! default scheduling.

use crate::checked;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::ptr;

const SCHED_DEADLINE: u32 = 6;
const RESET_ON_FORK: u64 = 1;

/// The kernel's `struct sched_attr` in its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl Attributes {
    /// The default policy. A slice of 0 lets the kernel choose; kernels before 6.12 always do.
    pub fn normal(nice: i32, slice_ns: u64) -> Attributes {
        Attributes { policy: libc::SCHED_OTHER as u32, nice, runtime_ns: slice_ns, ..Attributes::default() }
    }

    /// The default policy with an advantage for this thread only: children and new threads start with default
    /// scheduling.
    pub fn favoured(nice: i32, slice_ns: u64) -> Attributes {
        Attributes { flags: RESET_ON_FORK, ..Attributes::normal(nice, slice_ns) }
    }

    /// A real-time priority, 1 to 99, round robin among equal priorities.
    pub fn real_time(priority: u32) -> Attributes {
        Attributes { policy: libc::SCHED_RR as u32, priority, flags: RESET_ON_FORK, ..Attributes::default() }
    }

    /// SCHED_DEADLINE: this budget in each period, and no more.
    pub fn deadline(budget_ns: u64, period_ns: u64) -> Attributes {
        let (runtime_ns, deadline_ns) = (budget_ns, period_ns);
        let (policy, flags) = (SCHED_DEADLINE, RESET_ON_FORK);
        Attributes { policy, flags, runtime_ns, deadline_ns, period_ns, ..Attributes::default() }
    }

    /// The attributes of a thread; 0 is the calling thread.
    pub fn of(thread: i32) -> io::Result<Attributes> {
        let mut attributes = Attributes::default();
        let size = size_of::<Attributes>() as u32;
        // SAFETY: the buffer has room for `size` bytes.
        checked(unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0) })?;
        Ok(attributes)
    }

    /// Applies these attributes to a thread. EPERM: this needs CAP_SYS_NICE or, for real-time priorities, a sufficient
    /// RLIMIT_RTPRIO. EBUSY: the kernel's admission test refused a deadline reservation.
    pub fn give(mut self, thread: i32) -> io::Result<()> {
        self.size = size_of::<Attributes>() as u32;
        // SAFETY: `size` is the size of the attributes.
        checked(unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const self, 0) }).map(drop)
    }

    /// True for the default policy with any nice value.
    pub fn is_normal(&self) -> bool {
        self.policy == libc::SCHED_OTHER as u32
    }

    /// The nice value under the default policy.
    pub fn nice(&self) -> i32 {
        self.nice
    }

    /// Budget and period of SCHED_DEADLINE, in nanoseconds.
    pub fn reservation(&self) -> Option<(u64, u64)> {
        (self.policy == SCHED_DEADLINE).then_some((self.runtime_ns, self.period_ns))
    }

    /// The real-time priority under SCHED_RR and SCHED_FIFO.
    pub fn real_time_priority(&self) -> Option<u32> {
        [libc::SCHED_RR, libc::SCHED_FIFO].contains(&(self.policy as i32)).then_some(self.priority)
    }

    /// The attributes as numbers, for storage that outlives this process.
    pub fn words(&self) -> [u64; 4] {
        let low = u64::from(self.policy) | (u64::from(self.priority) << 8) | ((self.flags & 0xff) << 16);
        [low | (u64::from(self.nice as u32) << 32), self.runtime_ns, self.deadline_ns, self.period_ns]
    }

    /// Restores attributes from these numbers.
    pub fn from_words([head, runtime_ns, deadline_ns, period_ns]: [u64; 4]) -> Attributes {
        let (policy, priority) = (head as u32 & 0xff, (head as u32 >> 8) & 0xff);
        let (flags, nice) = ((head >> 16) & 0xff, (head >> 32) as u32 as i32);
        Attributes { size: 0, policy, flags, nice, priority, runtime_ns, deadline_ns, period_ns }
    }
}

/// Sets the highest real-time priority that a process may give itself (RLIMIT_RTPRIO), unless the limit is already high
/// enough; 0 is always set. Returns the previous limit.
pub fn allow_real_time(pid: i32, priority: u32) -> io::Result<u32> {
    let wanted = libc::rlimit { rlim_cur: priority.into(), rlim_max: priority.into() };
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limits outlive the calls. Permissions that the process already has are kept.
    unsafe {
        checked(libc::prlimit(pid, libc::RLIMIT_RTPRIO, ptr::null(), &mut before))?;
        if before.rlim_cur < wanted.rlim_cur || priority == 0 {
            checked(libc::prlimit(pid, libc::RLIMIT_RTPRIO, &wanted, ptr::null_mut()))?;
        }
    }
    Ok(u32::try_from(before.rlim_max).unwrap_or(u32::MAX))
}

/// Makes this thread wake up on time: no timer slack, and ahead of all ordinary threads if permitted.
pub fn wake_on_time() {
    // If a call fails, the thread keeps its scheduling.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
    let _ = Attributes::real_time(1).give(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_survive_conversion_to_numbers() {
        let kinds = [Attributes::normal(-20, 300_000), Attributes::real_time(99), Attributes::deadline(2, 10)];
        for attributes in kinds {
            assert_eq!(Attributes::from_words(attributes.words()), attributes);
        }
    }

    #[test]
    fn a_thread_has_the_normal_policy_and_may_set_it() {
        std::thread::spawn(|| {
            let own = Attributes::of(0).unwrap();
            assert!(own.is_normal() && own.reservation().is_none() && own.real_time_priority().is_none());
            own.give(0).unwrap();
            assert_eq!(Attributes::of(0).unwrap(), own);
        })
        .join()
        .unwrap();
    }
}
