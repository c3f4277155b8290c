// SPDX-License-Identifier: MIT
//! Two bit sets of descriptors: those of clients, and those that xqos has added to the server's epoll.
//!
//! Every interposed libc call, in any thread, first checks one of these sets, so the check is a single load.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// xqos handles only clients whose descriptors are below this limit.
const LIMIT: usize = 65_536;

pub static CLIENTS: DescriptorSet = DescriptorSet::new();
pub static OURS: DescriptorSet = DescriptorSet::new();

#[derive(Debug)]
pub struct DescriptorSet([AtomicU64; LIMIT / 64]);

impl DescriptorSet {
    const fn new() -> DescriptorSet {
        DescriptorSet([const { AtomicU64::new(0) }; LIMIT / 64])
    }

    pub fn set(&self, fd: RawFd, is_in: bool) {
        let Some((word, bit)) = self.bit(fd) else { return };
        if is_in {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    pub fn has(&self, fd: RawFd) -> bool {
        self.bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    pub fn all(&self) -> impl Iterator<Item = RawFd> {
        (0..LIMIT as RawFd).filter(|&fd| self.has(fd))
    }

    fn bit(&self, fd: RawFd) -> Option<(&AtomicU64, u64)> {
        let fd = usize::try_from(fd).ok()?;
        Some((self.0.get(fd / 64)?, 1 << (fd % 64)))
    }
}
