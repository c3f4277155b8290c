// SPDX-License-Identifier: MIT
//! Groups of clients that are scheduled together.
//!
//! | grouping | a client's group |
//! |---|---|
//! | none | no group: each client is scheduled separately |
//! | application | its control group if that belongs to an application (`app-NAME-ID.scope`), else its process |
//! | user | its user; a remote client has no group |
//!
//! A client that was put into a group by name stays there under any grouping. The names `:none`, `:app` and `:user` put
//! a client where the grouping of that name would. Invariant: a group has a number if and only if it has members.

use crate::mechanism::access::Identity;
use crate::mechanism::origins::SettingOrigins;
use xqos_abi::{Grouping, Label};
use xqos_core::{ClientId, GroupId};

/// The property that the clients of a group share.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Named(Label),
    /// Includes the user id: a user who can name a control group must not enter another user's group.
    ControlGroup(u32, Box<str>),
    Process(i32),
    User(u32),
}

#[derive(Debug)]
struct Group {
    key: Key,
    id: GroupId,
    label: Label,
    members: usize,
    /// The user whose limit the group's reservation counts towards.
    reserved_for: Option<u32>,
    origins: SettingOrigins,
}

/// The properties of a client that determine its group.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub identity: Identity,
    pub program: &'a str,
    pub control_group: Option<&'a str>,
    pub named: Option<Label>,
}

#[derive(Debug, Default)]
pub struct Groups {
    pub grouping: Grouping,
    /// The largest sum of the reservations of one user, in millionths; 0 means no limit.
    pub user_limit_ppm: u32,
    groups: Vec<Group>,
    /// The number of the newest group.
    newest: u16,
}

impl Groups {
    pub fn new(grouping: Grouping) -> Groups {
        Groups { grouping, ..Groups::default() }
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    pub fn label(&self, id: GroupId) -> Label {
        self.group(id).map_or(Label::default(), |group| group.label)
    }

    /// The group of this name, if it has clients.
    pub fn named(&self, name: Label) -> Option<GroupId> {
        self.groups.iter().find(|group| group.key == Key::Named(name)).map(|group| group.id)
    }

    /// Adds a client to its group, and creates the group if needed.
    pub fn enter(&mut self, member: &Member<'_>) -> GroupId {
        let Some((key, label)) = self.key_of(member) else { return GroupId::NONE };
        if let Some(group) = self.groups.iter_mut().find(|group| group.key == key) {
            group.members += 1;
            return group.id;
        }
        let id = self.new_id();
        self.groups.push(Group { key, id, label, members: 1, reserved_for: None, origins: SettingOrigins::default() });
        id
    }

    /// The next number that no group has. The scheduler still counts what an ended group has used beyond its
    /// reservation, so a new group does not get the number of one that has just ended.
    fn new_id(&mut self) -> GroupId {
        let is_free = |id: &GroupId| self.groups.iter().all(|group| group.id != *id);
        let mut ids = (self.newest..u16::MAX).chain(0..self.newest).map(|before| GroupId(before + 1));
        let id = ids.find(is_free).unwrap_or(GroupId::NONE);
        self.newest = id.0;
        id
    }

    /// Removes a client from its group. Returns the origins of the group's settings if the group ended.
    pub fn leave(&mut self, id: GroupId) -> Option<SettingOrigins> {
        let at = self.groups.iter().position(|group| group.id == id)?;
        self.groups[at].members -= 1;
        (self.groups[at].members == 0).then(|| self.groups.swap_remove(at).origins)
    }

    /// The groups with a setting that this connection leased.
    pub fn leased_by(&self, asker: ClientId) -> impl Iterator<Item = GroupId> + '_ {
        self.groups.iter().filter(move |group| !group.origins.leased_by(asker).is_empty()).map(|group| group.id)
    }

    pub fn origins(&self, id: GroupId) -> Option<&SettingOrigins> {
        self.group(id).map(|group| &group.origins)
    }

    pub fn origins_mut(&mut self, id: GroupId) -> Option<&mut SettingOrigins> {
        self.group_mut(id).map(|group| &mut group.origins)
    }

    pub fn set_reserved_for(&mut self, id: GroupId, uid: Option<u32>) {
        if let Some(group) = self.group_mut(id) {
            group.reserved_for = uid;
        }
    }

    /// Returns true if the group's reservation counts towards the limit of this user.
    pub fn is_reserved_for(&self, id: GroupId, uid: u32) -> bool {
        self.group(id).is_some_and(|group| group.reserved_for == Some(uid))
    }

