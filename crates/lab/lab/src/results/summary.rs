// SPDX-License-Identifier: MIT
//! Conclusions from all experiments: a few lines of text and a table of all goals.

use super::{Build, Finding, verdicts};
use crate::disturbance::Disturbance;
use crate::machine::{Machine, date};
use crate::render;
use crate::study::GoalCheck;

/// Number of missed goals that are named. The others are only counted.
const NAMED: usize = 2;

/// At most six lines: how many goals were met, the worst miss, other misses, credibility, the machine and build, and
/// results of other builds.
pub(crate) fn conclusions(found: &[Finding]) -> Vec<String> {
    let build = Build::of(found);
    let mut missed: Vec<_> = verdicts(found).filter_map(|(of, goal)| Some((goal.missed_by()?, of, goal))).collect();
    missed.sort_by(|one, other| other.0.total_cmp(&one.0));
    let with_goal = verdicts(found).filter(|(_, verdict)| verdict.is_met().is_some()).count();
    let met = verdicts(found).filter(|(_, verdict)| verdict.is_met() == Some(true)).count();
    let few = match with_goal - met - missed.len() {
        0 => String::new(),
        few => format!(", {few} with too few samples"),
    };
    let experiments = if found.len() == 1 { String::new() } else { format!(", in {} experiments", found.len()) };
    let mut lines = vec![format!("{met} of {with_goal} goals are met{few}{experiments}.")];
    let sentence = |(_, of, goal): &(f64, &Finding, &GoalCheck)| format!("{}: {}", build.label(of), goal.sentence());
    let brief =
        |(_, of, goal): &(f64, &Finding, &GoalCheck)| format!("{}: {} ({})", build.label(of), goal.what, goal.text());
    match missed.split_first() {
        None => lines.push("No goal was missed.".to_owned()),
        Some((worst, others)) => {
            lines.push(format!("Missed by most: {}.", sentence(worst)));
            let named: Vec<String> = others.iter().take(NAMED).map(brief).collect();
            let more = others.len() - named.len();
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            lines.extend((!named.is_empty()).then(|| format!("Also missed: {}{more}.", named.join("; "))));
        }
    }
    lines.push(credibility(found));
    lines.extend(build.first(found).map(|first| machine(first, build)));
    lines.extend(build.others(found));
    lines
}

/// All goals in one table, as text.
pub(crate) fn goals(found: &[Finding]) -> String {
    let build = Build::of(found);
    let labelled = |(of, verdict): (&Finding, &GoalCheck)| {
        let what = format!("{}: {}", build.label(of), verdict.what);
        verdict.is_met().map(|_| GoalCheck { what, ..verdict.clone() })
    };
    let goals: Vec<GoalCheck> = verdicts(found).filter_map(labelled).collect();
    let met = goals.iter().filter(|verdict| verdict.is_met() == Some(true)).count();
    let (total, table) = (goals.len(), render::verdicts(&goals));
    format!("All goals\n\n{table}\n{met} of {total} goals are met\n{}\n", credibility(found))
}

fn credibility(found: &[Finding]) -> String {
    let noisy: Vec<(&str, Disturbance)> = found
        .iter()
        .filter_map(|finding| Some((finding.experiment.as_str(), finding.disturbance?)))
        .filter(|(_, disturbance)| disturbance.noise().is_some())
        .collect();
    // Name only the worst disturbance of each kind, because each result already names its own.
    let worst = noisy.iter().map(|(_, disturbance)| *disturbance).reduce(Disturbance::worse);
    let names: Vec<&str> = noisy.iter().map(|(name, _)| *name).collect();
    let noise = match worst.and_then(|worst| worst.noise()) {
        None => "No run was noisy".to_owned(),
        Some(causes) => {
            format!("Noisy: {} ({}{causes})", names.join(", "), if names.len() > 1 { "at worst " } else { "" })
        }
    };
    let hurried = found.iter().filter(|finding| finding.quick).count();
    if hurried > 0 { format!("{noise}; quick runs (--quick): {hurried}.") } else { format!("{noise}.") }
}

fn machine(finding: &Finding, build: Build) -> String {
    let Machine { processor, cores, kernel, server, virtualisation, measured_at, .. } = &finding.machine;
    let virtual_machine = if virtualisation.is_empty() { "" } else { ", a virtual machine" };
    let (date, xqos) = (date(*measured_at), build.name());
    format!("Measured on {date}: {processor}, {cores} cores{virtual_machine}, Linux {kernel}, {server}, xqos {xqos}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;
    use crate::study::{Goal, Study};

    fn finding(name: &str, verdicts: Vec<GoalCheck>, others: f64) -> Finding {
        let disturbance = Some(Disturbance { others, ..Disturbance::default() });
        let study = Study { verdicts, ..Study::default() };
        Finding { experiment: name.into(), quick: false, pairs: 1, machine: Machine::default(), disturbance, study }
    }

    #[test]
    fn the_worst_miss_comes_first_in_at_most_five_lines() {
        let at_most = |value| GoalCheck::of_value(format!("v{value}"), value, "x", Goal::AtMost(1.0));
        let values = [1.5, 0.5, 3.0, 1.2, 1.3, 1.4];
        let found = [finding("demo", values.map(at_most).to_vec(), 0.0), finding("idle", vec![], 0.5)];
        let lines = conclusions(&found);
        assert_eq!(lines.len(), 5, "{lines:#?}");
        assert!(lines[0].starts_with("1 of 6 goals are met"), "{lines:#?}");
        assert!(lines[1].contains("demo: v3 is 3 x, goal <= 1 x, missed by 200 %"), "{lines:#?}");
        assert!(lines[2].contains("v1.5") && lines[2].ends_with("and 2 more."), "{lines:#?}");
        assert!(lines[3].contains("Noisy: idle (other processes used 50 % of the processors)"), "{lines:#?}");
        let unmeasured = GoalCheck::of_spread("v", Spread::of([]), "x", Goal::AtMost(1.0));
        let lines = conclusions(&[finding("expose", vec![at_most(0.5), unmeasured], 0.0)]);
        assert_eq!(lines[0], "1 of 2 goals are met, 1 with too few samples.");
        let met = conclusions(&[finding("demo", vec![at_most(0.5)], 0.0)]);
        assert_eq!(met[1..3], ["No goal was missed.", "No run was noisy."]);
    }
}
