// SPDX-License-Identifier: MIT
//! Sums the figures of several connections.

use super::{Figures, PatternFigures, WaitFigures};
use crate::analysis::counts::{MessageSum, merge_equal};
use crate::analysis::redundancy::{RepeatedCoordinates, UnusedBytes};
use std::collections::BTreeMap;

impl Figures {
    pub fn merge(&mut self, other: &Figures) {
        merge_maps(&mut self.requests, &other.requests, MessageSum::merge);
        merge_maps(&mut self.replies, &other.replies, MessageSum::merge);
        merge_maps(&mut self.events, &other.events, MessageSum::merge);
        merge_maps(&mut self.errors, &other.errors, MessageSum::merge);
        merge_waits(&mut self.waits, &other.waits);
        merge_patterns(&mut self.patterns, &other.patterns);
        self.idle_s += other.idle_s;
        self.blocked_network_s += other.blocked_network_s;
        self.blocked_receiver_s += other.blocked_receiver_s;
        self.reply_wait_s += other.reply_wait_s;
        self.network_delay_s += other.network_delay_s;
        self.round_trips += other.round_trips;
        self.avoidable += other.avoidable;
        self.pipelined += other.pipelined;
        self.saving_s += other.saving_s;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.missing_bytes = self.missing_bytes.saturating_add(other.missing_bytes);
        merge_maps(&mut self.bandwidth, &other.bandwidth, |sum, bytes| *sum += bytes);
        merge_maps(&mut self.unused, &other.unused, UnusedBytes::merge);
        merge_maps(&mut self.repeated, &other.repeated, RepeatedCoordinates::merge);
        if let Some(other) = &other.proxy {
            self.proxy.get_or_insert_default().merge(other);
        }
    }
}

fn merge_maps<K: Clone + Ord, T: Default>(sums: &mut BTreeMap<K, T>, others: &BTreeMap<K, T>, add: fn(&mut T, &T)) {
    for (name, other) in others {
        add(sums.entry(name.clone()).or_default(), other);
    }
}

fn merge_waits(sums: &mut Vec<WaitFigures>, others: &[WaitFigures]) {
    let add = |sum: &mut WaitFigures, other: &WaitFigures| {
        sum.count += other.count;
        sum.seconds += other.seconds;
        sum.avoidable += other.avoidable;
        merge_maps(&mut sum.reasons, &other.reasons, |sum, count| *sum += count);
    };
    merge_equal(sums, others, |wait| &wait.name, add);
    sums.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then(one.name.cmp(&other.name)));
}

fn merge_patterns(sums: &mut Vec<PatternFigures>, others: &[PatternFigures]) {
    let add = |sum: &mut PatternFigures, other: &PatternFigures| {
        sum.count += other.count;
        sum.in_a_row = sum.in_a_row.max(other.in_a_row);
        sum.seconds += other.seconds;
        sum.avoidable += other.avoidable;
    };
    merge_equal(sums, others, |pattern| &pattern.pattern, add);
    sums.sort_by(|one, other| other.seconds.total_cmp(&one.seconds).then(one.pattern.cmp(&other.pattern)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, count: u64, seconds: f64) -> Figures {
        Figures {
            requests: [(name.to_owned(), MessageSum { count, bytes: 8 * count })].into(),
            waits: vec![WaitFigures { name: name.to_owned(), count, seconds, avoidable: 1, ..WaitFigures::default() }],
            round_trips: count,
            idle_s: 1.0,
            ..Figures::default()
        }
    }

    #[test]
    fn equal_names_are_summed_and_the_longest_wait_comes_first() {
        let mut sum = Figures::default();
        for one in [figures("InternAtom", 3, 0.3), figures("GetProperty", 1, 2.0), figures("InternAtom", 4, 0.4)] {
            sum.merge(&one);
        }
        assert_eq!(sum.requests["InternAtom"], MessageSum { count: 7, bytes: 56 });
        let waits: Vec<_> = sum.waits.iter().map(|wait| (wait.name.as_str(), wait.count, wait.avoidable)).collect();
        assert_eq!(waits, [("GetProperty", 1, 1), ("InternAtom", 7, 2)]);
        assert_eq!((sum.round_trips, sum.idle_s), (8, 3.0));
    }
}
