// SPDX-License-Identifier: MIT
//! Compares numbers in the documents' prose with their sources, and docs/papers.md with what it names.
//!
//! Tables that follow `<!-- xqos bench table -->` and figures that follow `<!-- figure -->` are generated from data
//! (`results::tables` compares them). Every other number with a unit needs an entry in `lab/numbers.toml`: the words
//! around it, and its source, which is a file of the project and words from that file. If prose repeats figures of a
//! table, delete the prose.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// For each page: words of the page, with `PATH: WORDS` as the source of the numbers in them.
type Sources = BTreeMap<String, BTreeMap<String, String>>;

/// Pages whose numbers are not compared yet. Do not add pages.
const LATER: [&str; 3] = ["docs/auto.md", "docs/fleet.md", "docs/upstream.md"];

/// Used instead of a path if no file of the project contains the number.
const ELSEWHERE: [&str; 2] = ["an example", "elsewhere"];

const UNITS: [&str; 35] = [
    "%",
    "B",
    "GB",
    "Gb/s",
    "Hz",
    "KB",
    "MB",
    "MB/s",
    "Mb/s",
    "bytes",
    "fps",
    "frames",
    "h",
    "hour",
    "hours",
    "kB",
    "kb/s",
    "min",
    "minute",
    "minutes",
    "ms",
    "ns",
    "percent",
    "point",
    "points",
    "requests",
    "requests/s",
    "s",
    "second",
    "seconds",
    "times",
    "trips",
    "us",
    "wakeups",
    "x",
];

const TABLE: [&str; 2] = ["<!-- xqos bench table: ", "<!-- end of table -->"];
const FIGURE: [&str; 2] = ["<!-- figure: ", "<!-- end -->"];

/// How many items of each paper docs/papers.md lists: Packard, Shatrov, Manica et al., Packard and Gettys.
const ITEMS: [(char, usize); 4] = [('A', 40), ('B', 12), ('C', 28), ('D', 53)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Removes the text between these marks.
fn without(text: &str, [begin, end]: [&str; 2]) -> String {
    let pieces = text.split(begin).enumerate();
    pieces
        .map(|(at, piece)| if at == 0 { piece } else { piece.split_once(end).map_or("", |(_, after)| after) })
        .collect()
}

/// The page without generated tables and figures and without code, in one line.
fn prose(page: &str) -> String {
    let text = without(&without(page, TABLE), FIGURE);
    let text: String = text.split("```").step_by(2).collect();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ")).collect();
    squeezed(&lines.join("\n").split('`').step_by(2).collect::<String>())
}

/// Each number with a unit, with the words around it.
fn numbers(prose: &str) -> Vec<String> {
    let letters: Vec<char> = prose.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let is_inside = at > 0 && (letters[at - 1].is_alphanumeric() || "._".contains(letters[at - 1]));
        if !letters[at].is_ascii_digit() || is_inside {
            at += 1;
            continue;
        }
        let run = |from: usize, is: &dyn Fn(char) -> bool| {
            letters[from..].iter().position(|&one| !is(one)).map_or(letters.len(), |length| from + length)
        };
        let end = run(at, &|one| one.is_ascii_digit() || ".,".contains(one));
        let from = if letters.get(end) == Some(&' ') { end + 1 } else { end };
        let to = run(from, &|one| one.is_alphanumeric() || "%/".contains(one));
        let unit: String = letters[from..to].iter().collect();
        if UNITS.contains(&unit.as_str()) {
            found.push(letters[at.saturating_sub(40)..(to + 20).min(letters.len())].iter().collect());
        }
        at = end;
    }
    found
}

