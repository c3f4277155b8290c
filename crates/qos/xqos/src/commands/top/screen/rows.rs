// SPDX-License-Identifier: MIT
//! The rows of the table: clients, or groups of clients that can be folded; sorted by a column.
//!
//! A row is identified by its key, so the selection stays on a row that moves.

use super::super::settings::{self, Grouping, ViewSettings};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use xqos_agent::client::{ConnectionKey, connection};
use xqos_agent::field::Value;
use xqos_agent::rules::process::Users;
use xqos_agent::sample::ClientSample;
use xqos_text::escape::printable;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowKey {
    Client(ConnectionKey),
    /// The names of a group and of the groups that it is in, outermost first.
    Group(Vec<String>),
}

/// A client, or the sum of a group.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    pub key: RowKey,
    pub client: Cow<'a, ClientSample>,
    /// Number of clients of a group; 0 for a client.
    pub members: usize,
    pub depth: usize,
    pub is_folded: bool,
}

impl Row<'_> {
    pub fn is_group(&self) -> bool {
        matches!(self.key, RowKey::Group(_))
    }

    /// The name in the table. A group's name follows the key that unfolds (+) or folds (-) the group.
    pub fn label(&self) -> String {
        let sign = match self.is_group() {
            true if self.is_folded => "+ ",
            true => "- ",
            false => "",
        };
        format!("{}{sign}{}", "  ".repeat(self.depth), self.name())
    }

    /// The name in a sentence.
    pub fn name(&self) -> String {
        match &self.key {
            RowKey::Group(names) => names.last().map_or(String::new(), |name| printable(name)),
            RowKey::Client(_) => self.client.name(),
        }
    }
}

/// The state that decides how clients are arranged in rows.
#[derive(Clone, Copy, Debug)]
pub struct Arrangement<'a> {
    pub settings: &'a ViewSettings,
    /// Groups whose state differs from the initial one: unfolded in a tree, folded otherwise.
    pub toggled: &'a HashSet<RowKey>,
    pub users: &'a Users,
}

impl Arrangement<'_> {
    pub fn rows<'a>(&self, clients: &[&'a ClientSample]) -> Vec<Row<'a>> {
        let mut rows = Vec::new();
        self.add(&mut rows, clients, &[]);
        rows
    }

    /// Adds the rows of clients that are in the groups with these names.
    fn add<'a>(&self, rows: &mut Vec<Row<'a>>, clients: &[&'a ClientSample], names: &[String]) {
        let depth = names.len();
        let row = |key, client, members| Row { key, client, members, depth, is_folded: false };
        let Some(group_of) = self.levels().get(depth) else {
            let single = clients.iter().map(|&client| {
                let key = RowKey::Client(connection(&client.entry));
                (row(key, Cow::Borrowed(client), 0), ())
            });
            return rows.extend(self.sorted(single.collect()).into_iter().map(|(row, _)| row));
        };
        let mut groups: BTreeMap<String, Vec<&'a ClientSample>> = BTreeMap::new();
        for &client in clients {
            groups.entry(group_of(client, self.users)).or_default().push(client);
        }
        let groups = groups.into_iter().map(|(name, members)| {
            let mut sum = ClientSample::sum(members.iter().copied());
            sum.entry.name.clone_from(&name);
            let key = RowKey::Group(names.iter().cloned().chain([name]).collect());
            (row(key, Cow::Owned(sum), members.len()), members)
        });
        for (mut row, members) in self.sorted(groups.collect()) {
            let RowKey::Group(names) = row.key.clone() else { continue };
            row.is_folded = self.toggled.contains(&row.key) != (self.settings.grouping != Grouping::Tree);
            let is_open = !row.is_folded;
            rows.push(row);
            if is_open {
                self.add(rows, &members, &names);
            }
        }
    }

    /// The functions that name the group of a client, outermost first.
    fn levels(&self) -> &'static [fn(&ClientSample, &Users) -> String] {
        match self.settings.grouping {
            Grouping::Client => &[],
            Grouping::Application => &[application],
            Grouping::User => &[user],
            Grouping::Tree => &[user, application],
        }
    }

    /// Sorts rows of the same level. Rows without a value come last in both directions.
    fn sorted<'a, T>(&self, rows: Vec<(Row<'a>, T)>) -> Vec<(Row<'a>, T)> {
        let Some(field) = settings::field(self.settings.sort) else { return rows };
        let mut rows: Vec<_> = rows.into_iter().map(|row| ((field.value)(&row.0.client), row)).collect();
        rows.sort_by(|(a, _), (b, _)| compare(a, b, self.settings.is_reversed));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// Large numbers come before small ones, and words are in alphabetical order.
fn compare(a: &Value, b: &Value, is_reversed: bool) -> Ordering {
    let usual = match (a.number(), b.number()) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => return Ordering::Less,
        (None, Some(_)) => return Ordering::Greater,
        (None, None) => {
            let [a, b] = [a, b].map(|value| value.text().to_lowercase());
            match (a.is_empty(), b.is_empty()) {
                (false, false) => a.cmp(&b),
                (is_empty, other) => return is_empty.cmp(&other),
            }
        }
    };
    if is_reversed { usual.reverse() } else { usual }
}

