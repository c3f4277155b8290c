// SPDX-License-Identifier: MIT
//! Tests that the ledger and the experiments agree.

use super::{Change, Entry, LEDGER};
use crate::study::Goal;
use std::collections::BTreeSet;
use std::path::Path;

fn entries() -> impl Iterator<Item = (String, &'static Entry)> {
    LEDGER
        .iter()
        .flat_map(|(experiment, goals)| goals.iter().map(move |(name, entry)| (format!("{experiment}.{name}"), entry)))
}

#[test]
fn experiments_and_ledger_have_the_same_keys() {
    let ledger: BTreeSet<String> = entries().map(|(key, _)| key).collect();
    assert!(ledger.len() > 50, "{ledger:?}");
    let [used, _] = crate::file::tests::keys();
    assert_eq!(used.symmetric_difference(&ledger).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn each_goal_and_each_change_has_a_date_and_a_reason() {
    let is_date = |date: toml::value::Datetime| date.date.is_some() && date.time.is_none();
    let is_sentence = |text: &str| text.len() > 10 && text.ends_with('.');
    for (key, entry) in entries() {
        assert!(is_date(entry.changed) && is_sentence(&entry.reason), "{key}");
        assert!(!entry.unit.contains(char::is_whitespace), "{key}: a unit is one word");
        for change in &entry.change {
            assert!(is_date(change.date) && is_sentence(&change.reason), "{key}");
        }
        for pair in entry.change.windows(2) {
            assert!(pair[0].to == pair[1].from && pair[0].date <= pair[1].date, "{key}");
        }
        let last: Option<&Change> = entry.change.last();
        assert!(last.is_none_or(|last| (last.to, last.date) == (entry.goal, entry.changed)), "{key}");
        assert!(last.is_some() || entry.goal != Goal::Reported, "{key} never was a goal");
    }
}

#[test]
fn published_goals_match_the_ledger() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/report/data");
    let mut seen = 0;
    for finding in crate::results::read_all(&crate::experiments::all(), &folder).unwrap() {
        for verdict in finding.study.verdicts.iter().filter(|verdict| verdict.goal != Goal::Reported) {
            let goals = &LEDGER[finding.experiment.split('_').next().unwrap_or_default()];
            // A published verdict keeps the goal that applied when it was measured.
            let is_of = |entry: &Entry| {
                let was = entry.change.iter().any(|change| change.from == verdict.goal);
                entry.unit == verdict.unit && (was || entry.goal == verdict.goal)
            };
            let has = goals.values().any(is_of);
            assert!(has, "{}: {verdict:?}", finding.experiment);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}
