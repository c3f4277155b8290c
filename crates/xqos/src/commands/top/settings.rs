// SPDX-License-Identifier: MIT
//! The settings of the screen.

use xqos_agent::field::{Field, Place};
use xqos_agent::sample::{CLIENT, Client};

/// Rows of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// One row for each client.
    #[default]
    Client,
    /// One row for each program, which can be unfolded.
    Application,
    User,
    /// Clients below applications below users.
    Tree,
}

impl Grouping {
    pub fn name(self) -> &'static str {
        match self {
            Grouping::Client => "client",
            Grouping::Application => "application",
            Grouping::User => "user",
            Grouping::Tree => "tree",
        }
    }

    /// The next one for the key that cycles; a tree has its own key.
    pub fn next(self) -> Grouping {
        match self {
            Grouping::Client => Grouping::Application,
            Grouping::Application => Grouping::User,
            Grouping::User | Grouping::Tree => Grouping::Client,
        }
    }
}

/// A column in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub title: &'static str,
    pub is_shown: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// All columns, in order.
    pub columns: Vec<Choice>,
    /// Title of the column that the rows are sorted by.
    pub sort: &'static str,
    pub is_reversed: bool,
    pub grouping: Grouping,
    /// Shows the waits of the selected row below the table.
    pub has_waits: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let columns = titles().map(|title| Choice { title, is_shown: true }).collect();
        // The table is sorted by what each client causes, even if the column is hidden because it equals SHARE.
        Settings { columns, sort: "CHARGED", is_reversed: false, grouping: Grouping::Client, has_waits: false }
    }
}

/// Titles of all columns, in the order of their importance.
fn titles() -> impl Iterator<Item = &'static str> {
    CLIENT.iter().filter(|field| matches!(field.place, Place::Column { .. })).map(|field| field.title)
}

/// The field of a column.
pub fn field(title: &str) -> Option<&'static Field<Client>> {
    CLIENT.iter().find(|field| field.title == title)
}

impl Settings {
    /// Titles of the shown columns, in order.
    pub fn shown(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().filter(|choice| choice.is_shown).map(|choice| choice.title)
    }

    /// Sorts by the shown column that is `by` places to the right of the present one.
    pub fn sort_by_next(&mut self, by: isize) {
        let shown: Vec<&'static str> = self.shown().collect();
        let at = shown.iter().position(|&title| title == self.sort);
        let next = at.map_or(0, |at| (at as isize + by).rem_euclid(shown.len() as isize) as usize);
        self.sort = shown[next];
    }
}
