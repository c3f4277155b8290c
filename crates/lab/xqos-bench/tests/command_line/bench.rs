// SPDX-License-Identifier: MIT
//! Runs `xqos bench` as a program: interrupts and resumes runs, and checks the messages about missing programs.

use crate::fixture::{Ended, Folder, Running, ended, eventually, is_ignored, module, xqos};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn bench(arguments: &[&str]) -> Command {
    let mut command = xqos();
    command.env("XQOS_MODULE", module()).args(arguments);
    command
}

/// The command `run idle --quick`, which takes some seconds, with additional options.
fn idle(out: &Path, more: &[&str]) -> Command {
    let mut command = bench(&["run", "idle", "--quick", "--out"]);
    command.arg(out).args(more);
    command
}

fn said(ended: &Ended, word: &str) -> bool {
    ended.err.contains(word)
}

/// The processes of a process group that have not exited.
fn group(leader: i32) -> Vec<String> {
    let stats =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let of_group = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[0] != "Z" && fields[2] == leader.to_string()
    };
    stats.filter(of_group).collect()
}

#[test]
fn the_list_shows_how_long_each_experiment_takes() {
    let listing = ended(&mut bench(&["list"])).with(0).out;
    let idle = listing.lines().find(|line| line.starts_with("idle ")).unwrap_or_else(|| panic!("no idle in {listing}"));
    let words: Vec<&str> = idle.split_whitespace().collect();
    assert!(words[1].parse::<u32>().is_ok() && words[2] == "s", "{idle}");
    assert!(listing.starts_with(' ') && listing.contains("--quick") && listing.contains(" min  "), "{listing}");
}

#[test]
fn results_are_reused_unless_the_server_or_the_options_differ() {
    let folder = Folder::new("kept");
    let result = || fs::read_to_string(folder.path.join("idle.json")).unwrap();
    let first = ended(&mut idle(&folder.path, &[])).with(0);
    assert!(said(&first, "left") && !first.err.contains('\r'), "one line per message without a terminal: {first:#?}");
    let measured = result();
    let again = ended(&mut idle(&folder.path, &[])).with(0);
    assert!(said(&again, "kept") && said(&again, "--again") && again.out.contains("An idle server"), "{again:#?}");
    assert_eq!(result(), measured);
    // A result from another server must not be reused.
    let mut stored: Value = serde_json::from_str(&measured).unwrap();
    let machine = &stored["machine"];
    assert!(machine["module"].as_str().unwrap().contains('('), "{machine:#}");
    assert!(stored["disturbance"]["others"].is_number() && stored["disturbance"]["steal"].is_number(), "{stored:#}");
    stored["machine"]["server"] = "Xvfb of yesterday".into();
    fs::write(folder.path.join("idle.json"), stored.to_string()).unwrap();
    let other = ended(&mut idle(&folder.path, &[])).with(0);
    assert!(!said(&other, "kept") && !result().contains("of yesterday"), "{other:#?}");
    let kept = result();
    let again = ended(&mut idle(&folder.path, &["--again"])).with(0);
    assert!(!said(&again, "kept") && result() != kept, "{again:#?}");
}

/// Starts `bench run` as the leader of a new process group; its servers keep their files in `folder`.
fn run_in_group(names: &[&str], folder: &Folder) -> Running {
    let mut command = bench(&["run", "--quick", "--out"]);
    command.arg(folder.path.join("out")).args(names).process_group(0).env("TMPDIR", &folder.path);
    Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
}

#[track_caller]
fn ended_by(signal: &str, running: Running, folder: &Folder) {
    let leader = running.pid();
    running.signal(signal);
    let told = running.ended().with(130);
    assert!(said(&told, "interrupted") && said(&told, "same command"), "{told:#?}");
    assert!(!said(&told, "failed"), "errors caused by the interruption are not reported: {told:#?}");
    assert_eq!(group(leader), Vec::<String>::new(), "left after SIG{signal}");
    let left: Vec<_> = fs::read_dir(&folder.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["out"], "no server's folder is left");
}

