// SPDX-License-Identifier: MIT
//! The origin of each setting of a client, a group or the server, and which settings end with a connection.
//!
//! A connection may give its settings a name that is shown to users, and it may lease them: leased settings end when
//! the connection ends for any reason. A leased setting never replaces one that was set without a lease, manually or by
//! the program itself.

use xqos_abi::{Label, SettingKind};
use xqos_core::ClientId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub name: Label,
    /// The connection that leased the setting, if any.
    pub leased_by: Option<ClientId>,
}

/// The origins of one subject's settings, in the order in which they were set.
#[derive(Debug, Default)]
pub struct SettingOrigins(Vec<(SettingKind, Origin)>);

impl SettingOrigins {
    pub fn get(&self, kind: SettingKind) -> Option<Origin> {
        self.0.iter().find(|&&(other, _)| other == kind).map(|&(_, origin)| origin)
    }

    pub fn reservation_name(&self) -> Label {
        self.get(SettingKind::Reservation).map_or(Label::default(), |origin| origin.name)
    }

    /// The name of the origin of the most recent setting other than the reservation.
    pub fn last_name(&self) -> Label {
        let last = self.0.iter().rev().find(|&&(kind, _)| kind != SettingKind::Reservation);
        last.map_or(Label::default(), |&(_, origin)| origin.name)
    }

    /// Records the origin of a setting; `None` means that the setting has its initial value again.
    pub fn set(&mut self, kind: SettingKind, origin: Option<Origin>) {
        self.0.retain(|&(other, _)| other != kind);
        self.0.extend(origin.map(|origin| (kind, origin)));
    }

    /// Returns true if a setting from this origin may replace the present one. A lease replaces only a lease.
    pub fn gives_way(&self, kind: SettingKind, to: &Origin) -> bool {
        to.leased_by.is_none() || self.get(kind).is_none_or(|origin| origin.leased_by.is_some())
    }

    pub fn kinds(&self) -> impl Iterator<Item = SettingKind> + '_ {
        self.0.iter().map(|&(kind, _)| kind)
    }

    pub fn leased_by(&self, asker: ClientId) -> Vec<SettingKind> {
        self.0.iter().filter(|(_, origin)| origin.leased_by == Some(asker)).map(|&(kind, _)| kind).collect()
    }
}

/// The name and lease that each connection declared for its settings.
#[derive(Debug, Default)]
pub struct DeclaredOrigins(Vec<(ClientId, Label, bool)>);

impl DeclaredOrigins {
    /// An empty name without a lease restores the default origin of the connection's settings.
    pub fn set(&mut self, asker: ClientId, name: Label, lease: bool) {
        self.end(asker);
        if lease || !name.is_empty() {
            self.0.push((asker, name, lease));
        }
    }

    pub fn end(&mut self, asker: ClientId) {
        self.0.retain(|&(other, ..)| other != asker);
    }

    /// The origin of a setting that the asker makes now. `for_itself`: the setting is for a client of the same process.
    pub fn origin_for(&self, asker: ClientId, for_itself: bool) -> Origin {
        let said = self.0.iter().find(|&&(other, ..)| other == asker);
        let name = said.map(|&(_, name, _)| name).filter(|name| !name.is_empty());
        let by_default = || Label::new(if for_itself { "itself" } else { "hand" });
        let leased_by = said.filter(|&&(.., lease)| lease).map(|_| asker);
        Origin { name: name.unwrap_or_else(by_default), leased_by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_setting_replaces_a_lease_and_not_the_other_way_round() {
        let mut declared = DeclaredOrigins::default();
        let (daemon, hand) = (ClientId(1), ClientId(2));
        declared.set(daemon, Label::new("rule players"), true);
        let (leased, manual) = (declared.origin_for(daemon, false), declared.origin_for(hand, false));
        let mut settings = SettingOrigins::default();
        assert!(settings.gives_way(SettingKind::Weight, &leased));
        settings.set(SettingKind::Weight, Some(leased));
        assert!(settings.gives_way(SettingKind::Weight, &leased) && settings.gives_way(SettingKind::Weight, &manual));
        settings.set(SettingKind::Weight, Some(manual));
        assert!(!settings.gives_way(SettingKind::Weight, &leased));
        assert_eq!((settings.last_name().as_str(), settings.reservation_name().as_str()), ("hand", ""));
        declared.end(daemon);
        assert_eq!(declared.origin_for(daemon, true).name.as_str(), "itself");
    }
}
