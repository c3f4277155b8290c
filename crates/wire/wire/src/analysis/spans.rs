// SPDX-License-Identifier: MIT
//! Spans of time in one state: their exact sum, and a list of bounded length.
//!
//! The list serves plots and comparisons. When it grows too long, its smallest gaps are closed: it is exact up to
//! [`MAX_SPANS`] spans and coarser after that.

use serde::Serialize;

/// Enough for several hours of a busy connection, in a quarter of a megabyte.
pub const MAX_SPANS: usize = 16_384;
/// Maximum width of the gaps that are closed first. A gap of 10 us is invisible in a plot with that many spans.
const FIRST_CLOSED_NS: u64 = 10_000;

/// A span of time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Span {
    /// Both ends included.
    pub fn contains(&self, at_ns: u64) -> bool {
        (self.from_ns..=self.to_ns).contains(&at_ns)
    }
}

/// Spans in order of time, without overlap.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    list: Vec<Span>,
    total_ns: u64,
    closed_ns: u64,
}

impl Spans {
    /// Appends a span. Time that overlaps the last span is cut off.
    pub fn add(&mut self, from_ns: u64, to_ns: u64) {
        let from_ns = from_ns.max(self.list.last().map_or(0, |last| last.to_ns));
        if to_ns <= from_ns {
            return;
        }
        self.total_ns += to_ns - from_ns;
        match self.list.last_mut() {
            Some(last) if from_ns - last.to_ns <= self.closed_ns => last.to_ns = to_ns,
            _ => self.list.push(Span { from_ns, to_ns }),
        }
        if self.list.len() > MAX_SPANS {
            self.thin();
        }
    }

    /// Extends the last span backwards by up to `ns` of free time, joining spans on the way, but not before `floor_ns`.
    pub fn reach_back(&mut self, ns: u64, floor_ns: u64) {
        let Some(mut last) = self.list.pop() else { return };
        let mut left_ns = ns;
        loop {
            let before = self.list.last().copied();
            let free_ns = last.from_ns.saturating_sub(floor_ns.max(before.map_or(0, |before| before.to_ns)));
            let step_ns = left_ns.min(free_ns);
            last.from_ns -= step_ns;
            left_ns -= step_ns;
            self.total_ns += step_ns;
            match before {
                Some(before) if before.to_ns == last.from_ns => last.from_ns = before.from_ns,
                _ => break,
            }
            self.list.pop();
        }
        self.list.push(last);
    }

    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    pub fn list(&self) -> &[Span] {
        &self.list
    }

    fn thin(&mut self) {
        while self.list.len() > MAX_SPANS / 2 {
            self.closed_ns = (self.closed_ns * 2).max(FIRST_CLOSED_NS);
            let closed_ns = self.closed_ns;
            self.list.dedup_by(|next, last| {
                let is_near = next.from_ns - last.to_ns <= closed_ns;
                if is_near {
                    last.to_ns = next.to_ns;
                }
                is_near
            });
        }
    }
}

pub fn union(lists: &[&[Span]]) -> Vec<Span> {
    let mut all: Vec<Span> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    all.sort_by_key(|span| span.from_ns);
    let mut joined: Vec<Span> = Vec::new();
    for span in all {
        match joined.last_mut() {
            Some(last) if span.from_ns <= last.to_ns => last.to_ns = last.to_ns.max(span.to_ns),
            _ => joined.push(span),
        }
    }
    joined
}

/// Time of `list` that is not in `other`. Both must be in order.
pub fn minus(list: &[Span], other: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    let mut others = other.iter().peekable();
    for span in list {
        let mut from_ns = span.from_ns;
        while others.next_if(|other| other.to_ns <= from_ns).is_some() {}
        for other in others.clone().take_while(|other| other.from_ns < span.to_ns) {
            if other.from_ns > from_ns {
                left.push(Span { from_ns, to_ns: other.from_ns });
            }
            from_ns = from_ns.max(other.to_ns);
        }
        if from_ns < span.to_ns {
            left.push(Span { from_ns, to_ns: span.to_ns });
        }
    }
    left
}

pub fn within(list: impl Iterator<Item = Span>, whole: &Span) -> Vec<Span> {
    let cut = |span: Span| Span { from_ns: span.from_ns.max(whole.from_ns), to_ns: span.to_ns.min(whole.to_ns) };
    list.map(cut).filter(|span| span.from_ns < span.to_ns).collect()
}

/// Total time of `list` before `end_ns`.
pub fn length_until(list: &[Span], end_ns: u64) -> u64 {
    list.iter().map(|span| span.to_ns.min(end_ns).saturating_sub(span.from_ns)).sum()
}

pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(u64, u64)]) -> Vec<Span> {
        list.iter().map(|&(from_ns, to_ns)| Span { from_ns, to_ns }).collect()
    }

    #[test]
    fn adjacent_spans_join_and_overlaps_count_once() {
        let mut some = Spans::default();
        for (from, to) in [(10, 20), (20, 30), (25, 40), (5, 12), (50, 50), (60, 70)] {
            some.add(from, to);
        }
        assert_eq!(some.list(), spans(&[(10, 40), (60, 70)]));
        assert_eq!(some.total_ns(), 40);
    }

    #[test]
    fn a_list_stays_short_and_keeps_its_exact_sum() {
        let mut some = Spans::default();
        for at in 0..200_000u64 {
            some.add(at * 1000, at * 1000 + 400);
        }
        assert!(some.list().len() <= MAX_SPANS, "{}", some.list().len());
        assert_eq!(some.total_ns(), 200_000 * 400);
    }

    #[test]
    fn a_large_gap_is_not_closed() {
        let mut some = Spans::default();
        for at in 0..50_000u64 {
            let jump = if at < 25_000 { 0 } else { 1_000_000_000 };
            some.add(jump + at * 1000, jump + at * 1000 + 400);
        }
        let widest = some.list().windows(2).map(|pair| pair[1].from_ns - pair[0].to_ns).max();
        assert_eq!(widest, Some(1_000_000_600));
    }

    #[test]
    fn a_span_extends_back_over_free_time() {
        let mut some = Spans::default();
        for (from, to) in [(10, 20), (30, 40), (60, 70)] {
            some.add(from, to);
        }
        some.reach_back(5, 0);
        assert_eq!(some.list(), spans(&[(10, 20), (30, 40), (55, 70)]));
        some.reach_back(20, 0);
        assert_eq!((some.list(), some.total_ns()), (&spans(&[(10, 20), (25, 70)])[..], 55));
        some.reach_back(100, 23);
        assert_eq!((some.list(), some.total_ns()), (&spans(&[(10, 20), (23, 70)])[..], 57));
    }

    #[test]
    fn spans_are_joined_and_subtracted() {
        let one = spans(&[(0, 10), (20, 30), (40, 50)]);
        let other = spans(&[(5, 22), (24, 26), (45, 60)]);
        assert_eq!(union(&[&one, &other]), spans(&[(0, 30), (40, 60)]));
        assert_eq!(minus(&one, &other), spans(&[(0, 5), (22, 24), (26, 30), (40, 45)]));
        assert_eq!(minus(&spans(&[(0, 100)]), &one), spans(&[(10, 20), (30, 40), (50, 100)]));
        assert_eq!(length_until(&one, 25), 15);
    }

    #[test]
    fn one_span_can_cut_several() {
        assert_eq!(minus(&spans(&[(0, 10), (20, 30)]), &spans(&[(5, 25)])), spans(&[(0, 5), (25, 30)]));
    }
}