#[test]
fn an_interrupted_run_continues_with_the_missing_cases() {
    let folder = Folder::new("interrupted");
    let running = run_in_group(&["idle", "demo"], &folder);
    let has_part = || fs::read_to_string(folder.path.join("out/demo.parts")).is_ok_and(|text| text.lines().count() > 1);
    let is_drawing = || has_part() && group(running.pid()).len() > 10;
    eventually("the load of the second experiment draws", || is_drawing().then_some(()));
    ended_by("INT", running, &folder);
    let mut left: Vec<_> =
        fs::read_dir(folder.path.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["demo.parts", "idle.json"], "whole results, and the cases that were measured");
    let kept = fs::read_to_string(folder.path.join("out/demo.parts")).unwrap();
    let again = run_in_group(&["demo"], &folder);
    eventually("the rest is measured", || folder.path.join("out/demo.json").exists().then_some(()));
    again.ended().with(0);
    let whole: Value = serde_json::from_str(&fs::read_to_string(folder.path.join("out/demo.json")).unwrap()).unwrap();
    let first: Value = serde_json::from_str(kept.lines().nth(1).expect("a case is kept")).unwrap();
    assert_eq!(whole["raw"]["trials"][0]["samples"], first["samples"], "measured cases are reused");
    assert!(said(&ended(&mut idle(&folder.path.join("out"), &[])).with(0), "kept"));
}

#[test]
fn signals_end_everything_even_during_start_up() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        if is_ignored(signal, number) {
            continue;
        }
        let folder = Folder::new(signal);
        let running = run_in_group(&["idle"], &folder);
        eventually("the run has started a process", || (group(running.pid()).len() >= 2).then_some(()));
        ended_by(signal, running, &folder);
    }
}

#[test]
fn a_missing_program_is_named_and_other_experiments_run() {
    let folder = Folder::new("missing");
    let programs = folder.path.join("bin");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["Xvfb", "sh", "xkbcomp", "stdbuf"] {
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
        symlink(places.find(|place| place.is_file()).unwrap(), programs.join(program)).unwrap();
    }
    let out = folder.path.join("out");
    let mut command = bench(&["run", "demo", "idle", "--quick", "--out"]);
    let told = ended(command.arg(&out).env("PATH", &programs)).with(1);
    assert!(told.out.contains("skipped: x11perf is missing: install Debian's package x11-apps"), "{told:#?}");
    assert!(told.err.contains("could not be run: demo (x11perf is missing"), "{told:#?}");
    assert!(out.join("idle.json").is_file() && !out.join("demo.json").exists(), "{told:#?}");
}

/// Stores a result, as if an earlier `idle` run had measured this number of wakeups caused by xqos.
fn store_idle(folder: &Path, wakeups: u64, others: f64) {
    let trial = |server, switches| {
        let case = json!({"clients": "0", "server": server});
        json!({"case": case, "turn": 0, "values": {"switches": switches}, "samples": {}})
    };
    let machine = json!({"processor": "Foo 3000", "cores": 2, "memory_mb": 1000, "kernel": "6.1", "distribution": "Debian",
        "load_average": 0.5, "server": "Xvfb 21.1.7", "x11perf": "x11-apps 7.7", "measured_at": 1_709_211_900});
    let stored = json!({"experiment": "idle", "quick": false, "pairs": 1, "machine": machine,
        "disturbance": {"others": others, "steal": 0.0, "pressure": null},
        "raw": {"file": "", "trials": [trial("stock", 5), trial("xqos", 5 + wakeups)]}});
    fs::write(folder.join("idle.json"), stored.to_string()).unwrap();
}

#[test]
fn a_report_of_one_experiment_has_its_result_first_and_conclusions_last() {
    let folder = Folder::new("report");
    store_idle(&folder.path, 3, 0.34);
    let page = folder.path.join("report.html");
    let told = ended(bench(&["report"]).arg(&folder.path).arg("-o").arg(&page)).with(0);
    assert!(told.out.trim_end().ends_with("report.html") && !folder.path.join("index.html").exists(), "{told:#?}");
    let html = fs::read_to_string(&page).unwrap();
    let (result, conclusions) = html.split_once("class=\"conclusions\"").unwrap();
    assert!(result.contains("<section") && result.contains("Foo 3000, 2 cores"), "the result comes first: {result}");
    let lines = conclusions.matches("<li>").count();
    assert!((3..=5).contains(&lines), "{lines} lines in {conclusions}");
    for words in ["0 of 1 goals", "Missed by most: idle: wakeups by xqos", "3 wakeups", "Noisy: idle"] {
        assert!(conclusions.contains(words), "'{words}' is missing in {conclusions}");
    }
    assert!(html.contains("Noisy: during this measurement, other processes used 34 % of the processors"), "{html}");
    assert!(told.out.contains("other processes used 34 % of the processors"), "{told:#?}");
    assert!(!html.contains("https:") && !html.contains("src="), "the report is self-contained");
    ended(bench(&["report"]).arg(&folder.path)).with(0);
    assert!(folder.path.join("index.html").is_file());
}

