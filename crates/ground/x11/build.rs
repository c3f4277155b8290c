// SPDX-License-Identifier: MIT
//! Turns the lists of messages in `data` into arrays of names, so that naming a message is an array lookup.

use std::collections::BTreeMap;
use std::{env, fs};

/// The letters of the kinds of messages in the lists, in the order of `names::Kind`.
const LETTERS: [&str; 5] = ["q", "r", "e", "g", "x"];

fn main() {
    let lists = ["data/fields.txt", "data/xqos.txt"].map(|path| {
        println!("cargo::rerun-if-changed={path}");
        fs::read_to_string(path).expect("a list of messages")
    });
    // The names of each kind by number, by extension. The core protocol is the extension without a name.
    let mut tables: BTreeMap<&str, [Vec<Option<&str>>; 5]> = BTreeMap::new();
    for line in lists.iter().flat_map(|list| list.lines()) {
        let words: Vec<&str> = line.split('\t').collect();
        // Some numbers do not fit in a byte, such as -1 for a GLX error that never occurs.
        let Ok(number) = words[1].parse::<u8>() else { continue };
        let Some(kind) = LETTERS.iter().position(|letter| *letter == words[0]) else { continue };
        let extension = words[2].split_once("::").map_or("", |(extension, _)| extension);
        let names = &mut tables.entry(extension).or_default()[kind];
        names.resize(names.len().max(usize::from(number) + 1), None);
        names[usize::from(number)] = Some(words[2]);
    }
    let tables = tables.iter().map(|(extension, kinds)| {
        let names: Vec<String> = kinds.iter().map(|names| format!("&{names:?}")).collect();
        format!("ExtensionNames {{ extension: {extension:?}, names: [{}] }},\n", names.join(", "))
    });
    let path = format!("{}/tables.rs", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(path, format!("&[{}]", tables.collect::<String>())).expect("a file of tables");
}
