// SPDX-License-Identifier: MIT
//! The server's ring of ready clients, as its own scheduler uses it.
//!
//! The head of the ring is a static variable without an exported name, so xqos searches for it once. The first time
//! that a client is ready, xqos walks that client's ring; the node that belongs to no client is the head. The search
//! never runs during a server grab, when waiting clients are in a ring with another head. Once the head is known, a
//! walk takes one step per ready client, like the server's own choice.

use crate::host::dix::client::{LiveClient, Ring, record_around};
use std::ptr::null_mut;

/// No server has more clients, so a longer ring is broken.
const LIMIT: usize = 4096;

#[derive(Debug)]
pub struct ReadyRing {
    head: *mut Ring,
}

/// The ring is not laid out as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl ReadyRing {
    pub fn new() -> Self {
        ReadyRing { head: null_mut() }
    }

    pub fn is_known(&self) -> bool {
        !self.head.is_null()
    }

    /// Finds the head of the ring through a ready client. `is_client` says whether an address is that of a live client.
    pub fn find(&mut self, ready: LiveClient, is_client: impl Fn(LiveClient) -> bool) -> Result<(), Broken> {
        let start = ready.ring();
        let mut node = start;
        for _ in 0..LIMIT {
            // SAFETY: the nodes form a ring of the server, which is walked on the server's thread.
            node = unsafe { (*node).next };
            if node == start {
                return Err(Broken);
            }
            // SAFETY: the pointer is only compared, and dereferenced only if it is a client.
            let candidate = unsafe { LiveClient::new(record_around(node)) };
            if !candidate.is_some_and(&is_client) {
                self.head = node;
                return Ok(());
            }
        }
        Err(Broken)
    }

    /// Calls `visit` for each ready client, in the order in which they became ready.
    pub fn walk(&self, mut visit: impl FnMut(LiveClient) -> Result<(), Broken>) -> Result<(), Broken> {
        if self.head.is_null() {
            return Ok(());
        }
        // SAFETY: the head is a static variable of the server.
        let mut node = unsafe { (*self.head).next };
        for _ in 0..LIMIT {
            if node == self.head {
                return Ok(());
            }
            // SAFETY: every node of this ring but the head is part of a live client.
            let client = unsafe { LiveClient::new(record_around(node)) }.ok_or(Broken)?;
            // SAFETY: as above. The node is read before the visit, which may not change the ring.
            let next = unsafe { (*node).next };
            visit(client)?;
            node = next;
        }
        Err(Broken)
    }
}
