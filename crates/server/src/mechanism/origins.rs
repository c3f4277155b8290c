// SPDX-License-Identifier: MIT
//! Who made which setting of a client, and which settings end with the connection that made them.
//!
//! A connection may say what others are told of its settings (a name), and that they are leased: then they end when it does,
//! however it ends. What was set without a lease, by hand or by the program itself, is never replaced by a leased setting.

use xqos_abi::Label;
use xqos_core::ClientId;

/// Who made a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub name: Label,
    /// The connection with which it ends.
    pub leased_by: Option<ClientId>,
}

/// What is set of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Reservation,
    Weight,
    Priority,
    Group,
    Pacing,
}

impl Setting {
    pub const ALL: [Setting; 5] =
        [Setting::Reservation, Setting::Weight, Setting::Priority, Setting::Group, Setting::Pacing];
}

/// The origins of a client's settings; of the many clients that have none it takes no memory.
#[derive(Debug, Default)]
pub struct Made {
    by: Option<Box<[Option<Origin>; Setting::ALL.len()]>>,
    /// Of weight, priority, group and pacing, which was set last.
    last: Option<Setting>,
}

impl Made {
    pub fn by(&self, setting: Setting) -> Option<Origin> {
        self.by.as_ref()?[setting as usize]
    }

    /// The name of who set weight, priority, group or pacing last.
    pub fn last_name(&self) -> Label {
        self.last.and_then(|setting| self.by(setting)).map_or(Label::default(), |origin| origin.name)
    }

    pub fn name(&self, setting: Setting) -> Label {
        self.by(setting).map_or(Label::default(), |origin| origin.name)
    }

    pub fn set(&mut self, setting: Setting, origin: Option<Origin>) {
        self.by.get_or_insert_default()[setting as usize] = origin;
        if setting != Setting::Reservation {
            let others =
                Setting::ALL.into_iter().find(|&other| other != Setting::Reservation && self.by(other).is_some());
            self.last = if origin.is_some() { Some(setting) } else { others };
        }
    }

    /// Whether this origin may set it: a lease stands back for what was set without one.
    pub fn gives_way(&self, setting: Setting, to: &Origin) -> bool {
        to.leased_by.is_none() || self.by(setting).is_none_or(|origin| origin.leased_by.is_some())
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
        assert!(made.gives_way(Setting::Weight, &leased));
        made.set(Setting::Weight, Some(leased));
        assert!(made.gives_way(Setting::Weight, &leased) && made.gives_way(Setting::Weight, &by_hand));
        made.set(Setting::Weight, Some(by_hand));
        assert!(!made.gives_way(Setting::Weight, &leased));
        assert_eq!((made.last_name().as_str(), made.name(Setting::Priority).as_str()), ("hand", ""));
        origins.end(daemon);
        assert_eq!(origins.of(daemon, true).name.as_str(), "itself");
    }
}
