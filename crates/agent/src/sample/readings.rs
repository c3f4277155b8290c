// SPDX-License-Identifier: MIT
//! What a server tells of itself and its clients at one time.

use super::departed::Told;
use xqos_abi::{ClientEntry, ClientList, ServerInfo};
use xqos_client::{Control, Error};

#[derive(Clone, Debug)]
pub struct Readings {
    pub info: ServerInfo,
    pub list: ClientList,
    /// Clients that are gone, by program; empty after xqos has stepped aside.
    pub departed: Vec<ClientEntry>,
    /// The most that may be promised, which is no more than the server gets itself; 0 after xqos has stepped aside.
    pub limit_ppm: u32,
}

impl Readings {
    pub fn of(control: &Control) -> Result<Readings, Error> {
        let (info, list) = (control.server_info()?, control.clients()?);
        let (mut departed, mut limit_ppm) = (Vec::new(), 0);
        if info.armed {
            (departed, limit_ppm) = (control.departed()?.clients, control.processor()?.limit_ppm);
        }
        Ok(Readings { info, list, departed, limit_ppm })
    }

    /// Since earlier ones, or since the server began.
    pub fn elapsed_ns(&self, before: Option<&Readings>) -> u64 {
        before.map_or(self.info.uptime_ns, |before| self.list.now_ns.saturating_sub(before.list.now_ns))
    }

    pub fn told(&self) -> Told<'_> {
        Told { clients: &self.list.clients, departed: &self.departed }
    }
}
