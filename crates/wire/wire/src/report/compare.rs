// SPDX-License-Identifier: MIT
//! Compares two captures: what got better and what got worse.

use super::{Figures, Report};
use crate::analysis::figure::{Amounts, Declared, Figure, Unit};
use serde::Serialize;
use std::collections::BTreeSet;

/// Largest relative difference between times that counts as noise. Counts and bytes have no noise.
const NOISE: f64 = 0.05;
const NOISE_S: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Worse,
    Better,
    Same,
}

/// One figure in both reports. A lower value is always better.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub what: String,
    pub unit: Unit,
    pub before: f64,
    pub after: f64,
    pub verdict: Verdict,
}

/// All sums, then the differences by name, largest first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    pub sums: Vec<Change>,
    pub round_trips: Vec<Change>,
    pub bytes: Vec<Change>,
}

pub fn compare(before: &Report, after: &Report) -> Comparison {
    let (before, after) = (&before.session.figures, &after.session.figures);
    let sum = |figure: &Figure<Figures>| {
        let [before, after] = [before, after].map(|of| (figure.of)(of).unwrap_or_default());
        change(figure.compared.to_owned(), figure.unit(), before, after)
    };
    let by_name = |key| Figures::figure(key).map(|figure| by_name(figure, before, after)).unwrap_or_default();
    Comparison {
        sums: Figures::compared().into_iter().filter(|figure| !figure.compared.is_empty()).map(sum).collect(),
        round_trips: by_name("round_trips"),
        bytes: by_name("bytes"),
    }
}

fn change(what: String, unit: Unit, before: f64, after: f64) -> Change {
    let tolerance = if unit == Unit::Seconds { (before.max(after) * NOISE).max(NOISE_S) } else { 0.0 };
    let verdict = match after - before {
        difference if difference > tolerance => Verdict::Worse,
        difference if -difference > tolerance => Verdict::Better,
        _ => Verdict::Same,
    };
    Change { what, unit, before, after, verdict }
}

fn by_name(figure: &Figure<Figures>, before: &Figures, after: &Figures) -> Vec<Change> {
    let (before, after, unit) = ((figure.parts)(before), (figure.parts)(after), figure.unit());
    let find = |list: &Amounts, name: &str| list.iter().find(|(it, _)| it == name).map_or(0.0, |(_, value)| *value);
    let names: BTreeSet<&String> = before.iter().chain(&after).map(|(name, _)| name).collect();
    let both = names.into_iter().map(|name| change(name.clone(), unit, find(&before, name), find(&after, name)));
    let mut changes: Vec<Change> = both.filter(|change| change.verdict != Verdict::Same).collect();
    let size = |change: &Change| (change.after - change.before).abs();
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::analysis::counts::MessageSum;
    use crate::report::WaitFigures;

    fn report(waits: &[(&str, u64)], image_bytes: u64, delay_s: f64) -> Report {
        let mut report = Analysis::default().report(0.05);
        let figures = &mut report.session.figures;
        let wait =
            |&(name, count): &(&str, u64)| WaitFigures { name: name.to_owned(), count, ..WaitFigures::default() };
        figures.waits = waits.iter().map(wait).collect();
        figures.requests.insert("PutImage".to_owned(), MessageSum { count: 1, bytes: image_bytes });
        figures.network_delay_s = delay_s;
        report
    }

    #[test]
    fn better_and_worse_are_named_and_the_largest_comes_first() {
        let before = report(&[("InternAtom", 46), ("GetProperty", 10), ("QueryTree", 1)], 1000, 4.0);
        let after = report(&[("InternAtom", 6), ("GetProperty", 12), ("QueryTree", 1)], 1000, 4.1);
        let Comparison { sums, round_trips, bytes } = compare(&before, &after);
        let named: Vec<_> = round_trips.iter().map(|change| (change.what.as_str(), change.verdict)).collect();
        assert_eq!(named, [("InternAtom", Verdict::Better), ("GetProperty", Verdict::Worse)]);
        assert!(bytes.is_empty());
        let delay = sums.iter().find(|change| change.what == "network delay").unwrap();
        assert_eq!(delay.verdict, Verdict::Same, "4.0 and 4.1 s are within the noise");
    }

    #[test]
    fn names_in_only_one_capture_count_as_zero_in_the_other() {
        let changes = compare(&report(&[], 0, 0.0), &report(&[("QueryFont", 40)], 500, 9.0));
        assert_eq!((changes.round_trips[0].before, changes.round_trips[0].after), (0.0, 40.0));
        assert_eq!(changes.bytes[0].verdict, Verdict::Worse);
    }
}
