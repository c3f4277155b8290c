//! The ledger by itself.

use super::{Change, Entry, LEDGER};
use crate::study::Goal;

fn entries() -> impl Iterator<Item = (String, &'static Entry)> {
    LEDGER
        .iter()
        .flat_map(|(experiment, goals)| goals.iter().map(move |(name, entry)| (format!("{experiment}.{name}"), entry)))
}

#[test]
fn each_goal_says_since_when_and_why_and_so_does_each_change() {
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
