// SPDX-License-Identifier: MIT
//! Checks a capture against limits, for continuous integration: `round-trips=50,bytes=200k,waits=300ms,seconds=2s`.
//!
//! An exceeded limit is reported with its largest contributors.

use super::{Figures, Report};
use crate::analysis::figure::{Declared, Figure, Unit};
use std::fmt::{self, Display};

const MAX_CULPRITS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub struct Limit {
    figure: &'static Figure<Figures>,
    most: f64,
}

#[derive(Clone, Debug)]
pub struct Budget(Vec<Limit>);

#[derive(Clone, Debug)]
pub struct Excess {
    limit: Limit,
    found: f64,
    culprits: Vec<String>,
}

impl std::str::FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        text.split(',').map(limit).collect::<Result<_, _>>().map(Budget)
    }
}

fn limit(text: &str) -> Result<Limit, String> {
    let wanted = || format!("'{text}' is not a limit: write name=number, such as round-trips=50");
    let (name, number) = text.trim().split_once('=').ok_or_else(wanted)?;
    let mut known = Figures::compared();
    known.retain(|figure| !figure.limit.is_empty());
    let Some(figure) = known.iter().find(|figure| figure.limit == name) else {
        let names: Vec<_> = known.iter().map(|figure| figure.limit).collect();
        return Err(format!("there is no limit '{name}': choose one of {}", names.join(", ")));
    };
    let units = match figure.unit() {
        Unit::Seconds => [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
        _ => [("k", 1e3), ("M", 1e6), ("G", 1e9)],
    };
    let scaled = units.iter().find_map(|(unit, scale)| Some((number.strip_suffix(unit)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((number, 1.0));
    let value: f64 = digits.parse().map_err(|_| wanted())?;
    if value.is_finite() && value >= 0.0 { Ok(Limit { figure, most: value * scale }) } else { Err(wanted()) }
}

impl Limit {
    fn text(&self, value: f64) -> String {
        if self.figure.unit() == Unit::Seconds { format!("{value:.3} s") } else { format!("{value}") }
    }
}

impl Budget {
    pub fn check(&self, report: &Report) -> Vec<Excess> {
        let figures = &report.session.figures;
        let broken = |limit: &Limit| {
            let found = (limit.figure.of)(figures).filter(|found| *found > limit.most)?;
            let mut parts = (limit.figure.parts)(figures);
            parts.retain(|(_, share)| *share > 0.0);
            parts.sort_by(|one, other| other.1.total_cmp(&one.1));
            let name = |(name, share): (String, f64)| format!("{name} {}", limit.text(share));
            Some(Excess { limit: *limit, found, culprits: parts.into_iter().take(MAX_CULPRITS).map(name).collect() })
        };
        self.0.iter().filter_map(broken).collect()
    }
}

impl Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = &self.limit;
        let (found, most) = (limit.text(self.found), limit.text(limit.most));
        write!(formatter, "{}: {found}, at most {most} allowed", limit.figure.limit)?;
        match self.culprits.as_slice() {
            [] => Ok(()),
            culprits => write!(formatter, " ({})", culprits.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::report::WaitFigures;

    fn report() -> Report {
        let mut report = Analysis::default().report(0.05);
        let wait = |name: &str, count, seconds| WaitFigures {
            name: name.to_owned(),
            count,
            seconds,
            ..WaitFigures::default()
        };
        let figures = &mut report.session.figures;
        figures.waits = vec![wait("GetProperty", 10, 2.0), wait("InternAtom", 46, 1.0)];
        figures.round_trips = 56;
        figures.reply_wait_s = 3.0;
        figures.bytes = 200_000;
        report
    }

    #[test]
    fn limits_are_parsed_with_units() {
        let budget: Budget = "round-trips=50,bytes=200k, waits=300ms,seconds=2s,errors=0".parse().unwrap();
        assert_eq!(budget.0.iter().map(|limit| limit.most).collect::<Vec<_>>(), [50.0, 200_000.0, 0.3, 2.0, 0.0]);
    }

    #[test]
    fn an_invalid_limit_is_refused_with_advice() {
        for (text, words) in [
            ("", "write name=number"),
            ("round-trips", "write name=number"),
            ("trips=1", "choose one of round-trips"),
            ("bytes=-1", "not a limit"),
            ("bytes=inf", "not a limit"),
            ("bytes=1s", "not a limit"),
            ("waits=1k", "not a limit"),
        ] {
            let error = text.parse::<Budget>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_broken_limit_lists_its_largest_contributors() {
        let budget: Budget = "round-trips=50,bytes=200k,waits=1s".parse().unwrap();
        let broken = budget.check(&report());
        let text: Vec<_> = broken.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "round-trips: 56, at most 50 allowed (InternAtom 46, GetProperty 10)",
                "waits: 3.000 s, at most 1.000 s allowed (GetProperty 2.000 s, InternAtom 1.000 s)"
            ]
        );
    }

    #[test]
    fn a_report_within_its_limits_has_no_excess() {
        assert!("round-trips=56,bytes=200k,waits=3s".parse::<Budget>().unwrap().check(&report()).is_empty());
    }
}
