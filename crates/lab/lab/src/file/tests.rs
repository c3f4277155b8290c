// SPDX-License-Identifier: MIT
//! Tests that each faulty file is refused with a message that says what to write, and tests the evaluation of trials.

use super::data::tests::trial;
use super::*;

/// A valid experiment. Each mistake replaces one piece of it.
const SOUND: &str = r#"about = "a"
title = "t"
question = "q"
[setting]
measure = "light"
load = { x11perf = "{load}", clients = 12 }
[axis]
load = ["noop", "dot"]
[axis.case]
stock = { server = "stock" }
fair = { server = "xqos", policy = "fair" }
[[table]]
title = "{load}"
each = ["load"]
rows = ["case"]
columns = [["mean ms", "mean(response)"], ["over stock", "mean(response) / mean(response)[case=stock]", "spread"]]
[[verdict]]
key = "better"
what = "{load}: better"
unit = "x"
value = "mean(response)[case=stock] / mean(response)[case=fair]"
each = ["load"]
goal = { at_least = 2.0 }
[[chart]]
title = "ranges"
kind = "ranges"
of = "case"
groups = ["load"]
y = "response"
"#;

impl Experiment {
    fn goal_keys(&self) -> Vec<String> {
        let of = |verdict: &format::Verdict| {
            let each: Vec<&AxisValues> = self.axes.iter().filter(|axis| verdict.each.contains(&axis.name)).collect();
            let key = |cell: &Cell| study::goal_key(&self.name, verdict, cell);
            data::cells(&each).iter().map(key).filter(|key| crate::goals::find(key).is_some()).collect::<Vec<_>>()
        };
        self.definition.verdict.iter().flat_map(of).collect()
    }

    fn published_keys(&self) -> Vec<String> {
        let of_axes = self.axes.iter().flat_map(|axis| &axis.values).map(|(_, setting)| setting);
        let all = of_axes.chain([&self.definition.setting]).filter_map(|setting| setting.published.as_ref());
        all.flat_map(|keys| keys.values()).map(|key| key.split('(').next().unwrap_or(key).to_owned()).collect()
    }
}

/// Keys of goals and of papers' figures that the experiments use.
pub(crate) fn keys() -> [std::collections::BTreeSet<String>; 2] {
    let all = crate::experiments::all();
    let of = |names: fn(&Experiment) -> Vec<String>| all.iter().flat_map(names).collect();
    [of(Experiment::goal_keys), of(Experiment::published_keys)]
}

#[test]
fn every_built_in_experiment_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab/experiments");
    let known: Vec<String> = crate::experiments::all().into_iter().map(|one| one.name).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        Experiment::parse(&name, &path.display().to_string(), &text).unwrap();
        assert!(known.contains(&name), "{name} is in lab/experiments and not part of the program");
        assert!(text.lines().count() <= 130, "{name} is longer than an experiment file should be");
    }
}

