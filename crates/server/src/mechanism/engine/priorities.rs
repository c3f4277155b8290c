//! The priority field of client records: between slices it holds what clients set by SYNC, within one it is ours.

use super::{Engine, Running};
use crate::host::dix::client::Client;
use crate::host::dix::symbols::RequestProc;
use crate::host::dix::watcher::now;
use xqos_core::{Choice, Fact};

impl Engine {
    /// The fields hold what clients set.
    pub fn show_priorities(&mut self) {
        if self.priorities_shown {
            return;
        }
        self.priorities_shown = true;
        if let Some(Running { choice: Choice::Client(id, _), .. }) = self.running {
            if let Some(slot) = self.slot(id) {
                slot.client.set_priority(slot.sync_priority);
            }
        }
        for &id in &self.prioritized {
            if let Some(slot) = self.slot(id) {
                slot.client.set_priority(slot.sync_priority);
            }
        }
    }

    /// The fields are ours.
    pub(super) fn hide_priorities(&mut self) {
        if !self.priorities_shown {
            return;
        }
        self.priorities_shown = false;
        for &id in &self.prioritized {
            if let Some(slot) = self.slot(id) {
                slot.client.set_priority(0);
            }
        }
    }

    /// A client may have set priorities: any client's.
    pub fn take_priorities(&mut self) {
        let at = now();
        for id in self.ids() {
            let Some(slot) = self.slot_mut(id) else { continue };
            let priority = slot.client.priority();
            if priority != slot.sync_priority {
                slot.sync_priority = priority;
                self.prioritized.retain(|&other| other != id);
                if priority != 0 {
                    self.prioritized.push(id);
                }
                self.scheduler.handle(at, Fact::SyncPriority { client: id, priority });
            }
        }
    }

    pub fn original_of_sync(&self, client: Client) -> Option<RequestProc> {
        self.sync.map(|sync| sync.original(client))
    }
}
