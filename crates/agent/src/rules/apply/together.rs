// SPDX-License-Identifier: MIT
//! Applies what rules say to many clients, with one wait for the server: five hundred waits would take most of a second where
//! the processors are busy.
//!
//! Requests are sent as they are decided, and their answers are looked at in the end. A client of which one was refused is taken
//! as it was before and asked for anew, a request at a time, so that the refusal is told and remembered as ever: to ask twice for the
//! same changes nothing.

use super::super::auto::Auto;
use super::super::boosted::Boost;
use super::{Applied, Client, Server};
use xqos_abi::ClientEntry;
use xqos_rules::decide::Chosen;

impl<S: Server, A: Auto, B: Boost> Applied<S, A, B> {
    pub(super) fn together(&mut self, all: &[(&ClientEntry, Vec<Chosen<'_>>)]) -> Vec<String> {
        self.server.hold();
        let (mut made, mut all_told) = (Vec::new(), Vec::new());
        for (entry, chosen) in all {
            let (before, first) = (self.clients.get(&entry.client).cloned(), self.server.held());
            all_told.extend(self.begin(entry, chosen));
            let told = self.set(entry, chosen);
            made.push((before, first..self.server.held(), told));
        }
        let refused = self.server.settle();
        for ((entry, chosen), (before, requests, told)) in all.iter().zip(made) {
            if refused.iter().any(|at| requests.contains(at)) {
                self.set_back(entry.client, before.unwrap_or_default());
                all_told.extend(self.set(entry, chosen));
            } else {
                all_told.extend(told);
            }
        }
        all_told
    }

    /// What was set counts as before; searches and loans were begun at once.
    fn set_back(&mut self, client: u32, before: Client) {
        let now = self.clients.remove(&client).unwrap_or_default();
        let Client { is_auto, boosted, told, .. } = now;
        self.clients.insert(client, Client { is_auto, boosted, told, ..before });
    }
}

#[cfg(test)]
mod tests;
