// SPDX-License-Identifier: MIT
//! `classic`: the scheduler of 1987 (Packard 2000, section 3.1), for comparison.
//!
//! The set of ready clients is fixed for a pass. Within a pass the clients take turns of ten requests, in the order of
//! their descriptors, round after round, until all their buffers are empty. Only then does the server look at its
//! sockets again, so a client that became ready meanwhile waits for the next pass.
//!
//! In 1987 a buffer held 4 KB and was filled once per pass. Today's servers keep reading while there is data, so here a
//! buffer counts as empty after 4096 bytes of requests, or when there is no more data.
//!
//! Passes and rounds are numbered, and a client's position is (pass, round, descriptor). Comparing positions therefore
//! keeps the set of a pass fixed without a copy of it.

use super::{Allowance, Facts, Policy, PolicyKind, QueueKey, Served};
use crate::words::Words;
use crate::{ClientId, Time};
use alloc::vec::Vec;

/// Requests per turn (section 3.1).
const REQUESTS_PER_TURN: u32 = 10;
/// Size of a client's buffer ("typically 4KB", section 3.1).
const BUFFER_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct ClassicState {
    pass: u64,
    round: u32,
    descriptor: u32,
    turn_requests: u32,
    pass_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Classic {
    places: Vec<ClassicState>,
    current_pass: u64,
}

impl Classic {
    fn place(&mut self, client: ClientId) -> &mut ClassicState {
        &mut self.places[client.slot()]
    }
}

impl Policy for Classic {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Classic
    }

    fn join(&mut self, client: ClientId, facts: &Facts) {
        if self.places.len() <= client.slot() {
            self.places.resize(client.slot() + 1, ClassicState::default());
        }
        let pass = self.current_pass + 1;
        *self.place(client) = ClassicState { pass, descriptor: facts.descriptor, ..ClassicState::default() };
    }

    fn ready(&mut self, client: ClientId, _idle_ns: u64) {
        let pass = self.current_pass + 1;
        let place = self.place(client);
        *place = ClassicState { pass, descriptor: place.descriptor, ..ClassicState::default() };
    }

    fn key(&self, client: ClientId) -> QueueKey {
        let place = &self.places[client.slot()];
        QueueKey(place.pass, (u64::from(place.round) << 32) | u64::from(place.descriptor))
    }

    fn picked(&mut self, client: ClientId, _ready: usize, _now: Time) -> Allowance {
        // A client that waited because of SYNC priorities is still in an earlier pass: move it to the current pass.
        let pass = self.current_pass.max(self.place(client).pass);
        self.current_pass = pass;
        self.place(client).pass = pass;
        let place = self.place(client);
        Allowance {
            slice_ns: u64::MAX,
            requests: REQUESTS_PER_TURN - place.turn_requests,
            bytes: (BUFFER_BYTES - place.pass_bytes) as u32,
        }
    }

    fn served(&mut self, client: ClientId, served: &Served) {
        let place = self.place(client);
        place.turn_requests = place.turn_requests.saturating_add(served.requests);
        place.pass_bytes = place.pass_bytes.saturating_add(served.bytes);
        if place.turn_requests >= REQUESTS_PER_TURN {
            place.turn_requests = 0;
            place.round = place.round.saturating_add(1);
        }
        if place.pass_bytes >= BUFFER_BYTES {
            *place = ClassicState { pass: place.pass + 1, descriptor: place.descriptor, ..ClassicState::default() };
        }
    }

    fn carry(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        self.current_pass = words.ns(self.current_pass)?;
        for &client in clients {
            let place = self.place(client);
            (place.pass, place.round) = (words.ns(place.pass)?, words.u32(place.round)?);
            place.turn_requests = words.below(REQUESTS_PER_TURN.into(), place.turn_requests.into())? as u32;
            place.pass_bytes = words.below(BUFFER_BYTES, place.pass_bytes)?;
        }
        Some(())
    }
}
