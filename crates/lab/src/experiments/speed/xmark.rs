//! Debian's Xmark and x11perfcomp, fed with data files as x11perf writes them.
//!
//! Xmark is a geometric mean of rates, each weighted, over that of a SparcStation 1. It stops without a number when the
//! weights of the tests in its file do not add up to the whole, so a reduced Xmark has to be computed here, by the same
//! formula and with the weights that stand in the script. What the SparcStation did falls away, since only ratios of
//! schedulers are stated.

use super::x11perf::said;
use crate::folder::Folder;
use crate::program::Missing;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;

const XMARK: &str = "/usr/lib/X11/x11perfcomp/Xmark";

/// By the label of the test. Tests of shared memory have none: they are known, and count nothing.
pub(super) fn weights() -> Result<BTreeMap<String, u32>> {
    let script = fs::read_to_string(XMARK).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Missing::new(XMARK).into(),
        _ => anyhow::Error::new(error).context(format!("cannot read {XMARK}")),
    })?;
    let weights: BTreeMap<String, u32> = script.lines().filter_map(weight).collect();
    if weights.is_empty() {
        bail!("{XMARK} states no weights");
    }
    Ok(weights)
}

/// The Xmark of a whole data file.
pub(super) fn xmark(data: &str) -> Result<f64> {
    let folder = Folder::create()?;
    fs::write(folder.path("data"), data)?;
    // It leaves what it works with in the folder that it is started in.
    let mut command = Command::new(XMARK);
    let (output, errors) = said(command.arg("data").current_dir(folder.path(".")).env("LC_ALL", "C"))?;
    let value = output.lines().find_map(|line| line.strip_prefix("Xmark =")?.trim().parse().ok());
    value.ok_or_else(|| anyhow!("Xmark states no number:\n{output}{errors}"))
}

/// By x11perfcomp: for each test the rates of the files after the first, over its rate in the first.
pub(super) fn compare(data: &[&str]) -> Result<BTreeMap<String, Vec<f64>>> {
    let folder = Folder::create()?;
    let mut command = Command::new("x11perfcomp");
    command.arg("-r").env("LC_ALL", "C");
    for (index, data) in data.iter().enumerate() {
        let path = folder.path(&index.to_string());
        fs::write(&path, data).with_context(|| format!("cannot write {}", path.display()))?;
        command.arg(path);
    }
    let (output, errors) = said(&mut command)?;
    let compared: BTreeMap<String, Vec<f64>> = output.lines().filter_map(|row| ratios(row, data.len() - 1)).collect();
    if compared.is_empty() {
        bail!("x11perfcomp compared nothing:\n{output}{errors}");
    }
    Ok(compared)
}

/// Xmark's formula: the geometric mean of (weight, value). 0 of none.
pub(super) fn weighted_mean(values: impl IntoIterator<Item = (u32, f64)>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (weight, value) in values {
        sum += f64::from(weight) * value.ln();
        weights += f64::from(weight);
    }
    if weights == 0.0 { 0.0 } else { (sum / weights).exp() }
}

/// `weight["Dot"] = 14;` in the script.
fn weight(line: &str) -> Option<(String, u32)> {
    let (label, value) = line.trim().strip_prefix("weight[\"")?.strip_suffix(';')?.split_once("\"] = ")?;
    Some((label.to_owned(), value.parse().ok()?))
}

/// `  4740000.0      4900000.0 (     1.034)   Dot`: the first file's rate, then rate and ratio of each other one.
fn ratios(row: &str, others: usize) -> Option<(String, Vec<f64>)> {
    let mut words = row.split_whitespace();
    words.next()?.parse::<f64>().ok()?;
    let mut ratios = Vec::new();
    for _ in 0..others {
        words.next()?.parse::<f64>().ok()?;
        words.next().filter(|&word| word == "(")?;
        ratios.push(words.next()?.strip_suffix(')')?.parse().ok()?);
    }
    Some((words.collect::<Vec<_>>().join(" "), ratios))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As x11perf would have written it, with a rate of each test that only its label decides.
    fn made_up(weights: &BTreeMap<String, u32>, rate: fn(&str) -> f64) -> String {
        let heading = "x11perf - X11 performance program, version 1.3\n\
                       The X.Org Foundation server version 12101007 on :7\n\n";
        weights.keys().fold(heading.to_owned(), |data, label| {
            let line = |kind: &str| format!("    1000 {kind} @   0.0100 msec ({:8.1}/sec): {label}\n", rate(label));
            data + &line("reps") + &line("reps") + &line("trep") + "\n"
        })
    }

    fn slow(label: &str) -> f64 {
        1000.0 + 370.0 * label.len() as f64
    }

    fn fast(label: &str) -> f64 {
        slow(label) * if label.contains("rect") { 2.0 } else { 1.5 }
    }

    #[test]
    fn our_formula_is_that_of_debians_xmark() {
        let weights = weights().expect("scripts/setup installs x11-apps");
        let [below, above] = [slow, fast].map(|rate| xmark(&made_up(&weights, rate)).unwrap());
        let expected = weighted_mean(weights.iter().map(|(label, &weight)| (weight, fast(label) / slow(label))));
        assert!((1.5..2.0).contains(&expected));
        // Xmark prints four digits after the point.
        assert!((above / below - expected).abs() < 2e-4, "{above} / {below} is not {expected}");
    }

    #[test]
    fn xmark_refuses_a_file_that_is_not_whole() {
        let mut weights = weights().expect("scripts/setup installs x11-apps");
        weights.retain(|label, _| label != "Dot");
        let error = xmark(&made_up(&weights, slow)).unwrap_err().to_string();
        assert!(error.contains("not equal to 4566.0"), "{error}");
    }

    #[test]
    fn x11perfcomp_compares_every_test_of_whatever_name() {
        let weights = weights().expect("scripts/setup installs x11-apps");
        let compared =
            compare(&[&made_up(&weights, slow), &made_up(&weights, fast), &made_up(&weights, slow)]).unwrap();
        assert_eq!(compared.len(), weights.len());
        assert_eq!(compared["(xor) 100x100 rectangle"], [2.0, 1.0]);
        assert_eq!(compared["Char16 in 7/14/7 line (k14, k24)"], [1.5, 1.0]);
    }

    #[test]
    fn a_weight_counts_as_so_many_equal_tests() {
        assert!((weighted_mean([(1, 8.0), (2, 1.0)]) - 2.0).abs() < 1e-12);
        assert_eq!(weighted_mean([]), 0.0);
        assert_eq!(weight("\tweight[\"(xor) Dot\"] = 5;"), Some(("(xor) Dot".to_owned(), 5)));
        assert_eq!(weight("\tweight[name] = 0;\t\t\t# clear"), None);
    }
}