    fn group_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.id == id)
    }

    fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    fn key_of(&self, member: &Member<'_>) -> Option<(Key, Label)> {
        let grouping = match (member.named, member.named.and_then(grouping_of)) {
            (None, _) => self.grouping,
            (Some(_), Some(grouping)) => grouping,
            (Some(name), None) => return Some((Key::Named(name), name)),
        };
        let Identity { pid, uid } = member.identity;
        match grouping {
            Grouping::Application => match member.control_group {
                Some(name) => Some((Key::ControlGroup(uid, name.into()), Label::new(name))),
                None if pid > 0 => Some((Key::Process(pid), Label::new(member.program))),
                None => None,
            },
            Grouping::User if member.identity.is_local() => Some((Key::User(uid), Label::new(&format!("user {uid}")))),
            Grouping::User | Grouping::None => None,
        }
    }
}

/// The grouping that a reserved name stands for. All reserved names begin with a colon.
fn grouping_of(name: Label) -> Option<Grouping> {
    Grouping::from_name(name.as_str().strip_prefix(':')?)
}

/// Returns true if a group may have this name. The empty name means no explicit group.
pub fn is_valid_name(name: Label) -> bool {
    !name.as_str().starts_with(':') || grouping_of(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: i32, control_group: Option<&str>) -> Member<'_> {
        Member { identity: Identity { pid, uid: 1000 }, program: "xterm", control_group, named: None }
    }

    #[test]
    fn connections_of_a_process_or_an_application_form_a_group() {
        let mut groups = Groups::new(Grouping::Application);
        let first = groups.enter(&member(7, None));
        assert_eq!(groups.enter(&member(7, None)), first);
        assert_ne!(groups.enter(&member(8, None)), first);
        let of_application = groups.enter(&member(9, Some("firefox-1")));
        assert_eq!(groups.enter(&member(10, Some("firefox-1"))), of_application);
        assert_eq!((groups.len(), groups.label(of_application).as_str()), (3, "firefox-1"));
        let of_another = Member { identity: Identity { pid: 11, uid: 1001 }, ..member(11, Some("firefox-1")) };
        assert_ne!(groups.enter(&of_another), of_application, "another user's");
        let remote = Member { identity: Identity::REMOTE, ..member(0, None) };
        assert_eq!(groups.enter(&remote), GroupId::NONE);
    }

    #[test]
    fn a_group_ends_with_its_last_member_and_a_new_one_gets_another_number() {
        let mut groups = Groups::new(Grouping::User);
        let (first, again) = (groups.enter(&member(7, None)), groups.enter(&member(8, None)));
        assert_eq!(first, again);
        groups.set_reserved_for(first, Some(1000));
        assert!(groups.leave(first).is_none() && groups.leave(first).is_some());
        let second = groups.enter(&member(7, None));
        assert_ne!(second, first);
        assert!(!groups.is_reserved_for(first, 1000) && !groups.is_reserved_for(second, 1000));
    }

    #[test]
    fn numbers_of_groups_are_used_in_turn_and_none_twice() {
        let mut groups = Groups::new(Grouping::Application);
        let held = groups.enter(&member(1, None));
        let mut last = held;
        for _ in 0..2 * usize::from(u16::MAX) {
            let id = groups.enter(&member(2, None));
            assert!(id != held && id != last && id != GroupId::NONE);
            assert!(groups.leave(id).is_some());
            last = id;
        }
    }

    #[test]
    fn an_explicit_name_overrides_the_grouping() {
        let mut groups = Groups::new(Grouping::None);
        assert_eq!(groups.enter(&member(7, None)), GroupId::NONE);
        let named = Member { named: Some(Label::new("players")), ..member(7, None) };
        assert_eq!(groups.enter(&named), groups.enter(&Member { identity: Identity { pid: 8, uid: 0 }, ..named }));
    }

    #[test]
    fn a_reserved_name_selects_the_group_of_that_grouping() {
        let mut groups = Groups::new(Grouping::User);
        let of_user = groups.enter(&member(7, None));
        let named = |word: &str, pid| Member { named: Some(Label::new(word)), ..member(pid, None) };
        assert_eq!(groups.enter(&named(":none", 8)), GroupId::NONE);
        let of_process = groups.enter(&named(":app", 8));
        assert_eq!(groups.enter(&named(":app", 8)), of_process);
        assert_ne!(of_process, of_user);
        groups.grouping = Grouping::Application;
        assert_eq!(groups.enter(&member(8, None)), of_process, "with the clients of that process");
        assert_eq!(groups.enter(&named(":user", 9)), of_user);
        let fits = [":app", "players", "", ":none"].map(|name| is_valid_name(Label::new(name)));
        assert_eq!((fits, is_valid_name(Label::new(":all"))), ([true; 4], false));
    }
}
