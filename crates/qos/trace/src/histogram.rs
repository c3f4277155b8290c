// SPDX-License-Identifier: MIT
//! A histogram of durations. Buckets are at most 3 % wide, and memory use is bounded for any number of values.
//!
//! Below 32 ns, each nanosecond has a separate bucket; above, each power of two is divided into 32 buckets.

const CUTS: u32 = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u32>,
    count: u64,
    total_ns: u64,
    worst_ns: u64,
}

impl Histogram {
    pub fn add(&mut self, ns: u64) {
        let bucket = bucket_of(ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.worst_ns = self.worst_ns.max(ns);
    }

    pub fn absorb(&mut self, other: &Histogram) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean_ns(&self) -> u64 {
        self.total_ns / self.count.max(1)
    }

    pub fn worst_ns(&self) -> u64 {
        self.worst_ns
    }

    /// The duration that this fraction of the values does not exceed, accurate to 3 %; 0 if there are no values.
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let rank = ((part * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return end_of(bucket).min(self.worst_ns);
            }
        }
        0
    }
}

fn bucket_of(ns: u64) -> usize {
    if ns < u64::from(CUTS) {
        return ns as usize;
    }
    let octave = ns.ilog2() - CUTS.ilog2();
    ((octave << CUTS.ilog2()) + (ns >> octave) as u32) as usize
}

/// The longest duration that falls into a bucket.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let cuts = u64::from(CUTS);
    if bucket < cuts {
        return bucket;
    }
    let octave = bucket / cuts - 1;
    let start = u128::from(cuts + bucket % cuts) << octave;
    u64::try_from(start + (1 << octave) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_at_most_a_thirty_second_wide() {
        let mut ns = 1u64;
        while ns < u64::MAX / 8 {
            for ns in [ns - 1, ns, ns + 1] {
                let end = end_of(bucket_of(ns));
                assert!(end >= ns && end - ns <= ns / 32, "{ns} ends at {end}");
            }
            ns = ns * 5 / 4 + 1;
        }
        assert_eq!(end_of(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_match_the_durations() {
        let mut histogram = Histogram::default();
        for us in 1..=1000 {
            histogram.add(us * 1000);
        }
        assert_eq!((histogram.count(), histogram.worst_ns()), (1000, 1_000_000));
        for (part, expected) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let found = histogram.quantile_ns(part);
            assert!(found >= expected && found <= expected + expected / 32, "{part}: {found}");
        }
        assert_eq!(Histogram::default().quantile_ns(0.5), 0);
        let mut sum = Histogram::default();
        sum.absorb(&histogram);
        assert_eq!(sum, histogram);
    }
}
