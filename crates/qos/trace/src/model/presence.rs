// SPDX-License-Identifier: MIT
//! Records that clients connect, are identified, and disconnect.

use super::threads::text;
use super::{Cause, Client, Model};
use xqos_core::{ClientId, Time};

impl Model {
    pub(super) fn create(&mut self, id: ClientId, at: Time) -> usize {
        self.destroy(id, at);
        let client = Client { id, connected: at, waits_since: at, ..Client::default() };
        let key = self.free.pop().unwrap_or(self.clients.len());
        match self.clients.get_mut(key) {
            Some(forgotten) => *forgotten = client,
            None => self.clients.push(client),
        }
        self.present.insert(id, key);
        key
    }

    pub(super) fn create_unless(&mut self, id: ClientId, at: Time) -> usize {
        match self.key(id) {
            Some(key) => key,
            None => self.create(id, at),
        }
    }

    pub(super) fn identify(&mut self, id: ClientId, (pid, base, uid): (u32, u32, u32), at: Time) {
        let mut key = self.create_unless(id, at);
        let known = self.clients[key].identity.base;
        // After a gap in the trace, the index may belong to another client.
        if known != 0 && (known, self.clients[key].identity.pid) != (base, pid) {
            key = self.create(id, at);
        }
        self.local.insert(pid);
        let identity = &mut self.clients[key].identity;
        (identity.pid, identity.base, identity.uid) = (pid, base, uid);
    }

    pub(super) fn rename(&mut self, id: ClientId, part: u8, bytes: &[u8]) {
        let Some(key) = self.key(id) else { return };
        let client = &mut self.clients[key];
        if part == 0 {
            client.name.clear();
        }
        if client.name.len() < 256 {
            client.name.extend(bytes.iter().take_while(|&&byte| byte != 0));
        }
        // A multi-byte character may be split between two parts.
        client.identity.program = text(&client.name);
    }

    pub(super) fn destroy(&mut self, id: ClientId, at: Time) {
        let Some(key) = self.present.remove(&id) else { return };
        self.ready.retain(|&other| other != key);
        self.end_grab(key, at);
        let client = &mut self.clients[key];
        (client.gone, client.ready_since, client.budget) = (Some(at), None, None);
    }

    /// Drops the figures of disconnected clients. Views that run for weeks need this. Their identities stay until the
    /// next call; then later clients may get their keys.
    pub fn forget_gone(&mut self) {
        let is_gone = |clients: &[Client], key: usize| clients.get(key).is_none_or(|client| client.gone.is_some());
        self.free.append(&mut self.forgotten);
        let gone = |client: &Client| client.gone.is_some() && !client.is_forgotten;
        for (key, client) in self.clients.iter_mut().enumerate().filter(|(_, client)| gone(client)) {
            (client.total, client.recent, client.waits) = Default::default();
            client.is_forgotten = true;
            self.forgotten.push(key);
        }
        if self.forgotten.is_empty() {
            return;
        }
        let clients = &self.clients;
        self.local = clients.iter().filter(|client| !client.is_forgotten).map(|client| client.identity.pid).collect();
        self.worst.retain(|burst| !is_gone(clients, burst.key));
        self.delays.retain(|(key, cause), _| {
            let by = match cause {
                Cause::Client { key, .. } | Cause::Grab { key } => Some(*key),
                Cause::Kernel | Cause::Server | Cause::HeldBack => None,
            };
            !is_gone(clients, *key) && by.is_none_or(|by| !is_gone(clients, by))
        });
    }
}