#[test]
fn an_invalid_file_is_refused_with_line_and_correction() {
    let wrong = [
        ("title = \"t\"\n", "", 1, "missing field `title`"),
        ("about = \"a\"", "about = \"a\"\nabuot = \"b\"", 2, "unknown field `abuot`, expected one of `about`"),
        ("[setting]", "[setting", 4, "unclosed table"),
        ("measure = \"light\"", "measure = \"heavy\"", 5, "write light, line, frames"),
        ("measure = \"light\"", "time = \"5 minutes\"", 5, "'minutes' is not a unit of time: use us, ms"),
        ("measure = \"light\"", "reserve = \"3ms\"", 5, "write budget/period such as 3ms/10ms"),
        ("measure = \"light\"", "reserve = \"half of 30ms\"", 5, "is not a fraction: write one such as 1/6"),
        ("measure = \"light\"", "slice = \"50us\"", 5, "is out of range: choose from 0.1ms"),
        ("measure = \"light\"", "cut = \"1us\"", 5, "is out of range: choose from 0.05ms to 100ms; or write on or off"),
        ("measure = \"light\"", "trace = \"all\"", 5, "write slices, requests"),
        ("measure = \"light\"", "managers = \"twm\"", 5, "there is no 'twm' here: write openbox, picom"),
        ("measure = \"light\"", "desk = [\"player\", \"editor\"]", 5, "no 'editor' here: write player, terminal, page"),
        ("measure = \"light\"", "measure = \"command\"", 5, "needs command ="),
        ("measure = \"light\"", "reserve = \"auto\"", 5, "are for measure = \"film\" and"),
        ("measure = \"light\"", "before = 5", 5, "are for measure = \"film\" and"),
        ("measure = \"light\"", "nice = \"-1/1\"", 5, "nice is for measure = \"drag\""),
        ("measure = \"light\"", "measure = \"film\"", 10, "drag and simulation need xqos in the server"),
        ("x11perf = \"{load}\", ", "", 6, "write exactly one"),
        ("clients = 12", "clients = \"dozen\"", 6, "'dozen' is not a whole number"),
        ("clients = 12", "clients = 12, flood = \"1ms\"", 6, "write exactly one"),
        ("x11perf = \"{load}\"", "long = \"circles\"", 6, "there is no 'circles' here: write rectangles, arcs"),
        ("load = [\"noop\", \"dot\"]", "load = []", 8, "has no values"),
        ("server = \"stock\"", "server = \"xorg\"", 10, "there is no server 'xorg': write stock, xqos"),
        ("policy = \"fair\"", "policy = \"best\"", 11, "write classic, smart, smart-strict, stock, fair or fixed"),
        ("rows = [\"case\"]", "rows = [\"cases\"]", 15, "there is no axis 'cases', only load, case"),
        ("\"mean(response)\"]", "\"avg(response)\"]", 16, "there is no function 'avg': choose from mean"),
        ("\"mean(response)\"]", "\"mean(respons)\"]", 16, "nothing measures 'respons': choose from again, at"),
        ("\"spread\"", "\"spraed\"", 16, "a column is shown as median, spread"),
        ("response)[case=stock] /", "response)[case=xorg] /", 21, "'case' has no value 'xorg', only stock, fair"),
        ("[case=fair]\"", "\"", 21, "'response' depends on case: write response[case=VALUE]"),
        ("goal = {", "by = \"largest\"\ngoal = {", 18, "needs both: across"),
        ("kind = \"ranges\"", "kind = \"bars\"", 26, "a chart is ranges, lines, scatter, lanes, not 'bars'"),
        (
            "[axis.case]\nstock = { server = \"stock\"",
            "[server.own]\nkind = \"xfree86\"\n[axis.case]\nstock = { server = \"own\"",
            10,
            "write xvfb, xephyr",
        ),
        ("[setting]", "[server.own]\nxqos = true\n[setting]", 4, "no case uses the server 'own'"),
        ("[setting]", "[order]\noutside = [\"laod\"]\n[setting]", 5, "there is no axis 'laod'"),
        ("[setting]", "[order]\nnew_servers = \"often\"\n[setting]", 5, "write turn, server, case, or"),
    ];
    for (from, to, line, says) in wrong {
        assert!(SOUND.contains(from), "{from}");
        // The expected line number refers to the first occurrence.
        let text = SOUND.replacen(from, to, 1);
        let error = Experiment::parse("own", "own.toml", &text).unwrap_err();
        assert!(error.starts_with(&format!("own.toml:{line}: ")) && error.contains(says), "{to}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn the_measured_pacing_is_the_recommended_one() {
    assert!(include_str!("../../../../../lab/experiments/expose.toml").contains("pacing = \"40ms\", boost = \"40ms\""));
    let documents = [
        include_str!("../../../../../README.md"),
        include_str!("../../../../../docs/exposing.md"),
        include_str!("../../../../../docs/experiments/expose.md"),
        include_str!("../../../../qos/xqos/src/commands/policy.rs"),
        include_str!("../../../../qos/agent/src/boost.rs"),
    ];
    assert!(documents.iter().all(|text| text.contains("--expose-pacing 40ms")));
    assert!(documents[4].contains("default_value = \"40ms\""));
}

fn measured(trials: &[Trial]) -> Study {
    let file = Experiment::parse("own", "own.toml", SOUND).unwrap();
    let raw = Measured { file: SOUND.to_owned(), trials: trials.to_vec() };
    file.study(serde_json::to_value(raw).unwrap()).unwrap()
}

fn noop(case: &str, turn: u32, samples: &[f64]) -> Trial {
    trial(&[("load", "noop"), ("case", case)], turn, samples)
}

#[test]
fn tables_verdicts_and_charts_cover_only_measured_cases() {
    let study = measured(&[
        noop("stock", 0, &[10.0, 20.0, 30.0]),
        noop("fair", 0, &[1.0, 2.0, 3.0]),
        noop("fair", 1, &[2.0, 4.0, 6.0]),
        noop("stock", 1, &[40.0, 80.0, 120.0]),
    ]);
    assert_eq!(study.tables.len(), 1, "dot has no measurements");
    assert_eq!(study.tables[0].title, "noop");
    assert_eq!(study.tables[0].rows, [["stock", "50", "1 (1 .. 1)"], ["fair", "3", "0.075 (0.050 .. 0.100)"]]);
    let verdict = &study.verdicts[0];
    assert_eq!((verdict.value, verdict.is_met()), (15.0, Some(true)), "{verdict:?}");
    assert_eq!((verdict.key.as_str(), verdict.what.as_str()), ("own.better[noop]", "noop: better"));
    assert_eq!((study.verdicts.len(), study.charts.len()), (1, 1));
}

#[test]
fn a_pooled_verdict_has_the_samples_of_all_turns() {
    let text =
        SOUND.replacen("mean(response)[case=stock] / mean(response)[case=fair]", "p99.9(response)[case=fair]", 1);
    let text = text.replace("each = [\"load\"]\ngoal", "each = [\"load\"]\npooled = true\ngoal");
    let trials = [noop("fair", 0, &[1.0; 1500]), noop("fair", 1, &[[3.0].repeat(4), [1.0].repeat(1500)].concat())];
    let raw = Measured { file: text.clone(), trials: trials.to_vec() };
    let study = Experiment::parse("own", "own.toml", &text).unwrap().study(serde_json::to_value(raw).unwrap()).unwrap();
    let verdict = &study.verdicts[0];
    assert_eq!((verdict.value, verdict.samples.had), (3.0, 3004), "the turns have 1 and 3");
}

#[test]
fn a_verdict_with_too_few_samples_is_not_met() {
    let study = measured(&[noop("stock", 0, &[10.0, 20.0, 30.0]), noop("fair", 0, &[1.0, 2.0])]);
    assert_eq!(study.verdicts[0].text(), "too few samples (2 of 3)");
    assert_eq!(study.verdicts[0].is_met(), Some(false));
    let study = measured(&[noop("stock", 0, &[10.0, 20.0, 30.0]), noop("fair", 0, &[])]);
    assert_eq!(study.verdicts[0].text(), "too few samples (0 of 1)");
}
