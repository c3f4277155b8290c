// SPDX-License-Identifier: MIT
//! Settings that `xqos rules adopt` has given back: the next look asks for what rules say.

use super::super::auto::Auto;
use super::super::boosted::Boost;
use super::{Applied, Server};
use xqos_rules::setting::SettingKind;

/// A setting in a set of settings.
pub fn bit(kind: SettingKind) -> u32 {
    1 << kind as u32
}

impl<S: Server, A: Auto, B: Boost> Applied<S, A, B> {
    /// Those of the set are asked for again, as at the client's first look; a cap with its group.
    pub(super) fn forget_settings(&mut self, client: u32, settings: u32) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        let is_given = |kind| settings & bit(kind) != 0;
        known.asked.retain(|&kind, _| !is_given(if kind == SettingKind::Max { SettingKind::Group } else { kind }));
        if is_given(SettingKind::Reserve) && std::mem::take(&mut known.is_auto) {
            self.auto.end(client);
        }
        known.told.clear();
    }
}
