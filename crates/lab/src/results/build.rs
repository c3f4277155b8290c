// SPDX-License-Identifier: MIT
//! The build that a report describes, and the label that marks results from other builds.
//!
//! A report describes the module that was measured last. A run repeats only the experiments that were requested.
//! Results of other modules stay in the folder, and the report marks each of their lines.

use super::Finding;

const MARK: &str = "another build";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Build<'a>(&'a str);

impl<'a> Build<'a> {
    pub fn of(found: &'a [Finding]) -> Build<'a> {
        let last = found.iter().max_by_key(|finding| finding.machine.measured_at);
        Build(last.map_or("", |finding| &finding.machine.module))
    }

    /// Version and hash, such as `0.1.0 (a3ebcec2a98130f8)`.
    pub fn name(self) -> &'a str {
        if self.0.is_empty() { "unknown" } else { self.0 }
    }

    /// Returns `another build` for a result of a different build.
    pub fn mark(self, finding: &Finding) -> Option<&'static str> {
        (finding.machine.module != self.0).then_some(MARK)
    }

    /// The first result of this build.
    pub fn first(self, found: &'a [Finding]) -> Option<&'a Finding> {
        found.iter().find(|finding| self.mark(finding).is_none())
    }

    /// The experiment's name, marked if the result comes from another build.
    pub fn label(self, finding: &Finding) -> String {
        let mark = self.mark(finding).map_or(String::new(), |mark| format!(" ({mark})"));
        finding.experiment.clone() + &mark
    }

    /// A sentence about a result of another build.
    pub fn caution(self, finding: &Finding) -> Option<String> {
        let of = &finding.machine.module;
        let of = if of.is_empty() { "an unknown module" } else { of };
        self.mark(finding).map(|mark| format!("From {mark}: measured with {of}; the report is about {}.", self.name()))
    }

    /// A sentence that names all results of other builds.
    pub fn others(self, found: &[Finding]) -> Option<String> {
        let others = found.iter().filter(|finding| self.mark(finding).is_some());
        let names: Vec<&str> = others.map(|finding| finding.experiment.as_str()).collect();
        (!names.is_empty()).then(|| format!("Results from other builds, marked as such: {}.", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::study::Study;

    fn finding(name: &str, module: &str, measured_at: u64) -> Finding {
        let machine = Machine { module: module.into(), measured_at, ..Machine::default() };
        let study = Study::default();
        Finding { experiment: name.into(), quick: false, pairs: 1, machine, disturbance: None, study }
    }

    #[test]
    fn the_report_describes_the_latest_build_and_marks_others() {
        let found = [finding("demo", "0.1 (a)", 2), finding("hard", "0.1 (b)", 3), finding("soft", "", 1)];
        let build = Build::of(&found);
        assert_eq!(build.name(), "0.1 (b)");
        let labels: Vec<String> = found.iter().map(|finding| build.label(finding)).collect();
        assert_eq!(labels, ["demo (another build)", "hard", "soft (another build)"]);
        assert_eq!(build.others(&found).unwrap(), "Results from other builds, marked as such: demo, soft.");
        let caution = build.caution(&found[0]).unwrap();
        assert_eq!(caution, "From another build: measured with 0.1 (a); the report is about 0.1 (b).");
        assert!(build.caution(&found[2]).unwrap().contains("an unknown module"));
        assert_eq!(build.caution(&found[1]), None);
    }

    #[test]
    fn results_of_one_build_have_no_mark() {
        let found = [finding("demo", "0.1 (a)", 2), finding("hard", "0.1 (a)", 3)];
        assert_eq!(Build::of(&found).others(&found), None);
    }
}
