// SPDX-License-Identifier: MIT
//! Compares two captures: what got better and what got worse.

use super::{Figures, Report, WaitFigures};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Count,
    Bytes,
    Seconds,
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
    let (one, other) = (&before.session.figures, &after.session.figures);
    Comparison {
        sums: sums(before, after),
        round_trips: by_name(one, other, Unit::Count, trips),
        bytes: by_name(one, other, Unit::Bytes, bytes),
    }
}

fn sums(before: &Report, after: &Report) -> Vec<Change> {
    let both = |what: &str, unit, figure: &dyn Fn(&Report) -> f64| {
        change(what.to_owned(), unit, figure(before), figure(after))
    };
    vec![
        both("round trips", Unit::Count, &|report| report.session.figures.round_trips as f64),
        both("avoidable", Unit::Count, &|report| report.session.figures.avoidable as f64),
        both("bytes", Unit::Bytes, &|report| report.session.figures.bytes as f64),
        both("waiting for replies", Unit::Seconds, &|report| report.session.figures.reply_wait_s),
        both("blocked by the network", Unit::Seconds, &|report| report.session.figures.blocked_network_s),
        both("blocked by the receiver", Unit::Seconds, &|report| report.session.figures.blocked_receiver_s),
        both("network delay", Unit::Seconds, &|report| report.session.figures.network_delay_s),
        both("until quiet", Unit::Seconds, &|report| report.session.quiet_s),
    ]
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

pub(super) type Amounts = Vec<(String, f64)>;

pub(super) fn trips(figures: &Figures) -> Amounts {
    waits(figures, |wait| wait.count as f64)
}

pub(super) fn waits(figures: &Figures, of: impl Fn(&WaitFigures) -> f64) -> Amounts {
    figures.waits.iter().map(|wait| (wait.name.clone(), of(wait))).collect()
}

pub(super) fn bytes(figures: &Figures) -> Amounts {
    let kinds = [("", &figures.requests), ("reply to ", &figures.replies), ("event ", &figures.events)];
    let all = kinds.into_iter().flat_map(|(kind, names)| names.iter().map(move |entry| (kind, entry)));
    all.map(|(kind, (name, tally))| (format!("{kind}{name}"), tally.bytes as f64)).collect()
}

fn by_name(before: &Figures, after: &Figures, unit: Unit, of: fn(&Figures) -> Amounts) -> Vec<Change> {
    let (before, after) = (of(before), of(after));
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
