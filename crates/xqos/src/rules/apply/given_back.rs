// SPDX-License-Identifier: MIT
//! Settings that `xqos rules adopt` has given back: they belong to nobody, so that the next look sets what rules say.

use super::super::auto::Auto;
use super::super::boosted::Boost;
use super::{ByMemory, Owner, Server};
use xqos_rules::setting::SettingKind;

/// A setting in a set of settings.
pub fn bit(kind: SettingKind) -> u32 {
    1 << kind as u32
}

impl<S: Server, A: Auto, B: Boost> ByMemory<S, A, B> {
    /// Those of the set may be set by rules again, as at the client's first look.
    pub(super) fn forget_settings(&mut self, client: u32, settings: u32) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        let is_given = |kind| settings & bit(kind) != 0;
        if is_given(SettingKind::Reserve) {
            known.reserved = Owner::Nobody;
            if std::mem::take(&mut known.is_auto) {
                self.auto.end(client);
            }
        }
        if is_given(SettingKind::Weight) {
            known.weight = Owner::Nobody;
        }
        if is_given(SettingKind::Priority) {
            known.priority = Owner::Nobody;
        }
        if is_given(SettingKind::Slice) {
            known.slice = Owner::Nobody;
        }
        if is_given(SettingKind::Group) {
            (known.group, known.cap) = (Owner::Nobody, Owner::Nobody);
        }
        if is_given(SettingKind::Pace) {
            known.paced = Owner::Nobody;
        }
        known.told.clear();
    }
}
