// SPDX-License-Identifier: MIT
//! Tests that the papers' figures agree with the experiments and with docs/papers.md.

use super::{Number, PAPERS, TEXTS, find};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Keys of figures in docs/papers.md.
fn in_the_document() -> Vec<String> {
    let page = include_str!("../../../../../docs/papers.md");
    let all = page.split("<!-- figure: ").skip(1).filter_map(|rest| Some(rest.split_once(" -->")?.0));
    all.filter(|key| !key.contains(" // ")).map(str::to_owned).collect()
}

#[test]
fn experiments_and_documents_use_all_figures_of_the_papers() {
    let all = PAPERS.iter().flat_map(|(paper, found)| found.figures.keys().map(move |name| format!("{paper}.{name}")));
    let all: BTreeSet<String> = all.collect();
    assert!(all.len() > 12, "{all:?}");
    let [_, mut used] = crate::file::tests::keys();
    used.extend(in_the_document());
    assert_eq!(used.symmetric_difference(&all).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn each_paper_and_figure_has_a_source() {
    for (name, paper) in PAPERS.iter() {
        assert!([&paper.title, &paper.authors, &paper.published].iter().all(|text| text.len() > 8), "{name}");
        for (figure, found) in &paper.figures {
            let is_place =
                ["section ", "Table ", "Figure ", "the message, "].iter().any(|place| found.source.contains(place));
            assert!(is_place && !found.what.is_empty(), "{name}.{figure}: {}", found.source);
            assert!(found.derived.as_ref().is_none_or(|how| how.ends_with('.')), "{name}.{figure}: say how");
            assert!(!found.unit.contains(char::is_whitespace), "{name}.{figure}: a unit is one word");
        }
    }
}

#[test]
fn each_file_of_the_folder_is_part_of_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/papers");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let embedded = TEXTS.map(|(name, _)| format!("{name}.toml"));
    assert_eq!(files.collect::<BTreeSet<_>>(), BTreeSet::from(embedded));
}

#[test]
fn a_table_has_a_deviation_for_each_value() {
    let hard = find("manica-2008.hard").unwrap();
    let (Number::Rows(values), Some(Number::Rows(deviations))) = (&hard.value, &hard.deviation) else {
        panic!("the figure is a table")
    };
    assert_eq!((values[0][0], deviations[0][0], values[6][4], deviations[6][4]), (67.0, 1.14, 305.0, 4.1833));
    assert!(values.len() == 7 && values.len() == deviations.len());
    assert!(values.iter().chain(deviations).all(|row| row.len() == 5));
}
