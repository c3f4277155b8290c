// SPDX-License-Identifier: MIT
//! The settings of the screen, and the file that keeps them: `xqos/top.toml` in XDG_CONFIG_HOME or ~/.config.
//!
//! A file that is invalid, or of a later version, is neither used nor replaced.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xqos_agent::field::{Field, FieldView};
use xqos_agent::sample::{CLIENT, ClientSample};
use xqos_cli::output;
use xqos_rules::files::read_named_text;
use xqos_text::escape::printable;
use xqos_text::nearest::nearest;

const VERSION: u32 = 1;

/// Rows of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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

    /// The next grouping for the key `g`, which skips the tree.
    pub fn next(self) -> Grouping {
        match self {
            Grouping::Client => Grouping::Application,
            Grouping::Application => Grouping::User,
            Grouping::User | Grouping::Tree => Grouping::Client,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub title: &'static str,
    pub is_shown: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ViewSettings {
    pub columns: Vec<Choice>,
    /// Title of the column that the rows are sorted by.
    pub sort: &'static str,
    pub is_reversed: bool,
    pub grouping: Grouping,
    /// Shows the waits of the selected row below the table.
    pub has_waits: bool,
}

impl Default for ViewSettings {
    fn default() -> ViewSettings {
        let columns = titles().map(|title| Choice { title, is_shown: true }).collect();
        // Sort by CHARGED even if that column is hidden because it equals SHARE.
        ViewSettings { columns, sort: "CHARGED", is_reversed: false, grouping: Grouping::Client, has_waits: false }
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    columns: Option<Vec<String>>,
    sort: Option<String>,
    reverse: Option<bool>,
    group: Option<Grouping>,
    waits: Option<bool>,
}

/// Titles of all columns, in the order of their importance.
fn titles() -> impl Iterator<Item = &'static str> {
    CLIENT.iter().filter(|field| matches!(field.place, FieldView::Column { .. })).map(|field| field.title)
}

pub fn field(title: &str) -> Option<&'static Field<ClientSample>> {
    CLIENT.iter().find(|field| field.title == title)
}

impl ViewSettings {
    /// Parses the text of a file. The error is one line without the file's name.
    fn parse(text: &str) -> Result<ViewSettings, String> {
        let kept: Kept = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {}", printable(error.message().lines().next().unwrap_or_default()))
        })?;
        if kept.version != VERSION {
            return Err(format!("this xqos supports version {VERSION} only"));
        }
        let mut settings = ViewSettings::default();
        if let Some(shown) = kept.columns {
            settings.show(&shown.iter().map(|name| known(name)).collect::<Result<Vec<_>, _>>()?)?;
        }
        if let Some(sort) = kept.sort {
            settings.sort = known(&sort)?;
        }
        settings.is_reversed = kept.reverse.unwrap_or_default();
        settings.grouping = kept.group.unwrap_or_default();
        settings.has_waits = kept.waits.unwrap_or_default();
        Ok(settings)
    }

    /// Shows these columns in this order. The others follow, hidden.
    fn show(&mut self, shown: &[&'static str]) -> Result<(), String> {
        if shown.is_empty() {
            return Err("columns is empty: name at least one".to_owned());
        }
        if let Some(title) =
            shown.iter().enumerate().find_map(|(at, title)| shown[..at].contains(title).then_some(title))
        {
            return Err(format!("column {title} is named twice"));
        }
        let hidden = titles().filter(|title| !shown.contains(title));
        let choice = |is_shown| move |title| Choice { title, is_shown };
        self.columns = shown.iter().copied().map(choice(true)).chain(hidden.map(choice(false))).collect();
        Ok(())
    }

    /// The text of the file.
    fn text(&self) -> String {
        let mut text = format!("# Settings of `xqos top`; `xqos top --reset` removes them.\nversion = {VERSION}\n");
        if self.columns != ViewSettings::default().columns {
            let shown: Vec<String> = self.shown().map(|title| format!("{title:?}")).collect();
            text += &format!("columns = [{}]\n", shown.join(", "));
        }
        let ViewSettings { sort, is_reversed, grouping, has_waits, .. } = self;
        text + &format!(
            "sort = {sort:?}\nreverse = {is_reversed}\ngroup = {:?}\nwaits = {has_waits}\n",
            grouping.name()
        )
    }

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

fn known(name: &str) -> Result<&'static str, String> {
    let all: Vec<&'static str> = titles().collect();
    let found = all.iter().copied().find(|title| title.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let name: String = name.chars().take(40).collect();
        let hint = nearest(&name, &all).map(|title| format!(": did you mean {title:?}?"));
        format!("there is no column {name:?}{}", hint.unwrap_or_default())
    })
}

#[derive(Debug)]
pub struct SettingsFile {
    /// `None` if nothing is kept.
    path: Option<PathBuf>,
    kept: ViewSettings,
}

impl SettingsFile {
    /// The file of this user; without a home folder, settings are not kept.
    pub fn of_user() -> SettingsFile {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        SettingsFile { path: config.map(|config| config.join("xqos/top.toml")), kept: ViewSettings::default() }
    }

    /// Reads the settings. If the file is invalid, returns the defaults and a message.
    pub fn read(&mut self) -> (ViewSettings, String) {
        let Some(path) = self.path.as_ref().filter(|path| path.symlink_metadata().is_ok()) else {
            return (ViewSettings::default(), String::new());
        };
        let text =
            read_named_text(path).map_err(|mistakes| mistakes.first().map_or(String::new(), ToString::to_string));
        let settings =
            text.and_then(|text| ViewSettings::parse(&text).map_err(|what| format!("{}: {what}", path.display())));
        match settings {
            Ok(settings) => {
                self.kept = settings.clone();
                (settings, String::new())
            }
            Err(why) => {
                self.path = None;
                (
                    ViewSettings::default(),
                    format!("{why}; settings are not kept until you correct the file or use --reset"),
                )
            }
        }
    }

    /// Writes the settings if they have changed. The error is reported once.
    pub fn keep(&mut self, settings: &ViewSettings) -> Result<()> {
        let Some(path) = self.path.as_ref().filter(|_| self.kept != *settings) else { return Ok(()) };
        self.kept = settings.clone();
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder).and_then(|()| output::write(path, 0o644, settings.text().as_bytes()));
        written.with_context(|| format!("cannot keep the settings in {}", path.display()))
    }

    pub fn reset(&self) -> Result<()> {
        match self.path.as_ref().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                let path = self.path.as_ref().map_or(String::new(), |path| path.display().to_string());
                Err(error).with_context(|| format!("cannot remove {path}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
