// SPDX-License-Identifier: MIT
//! Who made which setting of a client, a group or the server, and which settings end with the connection that made them.
//!
//! A connection may say what others are told of its settings (a name), and that they are leased: then they end when it does,
//! however it ends. What was set without a lease, by hand or by the program itself, is never replaced by a leased setting.

use xqos_abi::{Label, SettingKind};
use xqos_core::ClientId;

/// Who made a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub name: Label,
    /// The connection with which it ends.
    pub leased_by: Option<ClientId>,
}

/// The origins of what is set of one subject, in the order in which it was set.
#[derive(Debug, Default)]
pub struct Made(Vec<(SettingKind, Origin)>);

impl Made {
    pub fn by(&self, kind: SettingKind) -> Option<Origin> {
        self.0.iter().find(|&&(other, _)| other == kind).map(|&(_, origin)| origin)
    }

    /// The name of who made the reservation.
    pub fn reservation_name(&self) -> Label {
        self.by(SettingKind::Reservation).map_or(Label::default(), |origin| origin.name)
    }

    /// The name of who made the last of all other settings.
    pub fn last_name(&self) -> Label {
        let last = self.0.iter().rev().find(|&&(kind, _)| kind != SettingKind::Reservation);
        last.map_or(Label::default(), |&(_, origin)| origin.name)
    }

    /// A setting was made, or is what it was at first again where there is no origin.
    pub fn set(&mut self, kind: SettingKind, origin: Option<Origin>) {
        self.0.retain(|&(other, _)| other != kind);
        self.0.extend(origin.map(|origin| (kind, origin)));
    }

    /// Whether this origin may set it: a lease stands back for what was set without one.
    pub fn gives_way(&self, kind: SettingKind, to: &Origin) -> bool {
        to.leased_by.is_none() || self.by(kind).is_none_or(|origin| origin.leased_by.is_some())
    }

    pub fn kinds(&self) -> impl Iterator<Item = SettingKind> + '_ {
        self.0.iter().map(|&(kind, _)| kind)
    }

    /// What ends with this connection.
    pub fn leased_by(&self, asker: ClientId) -> Vec<SettingKind> {
        self.0.iter().filter(|(_, origin)| origin.leased_by == Some(asker)).map(|&(kind, _)| kind).collect()
    }
}

/// What connections said of the settings that they make.
#[derive(Debug, Default)]
pub struct Origins(Vec<(ClientId, Label, bool)>);

impl Origins {
    /// An empty name: settings are told as made by hand again.
    pub fn set(&mut self, asker: ClientId, name: Label, lease: bool) {
        self.end(asker);
        if lease || !name.is_empty() {
            self.0.push((asker, name, lease));
        }
    }

    pub fn end(&mut self, asker: ClientId) {
        self.0.retain(|&(other, ..)| other != asker);
    }

    /// Of a setting that this connection makes now; `for_itself`: of its own client.
    pub fn of(&self, asker: ClientId, for_itself: bool) -> Origin {
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
    fn a_lease_gives_way_to_the_hand_and_not_the_other_way_round() {
        let mut origins = Origins::default();
        let (daemon, hand) = (ClientId(1), ClientId(2));
        origins.set(daemon, Label::new("rule players"), true);
        let (leased, by_hand) = (origins.of(daemon, false), origins.of(hand, false));
        let mut made = Made::default();
        assert!(made.gives_way(SettingKind::Weight, &leased));
        made.set(SettingKind::Weight, Some(leased));
        assert!(made.gives_way(SettingKind::Weight, &leased) && made.gives_way(SettingKind::Weight, &by_hand));
        made.set(SettingKind::Weight, Some(by_hand));
        assert!(!made.gives_way(SettingKind::Weight, &leased));
        assert_eq!((made.last_name().as_str(), made.reservation_name().as_str()), ("hand", ""));
        origins.end(daemon);
        assert_eq!(origins.of(daemon, true).name.as_str(), "itself");
    }
}
