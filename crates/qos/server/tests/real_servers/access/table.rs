// SPDX-License-Identifier: MIT
//! Reads the tables of docs/access.md.

/// The expected result for one kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Yes,
    Access,
    Unseen,
}

impl Cell {
    fn read(text: &str) -> Cell {
        match text {
            "yes" => Cell::Yes,
            "BadAccess" => Cell::Access,
            "unseen" => Cell::Unseen,
            _ => panic!("docs/access.md: {text:?} is none of yes, BadAccess, unseen"),
        }
    }
}

#[derive(Debug)]
pub struct Row {
    pub title: String,
    /// The requests of the row, by their names in the protocol.
    pub requests: Vec<String>,
    /// One result for each kind of client.
    pub cells: Vec<Cell>,
}

#[derive(Debug)]
pub struct Table {
    /// The kinds of clients.
    pub kinds: Vec<String>,
    pub rows: Vec<Row>,
}

impl Table {
    /// Reads the table below a heading.
    pub fn read(heading: &str) -> Table {
        let text = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/access.md");
        let text = std::fs::read_to_string(text).unwrap();
        let section = text.split("\n## ").find(|section| section.starts_with(heading)).expect(heading);
        let mut lines = section.lines().filter(|line| line.starts_with('|')).map(cells);
        // Kinds of clients that get the same answers share a column.
        let columns: Vec<Vec<String>> = lines.next().unwrap()[1..].iter().map(|kinds| names(kinds)).collect();
        let rows = lines.skip(1).map(|cells| row(&text, &cells, &columns)).collect();
        Table { kinds: columns.concat(), rows }
    }
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn row(text: &str, cells: &[String], columns: &[Vec<String>]) -> Row {
    assert_eq!(cells.len(), 1 + columns.len(), "{cells:?}");
    let (title, requests) = cells[0].split_once(": ").expect("TITLE: REQUESTS");
    // A word in italics refers to the requests in the paragraph that begins with it.
    let requests = if requests.starts_with('*') {
        let list = text.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(requests)?.strip_prefix(':'));
        list.and_then(|list| list.split('.').next()).expect(requests)
    } else {
        requests
    };
    let answers = cells[1..].iter().zip(columns).flat_map(|(cell, kinds)| vec![Cell::read(cell); kinds.len()]);
    Row { title: title.to_owned(), requests: names(requests), cells: answers.collect() }
}