fn application(client: &ClientSample, _: &Users) -> String {
    client.name()
}

/// The user of a client on this machine, or else its host.
fn user(client: &ClientSample, users: &Users) -> String {
    match (client.entry.uid, client.entry.host.as_str()) {
        (u32::MAX, "") => "remote".to_owned(),
        (u32::MAX, host) => host.to_owned(),
        (uid, _) => users.name(uid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::ClientEntry;

    fn client(id: u32, name: &str, uid: u32, share: f64) -> ClientSample {
        let entry = ClientEntry { client: id, pid: id as i32, uid, name: name.to_owned(), ..ClientEntry::default() };
        ClientSample { share, ..ClientSample::of(&entry) }
    }

    fn desk() -> Vec<ClientSample> {
        vec![
            client(1, "xterm", 1000, 0.1),
            client(2, "firefox", 1000, 0.3),
            client(3, "xterm", 1000, 0.3),
            client(4, "xterm", 0, 0.2),
        ]
    }

    fn shown(settings: &ViewSettings, toggled: &[RowKey]) -> Vec<String> {
        let (desk, users) = (desk(), Users::default());
        let toggled = toggled.iter().cloned().collect();
        let arrangement = Arrangement { settings, toggled: &toggled, users: &users };
        let rows = arrangement.rows(&desk.iter().collect::<Vec<_>>());
        rows.iter().map(|row| format!("{} {:.1}", row.label(), row.client.share)).collect()
    }

    fn by(sort: &'static str, grouping: Grouping) -> ViewSettings {
        ViewSettings { sort, grouping, ..ViewSettings::default() }
    }

    #[test]
    fn numbers_descend_names_ascend_and_both_can_be_reversed() {
        let flat = by("SHARE", Grouping::Client);
        assert_eq!(shown(&flat, &[]), ["firefox 0.3", "xterm 0.3", "xterm 0.2", "xterm 0.1"]);
        let reversed = ViewSettings { is_reversed: true, ..flat };
        assert_eq!(shown(&reversed, &[]), ["xterm 0.1", "xterm 0.2", "firefox 0.3", "xterm 0.3"]);
        let named = by("PROGRAM", Grouping::Client);
        assert_eq!(shown(&named, &[])[0], "firefox 0.3");
        assert_eq!(shown(&ViewSettings { is_reversed: true, ..named }, &[])[3], "firefox 0.3");
    }

    #[test]
    fn unknown_values_come_last_in_both_directions() {
        let values =
            || vec![Value::None, Value::Count(2), Value::Other(serde_json::Value::Null, "-".into()), Value::Count(1)];
        let sorted = |is_reversed| {
            let mut values = values();
            values.sort_by(|a, b| compare(a, b, is_reversed));
            values.iter().map(Value::text).collect::<Vec<_>>()
        };
        assert_eq!(sorted(false), ["2", "1", "-", ""]);
        assert_eq!(sorted(true), ["1", "2", "-", ""]);
    }

    #[test]
    fn a_tree_has_users_applications_and_clients_with_sums() {
        let tree = by("SHARE", Grouping::Tree);
        let all = [
            "- 1000 0.7",
            "  - xterm 0.4",
            "    xterm 0.3",
            "    xterm 0.1",
            "  - firefox 0.3",
            "    firefox 0.3",
            "- 0 0.2",
            "  - xterm 0.2",
            "    xterm 0.2",
        ];
        assert_eq!(shown(&tree, &[]), all);
        let user = RowKey::Group(vec!["1000".to_owned()]);
        let xterms = RowKey::Group(vec!["0".to_owned(), "xterm".to_owned()]);
        assert_eq!(shown(&tree, &[user, xterms]), ["+ 1000 0.7", "- 0 0.2", "  + xterm 0.2"]);
    }

    #[test]
    fn groups_are_folded_at_first_and_sum_up_their_clients() {
        let groups = by("SHARE", Grouping::Application);
        assert_eq!(shown(&groups, &[]), ["+ xterm 0.6", "+ firefox 0.3"]);
        let firefox = RowKey::Group(vec!["firefox".to_owned()]);
        assert_eq!(shown(&groups, &[firefox]), ["+ xterm 0.6", "- firefox 0.3", "  firefox 0.3"]);
        assert_eq!(shown(&by("SHARE", Grouping::User), &[]), ["+ 1000 0.7", "+ 0 0.2"]);
    }

    #[test]
    fn remote_clients_are_grouped_by_host() {
        let remote = |host: &str| {
            let entry = ClientEntry { uid: u32::MAX, host: host.to_owned(), ..ClientEntry::default() };
            user(&ClientSample::of(&entry), &Users::default())
        };
        assert_eq!((remote("192.0.2.7"), remote("")), ("192.0.2.7".to_owned(), "remote".to_owned()));
    }
}
