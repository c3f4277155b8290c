// SPDX-License-Identifier: MIT
//! Waits that would remain with a proxy, as figures of a report.

use super::super::figure::{NamedRow, Value, figures, merge_rows};
use super::super::names::NameTable;
use super::super::round_trip::saving_s;
use super::Proxied;
use serde::Serialize;
use std::cmp::Ordering;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProxyFigures {
    /// `lbx`, `strict`, `relaxed` or `batch`.
    pub proxy: &'static str,
    pub waits: u64,
    pub left: u64,
    /// Time that the avoided waits would have cost at a one-way latency of `latency_s`.
    pub saving_s: f64,
    /// Waits by name, the name with the most remaining waits first.
    pub names: Vec<LeftFigures>,
}

figures! {
    LeftFigures;
    name: String;
    waits: u64 { title: "ROUND TRIPS" };
    left: u64 { title: "LEFT" };
    saving_s: f64 { title: "SAVED s" };
}

impl NamedRow for LeftFigures {
    fn name(&self) -> &str {
        &self.name
    }

    fn order(&self, other: &LeftFigures) -> Ordering {
        (other.left, other.waits).cmp(&(self.left, self.waits)).then(self.name.cmp(&other.name))
    }
}

impl Proxied {
    /// `latency_s` is the one-way latency.
    pub fn figures(&self, names: &NameTable, latency_s: f64) -> ProxyFigures {
        let list = self.by_name.iter().map(|(&name, left)| LeftFigures {
            name: names.name(name).to_owned(),
            waits: left.waits,
            left: left.left,
            saving_s: saving_s(left.waits - left.left, latency_s),
        });
        let mut figures = ProxyFigures { proxy: self.remedy.name(), ..ProxyFigures::default() };
        figures.add(&list.collect::<Vec<_>>());
        figures
    }
}

impl ProxyFigures {
    /// The sum of the rows of all names, as a row with the name `all`.
    pub fn sum(&self) -> LeftFigures {
        let ProxyFigures { waits, left, saving_s, .. } = *self;
        LeftFigures { name: "all".to_owned(), waits, left, saving_s }
    }

    fn add(&mut self, names: &[LeftFigures]) {
        merge_rows(&mut self.names, names);
        let mut sum = LeftFigures::default();
        names.iter().for_each(|row| sum.merge(row));
        self.waits += sum.waits;
        self.left += sum.left;
        self.saving_s += sum.saving_s;
    }
}

impl Value for ProxyFigures {
    fn merge(&mut self, other: &ProxyFigures) {
        self.proxy = other.proxy;
        self.add(&other.names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(names: &[(&str, u64, u64)]) -> ProxyFigures {
        let mut figures = ProxyFigures { proxy: "strict", ..ProxyFigures::default() };
        for &(name, waits, left) in names {
            let saving_s = (waits - left) as f64 * 0.1;
            figures.add(&[LeftFigures { name: name.to_owned(), waits, left, saving_s }]);
        }
        figures
    }

    #[test]
    fn connections_are_summed_by_name_and_sorted_by_remaining_waits() {
        let mut sum = ProxyFigures::default();
        sum.merge(&one(&[("InternAtom", 40, 1), ("GetProperty", 3, 2)]));
        sum.merge(&one(&[("GetProperty", 2, 2)]));
        let names: Vec<_> = sum.names.iter().map(|left| (left.name.as_str(), left.waits, left.left)).collect();
        assert_eq!(names, [("GetProperty", 5, 4), ("InternAtom", 40, 1)]);
        assert_eq!((sum.proxy, sum.waits, sum.left), ("strict", 45, 5));
        assert!((sum.saving_s - 4.0).abs() < 1e-9);
    }
}
