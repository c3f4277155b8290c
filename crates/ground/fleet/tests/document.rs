// SPDX-License-Identifier: MIT
//! Checks that docs/fleet.md describes the tables as they are defined.

use xqos_fleet::SCHEMA;
use xqos_fleet::tables::{ALL, TableDescription};

const DOCUMENT: &str = include_str!("../../../../docs/fleet.md");

fn described(table: &TableDescription) -> String {
    let head = format!("### {}\n{}\n\n| column | type | |\n|---|---|---|\n", table.name, table.about);
    table.columns.iter().fold(head, |text, column| {
        let null = if column.is_optional { ", or null" } else { "" };
        text + &format!("| {} | {}{null} | {} |\n", column.name, column.kind.name(), column.about)
    })
}

#[test]
fn the_document_describes_every_column() {
    for text in ALL.iter().map(described) {
        assert!(DOCUMENT.contains(&text), "docs/fleet.md needs this:\n\n{text}");
    }
    assert!(DOCUMENT.contains(&format!("`xqos.schema` = `{SCHEMA}`")));
}

#[test]
fn the_document_links_every_query() {
    for name in ["worst-waits", "programs", "round-trips", "users", "p99-by-day"] {
        assert!(DOCUMENT.contains(&format!("fleet/{name}.sql")), "{name}");
    }
}
