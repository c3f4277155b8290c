// SPDX-License-Identifier: MIT
//! Finds long waits while the records arrive, with a few operations for each record.

use super::blocks::Blocks;
use super::seen::is_own;
use crate::model::Model;
use xqos_abi::trace::{Entry, Event};

/// Fires when a client has waited longer than the limit, or may have.
#[derive(Debug)]
pub struct Trigger {
    model: Model,
    blocks: Blocks,
    limit_ns: u64,
    asker: u32,
}

impl Trigger {
    pub fn new(limit_ns: u64, asker: u32) -> Trigger {
        Trigger { model: Model::without_causes(), blocks: Blocks::default(), limit_ns, asker }
    }

    /// Returns true if this event ends a long wait of a client that is not busy.
    pub fn take(&mut self, event: &Event) -> bool {
        if matches!(event.what, Entry::Begin { .. }) {
            self.model.forget_gone();
        }
        let burst = self.model.take(event);
        let block = self.blocks.take(event, &self.model);
        let counts = |key: usize| self.model.clients().get(key).is_some_and(|client| !is_own(client, self.asker));
        let is_light = |key: usize| counts(key) && !self.model.clients()[key].is_busy();
        burst.is_some_and(|burst| burst.waited_ns > self.limit_ns && is_light(burst.key))
            || block.is_some_and(|block| block.ns() > self.limit_ns && block.waiting.iter().any(|&key| counts(key)))
    }
}