#[test]
fn an_experiment_file_is_checked_run_and_reported_after_it_is_deleted() {
    let folder = Folder::new("own");
    let file = folder.path.join("mine.toml");
    let text = r#"about = "a program of mine"
title = "Mine"
question = "How long does it take?"
[setting]
measure = "command"
command = ["sh", "-c", "echo fps 25"]
prints = ["fps"]
count = 4
load = { silent = true, clients = 3 }
[axis.server]
stock = { server = "stock" }
xqos = { server = "xqos" }
[[table]]
title = "Medians"
rows = ["server"]
columns = [["fps", "mean(fps)"], ["runs", "count(run)"]]
[[verdict]]
key = "fps"
what = "frames a second, xqos over stock"
unit = "x"
value = "mean(fps)[server=xqos] / mean(fps)[server=stock]"
goal = { at_least = 0.9 }
"#;
    fs::write(&file, text.replace("\"fps\"]\n", "\"fsp\"]\n")).unwrap();
    ended(bench(&["check"]).arg(&file)).failed_saying(&["mine.toml:16: nothing measures 'fps'"]);
    fs::write(&file, text).unwrap();
    assert_eq!(ended(bench(&["check"]).arg(&file)).with(0).out, "");
    let out = folder.path.join("out");
    let told = ended(bench(&["run", "--trials", "1", "--out"]).arg(&out).arg(&file)).with(0);
    assert!(told.out.contains("frames a second, xqos over stock") && told.out.contains("met"), "{told:#?}");
    fs::remove_file(&file).unwrap();
    let told = ended(bench(&["report"]).arg(&out)).with(0);
    assert!(told.out.contains("Mine") && told.out.contains("25"), "{told:#?}");
}

#[test]
fn cases_are_measured_at_the_same_time_and_those_without_their_program_are_left_out() {
    let folder = Folder::new("together");
    let file = folder.path.join("mine.toml");
    // Each run waits until all three have begun.
    let text = r#"about = "a program of mine"
title = "Mine"
question = "Do they run at the same time?"
[setting]
measure = "command"
server = "stock"
command = ["sh", "-c", """
[ {program} != none ] || { echo nonesuch >&2; exit 127; }
touch FOLDER/{program}
until [ -e FOLDER/one ] && [ -e FOLDER/two ] && [ -e FOLDER/three ]; do sleep 0.1; done
echo runs 1
"""]
prints = ["runs"]
count_quick = 1
together = 4
once = true
[axis]
program = ["one", "two", "three", "none"]
[[table]]
title = "Runs"
rows = ["program"]
columns = [["runs", "runs"]]
"#;
    fs::write(&file, text.replace("FOLDER", &folder.path.display().to_string())).unwrap();
    let told = ended(bench(&["run", "--quick", "--out"]).arg(folder.path.join("out")).arg(&file)).with(0);
    assert!(said(&told, "none: left out: nonesuch is missing"), "{told:#?}");
    let rows = ["one", "two", "three"].map(|name| told.out.lines().any(|line| line.starts_with(name)));
    assert_eq!((rows, told.out.contains("\nnone")), ([true; 3], false), "{told:#?}");
}

#[test]
fn two_folders_are_compared_as_table_and_as_json() {
    let (a, b) = (Folder::new("a"), Folder::new("b"));
    let compare = |more: &[&str]| ended(bench(&["compare"]).arg(&a.path).arg(&b.path).args(more));
    store_idle(&a.path, 2, 0.0);
    compare(&[]).failed_saying(&["has no results", "bench run"]);
    store_idle(&b.path, 3, 0.5);
    let told = compare(&[]).with(0);
    for words in ["idle: wakeups by xqos in 10 s, 0 clients", "1.50", "measured once", "B's idle is noisy"] {
        assert!(told.out.contains(words), "'{words}' is missing in {}", told.out);
    }
    let told: Value = serde_json::from_str(&compare(&["--json"]).with(0).out).unwrap();
    let pair = &told["verdicts"][0];
    assert_eq!((&pair["a"]["value"], &pair["b"]["value"], &pair["ratio"]), (&json!(2.0), &json!(3.0), &json!(1.5)));
    assert!(pair["spreads_overlap"].is_null() && pair["conclusion"].is_string(), "{told:#}");
    store_idle(&b.path, 2, 0.0);
    assert!(compare(&[]).with(0).out.contains("no difference seen"));
}

#[test]
fn old_option_names_still_work_but_are_hidden() {
    let folder = Folder::new("names");
    let told = ended(bench(&["run", "nonsense", "--pairs", "2", "--output"]).arg(&folder.path));
    told.failed_saying(&["no experiment 'nonsense'", "idle"]);
    let help = ended(&mut bench(&["run", "--help"])).with(0).out;
    assert!(help.contains("--out <DIR>") && help.contains("--trials <N>") && help.contains("--again"), "{help}");
    assert!(!help.contains("--pairs") && !help.contains("--output"), "{help}");
}
