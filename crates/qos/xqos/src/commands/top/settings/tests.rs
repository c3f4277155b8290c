// SPDX-License-Identifier: MIT
//! The settings file: written settings are read back, and hostile contents do no harm.

use super::*;
use std::os::unix::fs::symlink;
use xqos_testkit::Folder;

fn file_in(folder: &Folder) -> SettingsFile {
    SettingsFile { path: Some(folder.path.join("xqos/top.toml")), kept: ViewSettings::default() }
}

fn changed() -> ViewSettings {
    let mut settings =
        ViewSettings { sort: "MAXWAIT", is_reversed: true, grouping: Grouping::Tree, ..ViewSettings::default() };
    settings.columns.swap(1, 3);
    settings.columns.retain(|choice| choice.title != "REQ/S");
    settings.columns.push(Choice { title: "REQ/S", is_shown: false });
    ViewSettings { has_waits: true, ..settings }
}

#[test]
fn written_settings_are_read_back_and_a_reset_removes_them() {
    let folder = Folder::new("kept");
    let mut file = file_in(&folder);
    assert_eq!(file.read(), (ViewSettings::default(), String::new()));
    file.keep(&ViewSettings::default()).unwrap();
    assert!(!folder.path.join("xqos").exists(), "defaults need no file");
    file.keep(&changed()).unwrap();
    assert_eq!(file_in(&folder).read(), (changed(), String::new()));
    file.reset().unwrap();
    file.reset().unwrap();
    assert_eq!(file_in(&folder).read(), (ViewSettings::default(), String::new()));
}

#[test]
fn default_columns_are_not_written_so_that_later_columns_appear() {
    let sorted = ViewSettings { sort: "TIME", ..ViewSettings::default() };
    assert!(!sorted.text().contains("columns"), "{}", sorted.text());
    assert_eq!(ViewSettings::parse(&sorted.text()), Ok(sorted));
    let short = ViewSettings::parse("version = 1\ncolumns = [\"program\"]\n").unwrap();
    assert_eq!(short.shown().collect::<Vec<_>>(), ["PROGRAM"]);
    assert_eq!(short.columns.len(), ViewSettings::default().columns.len());
}

#[test]
fn an_invalid_text_is_refused_in_one_line() {
    for (text, words) in [
        ("", "version"),
        ("version = 2\n", "supports version 1 only"),
        ("version = 1\nsort = \"SHAER\"\n", "there is no column \"SHAER\": did you mean \"SHARE\"?"),
        ("version = 1\ncolumns = []\n", "name at least one"),
        ("version = 1\ncolumns = [\"PID\", \"pid\"]\n", "column PID is named twice"),
        ("version = 1\n\nwidth = 3\n", "line 3: unknown field `width`"),
        ("version = 1\ngroup = \"\x1b[2J\"\n", "line 2: "),
        ("version = 1\nsort = \"\x1b[2J\"\n", "line 2: "),
        ("version = 1\nsort = \"\\u001b\\n\"\n", "there is no column \"\\u{1b}\\n\""),
        ("version = 1\ngroup = \"\\u001b[2J\"\n", "line 2: unknown variant"),
        ("version = 1\ngroup = [[[[", "line 2: "),
    ] {
        let why = ViewSettings::parse(text).unwrap_err();
        assert!(why.contains(words) && !why.contains(['\n', '\x1b']), "{text:?}: {why:?}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_reported_and_not_replaced() {
    let folder = Folder::new("hostile");
    let path = folder.path.join("xqos/top.toml");
    fs::create_dir_all(folder.path.join("xqos")).unwrap();
    let refused = |words: &str| {
        let mut file = file_in(&folder);
        let (settings, message) = file.read();
        assert_eq!(settings, ViewSettings::default());
        assert!(message.contains(words) && message.contains("--reset") && !message.contains('\n'), "{message}");
        file.keep(&changed()).unwrap();
    };
    for (bytes, words) in [
        (&b"\xff\xfe"[..], "is not UTF-8"),
        (&[b'['; 100_000], "line 1: "),
        (&[b'#'; 2_000_000], "is larger than 1 MB"),
        (b"version = 99\n", "supports version 1 only"),
    ] {
        fs::write(&path, bytes).unwrap();
        refused(words);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    refused("is not a regular file");
    fs::remove_file(&path).unwrap();
    symlink(&path, &path).unwrap();
    refused("cannot be read");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused("is not a regular file");
}

#[test]
fn a_folder_that_cannot_be_written_is_reported_once() {
    let folder = Folder::new("unwritable");
    fs::write(folder.path.join("xqos"), "a file in the place of the folder").unwrap();
    let mut file = file_in(&folder);
    let why = format!("{:#}", file.keep(&changed()).unwrap_err());
    assert!(why.contains("cannot keep the settings in") && why.contains("top.toml"), "{why}");
    file.keep(&changed()).unwrap();
}

#[test]
fn sorting_moves_over_the_shown_columns_in_both_directions() {
    let mut settings = ViewSettings::default();
    settings.columns[2].is_shown = false;
    settings.sort = "PROGRAM";
    settings.sort_by_next(1);
    assert_eq!(settings.sort, "CHARGED");
    settings.sort_by_next(-1);
    settings.sort_by_next(-1);
    settings.sort_by_next(-1);
    assert_eq!(settings.sort, "TITLE", "the last column");
    settings.sort = "SHARE";
    settings.sort_by_next(1);
    assert_eq!(settings.sort, "PID", "from a hidden column to the first");
}
