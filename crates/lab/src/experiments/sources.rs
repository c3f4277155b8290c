// SPDX-License-Identifier: MIT
//! The experiments as text, for tests that compare them with the data in `lab`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Source text of the experiments. Their tests are left out, because they may invent goals.
pub(crate) fn all() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/experiments")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                let program = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((path, program));
            }
        }
    }
    found
}

/// All quoted strings that directly follow this word.
pub(crate) fn named(word: &str) -> BTreeSet<String> {
    let names = |text: &str| -> Vec<String> {
        text.split(word).skip(1).filter_map(|rest| Some(rest.strip_prefix('"')?.split_once('"')?.0.into())).collect()
    };
    all().iter().flat_map(|(_, text)| names(text)).collect()
}

/// Keys of goals and of papers' figures that the experiments' files use.
pub(crate) fn in_files() -> (BTreeSet<String>, BTreeSet<String>) {
    let all = super::all();
    let of = |names: fn(&crate::bench::Experiment) -> Vec<String>| all.iter().flat_map(names).collect();
    (of(|one| one.goal_keys()), of(|one| one.published_keys()))
}