fn pages() -> Vec<String> {
    let names =
        fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

#[test]
fn each_number_in_prose_has_its_source() {
    let sources: Sources = toml::from_str(&read("lab/numbers.toml")).unwrap();
    let pages = pages();
    let mut faults: Vec<String> =
        sources.keys().filter(|page| !pages.contains(page)).map(|page| format!("there is no page {page}")).collect();
    for page in pages.iter().filter(|page| !LATER.contains(&page.as_str())) {
        let mut text = prose(&read(page));
        for (words, source) in sources.get(page).into_iter().flatten() {
            let (path, says) = source.split_once(": ").unwrap_or_else(|| panic!("{page}, {words}: 'PATH: WORDS'"));
            if !ELSEWHERE.contains(&path) && !squeezed(&read(path)).contains(says) {
                faults.push(format!("{page} says '{words}', and {path} has no '{says}'"));
            }
            if !text.contains(words) {
                faults.push(format!("{page} does not say '{words}'"));
            }
            text = text.replace(words, "");
        }
        faults.extend(numbers(&text).into_iter().map(|words| format!("{page}: where is this from? ...{words}...")));
    }
    assert!(faults.is_empty(), "see lab/numbers.toml:\n{}", faults.join("\n"));
}

#[test]
fn numbers_are_found_in_prose_and_neither_in_code_nor_in_generated_tables() {
    let table = "<!-- xqos bench table: demo: A -->\n| 3 ms |\n<!-- end of table -->\n";
    let figure = "<!-- figure: demo // A -->8 ms<!-- end -->";
    let page = format!(
        "About 1.5 ms,\nor 2-4 %\n of `5 ms`.\n\n    sleep 6 s\n\n{table}Xorg 21.1, {figure}12 clients, 7 x.\n"
    );
    let found = numbers(&prose(&page));
    assert_eq!(found.len(), 3, "{found:?}");
    for (words, number) in found.iter().zip(["1.5 ms", "4 %", "7 x"]) {
        assert!(words.contains(number), "{words}");
    }
}

/// What is wrong with a row of docs/papers.md: its number, five cells, and its state.
fn fault(row: &[&str]) -> Option<String> {
    let &[_, _, _, answer, published, measured, state] = row else { return Some("not seven cells".to_owned()) };
    let reason = ["partly: ", "left out: ", "open: "].iter().find_map(|state_of| state.strip_prefix(state_of));
    let is_digit = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let is_missing = |word: &&str| word.contains('/') && !word.contains(' ') && !root().join(word).exists();
    if state != "done" && reason.is_none_or(str::is_empty) {
        return Some(format!("'{state}' is not a state with a reason"));
    }
    if answer == "-" && (state == "done" || state.starts_with("partly")) {
        return Some("it names no test or experiment".to_owned());
    }
    if let Some(number) = [published, measured].iter().flat_map(|cell| cell.split(' ')).find(|word| is_digit(word)) {
        return Some(format!("{number} does not come from data"));
    }
    let named = row.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).find(is_missing);
    named.map(|path| format!("there is no {path}"))
}

/// `bench::tables` checks the figures, the programs' tests the commands, and `scripts/lint-prose` the links.
#[test]
fn each_item_of_the_papers_has_a_state_and_names_existing_files() {
    let page = read("docs/papers.md");
    let sources: Sources = toml::from_str(&read("lab/numbers.toml")).unwrap();
    let text = sources["docs/papers.md"].keys().fold(without(&page, FIGURE), |text, words| text.replace(words, ""));
    let rows = text.lines().map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    let is_item = |row: &Vec<&str>| ITEMS.iter().any(|(paper, _)| row[0].starts_with(*paper)) && row.len() > 1;
    let rows: Vec<_> = rows.filter(is_item).collect();
    let mut faults: Vec<String> =
        rows.iter().filter_map(|row| fault(row).map(|fault| format!("{}: {fault}", row[0]))).collect();
    for item in ITEMS.iter().flat_map(|(paper, count)| (1..=*count).map(move |number| format!("{paper}{number}"))) {
        let count = rows.iter().filter(|row| row[0] == item).count();
        faults.extend((count != 1).then(|| format!("{item} has {count} rows")));
    }
    assert!(faults.is_empty(), "docs/papers.md:\n{}", faults.join("\n"));
    assert_eq!(rows.len(), ITEMS.iter().map(|(_, count)| count).sum::<usize>());
}

#[test]
fn a_row_without_reason_source_or_file_is_a_fault() {
    let row = |answer, measured, state| fault(&["A1", "1.1", "Item", answer, "-", measured, state]);
    assert_eq!(row("`crates/lab/lab/src/flood.rs`", "mean of twelve  x", "done"), None);
    assert_eq!(row("-", "-", "open: not measured"), None);
    for (answer, measured, state) in [
        ("`crates/lab/lab/src/none.rs`", "-", "done"),
        ("`xqos top`", "170 ms", "done"),
        ("-", "-", "done"),
        ("-", "-", "open: "),
        ("-", "-", "missing"),
    ] {
        assert!(row(answer, measured, state).is_some(), "{answer} {measured} {state}");
    }
    assert!(fault(&["A1", "1.1", "Item"]).is_some());
}
