// SPDX-License-Identifier: MIT
//! The rules daemon: how soon a rule is applied, what the daemon costs, and which settings remain after it is killed.
//!
//! A rule makes a reservation for mpv, which plays a film. x11perf draws at the same time, with a weight that was set
//! manually. SIGKILL ends the daemon, so it cannot clean up: its settings must end with its connection, and the manual
//! setting must stay.
//!
//! This is code because a trial kills a program halfway and waits until the server has undone its settings.

use super::{Estimate, Measure};
use crate::bench::Bench;
use crate::folder::Folder;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::mpv::Playing;
use crate::process::{self, Owned};
use crate::program;
use crate::statistics::Spread;
use crate::study::{Columns, Goal, Row, Study, Verdict};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xqos_abi::{ClientEntry, Setting, Subject, entry_flag};
use xqos_client::Control;

const TEST: &str = "ellipse100";
const RULES: &str = "version = 1\n[[rule]]\nid = \"players\"\nmatch = { exe = \"*/mpv\" }\nset = { reserve = \"10ms/40ms\", weight = 2 }\n";
/// The weight that is set manually, in hundredths.
const BY_HAND: u32 = 300;
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rules {
    trials: Vec<Trial>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Trial {
    /// Time from the daemon's start until the player had its reservation.
    held_after_s: f64,
    /// Fraction of a processor.
    cpu: f64,
    /// Time from SIGKILL until all settings of the daemon were gone.
    gone_after_s: f64,
    by_hand_stayed: bool,
}

impl Measure for Rules {
    const NAME: &'static str = "rules";
    const ABOUT: &'static str = "the rules daemon with a rule for a player: cost, and what remains when it is killed";
    const ESTIMATE: Estimate = Estimate { quick_s: 25, full_s: 240 };

    fn run(bench: &Bench) -> Result<Self> {
        let server = bench.xqos(bench.module(), 64)?;
        let control = server.control()?;
        let perf = Perf::calibrate(server.display(), TEST)?;
        let mut playing = Playing::start(None, &control, server.display(), true)?;
        playing.reach(1)?;
        let mut load = Load::start(server.display(), &perf, 1, Placement::Stacked)?;
        let of_load = |entry: &ClientEntry| load.pids().contains(&(entry.pid as u32));
        for entry in control.clients()?.clients.iter().filter(|entry| of_load(entry)) {
            control.set(Subject::Client(entry.client), Setting::Weight(BY_HAND))?;
        }
        let mut trials = Vec::new();
        for pair in 0..bench.pairs {
            bench.say(format!("turn {} of {}", pair + 1, bench.pairs));
            let (mut daemon, _folder, started) = start(server.display())?;
            wait(&mut daemon, || Ok(players(&control)?.iter().any(is_held)))?;
            let held_after_s = started.elapsed().as_secs_f64();
            let (cpu, from) = (process::cpu_time(daemon.pid())?, Instant::now());
            playing.play(bench.time(20_000, 6000))?;
            let cpu = (process::cpu_time(daemon.pid())? - cpu).as_secs_f64() / from.elapsed().as_secs_f64();
            daemon.pipes().kill().context("cannot kill the daemon")?;
            let killed = Instant::now();
            while players(&control)?.iter().any(|entry| is_held(entry) || entry.weight != 100) {
                if killed.elapsed() > LIMIT {
                    bail!("the rule's settings remain {} s after the daemon was killed", LIMIT.as_secs());
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            let gone_after_s = killed.elapsed().as_secs_f64();
            let stays = |entry: &ClientEntry| entry.weight == BY_HAND;
            let by_hand_stayed = control.clients()?.clients.iter().filter(|entry| of_load(entry)).all(stays);
            trials.push(Trial { held_after_s, cpu, gone_after_s, by_hand_stayed });
        }
        playing.end()?;
        load.see_running()?;
        Ok(Rules { trials })
    }

    fn study(&self) -> Study {
        let stayed = |trial: &Trial| f64::from(u8::from(trial.by_hand_stayed));
        let table = Columns::of("Rules, medians", [Row::new("a rule for the player", self.trials.iter())])
            .name("what")
            .median("applied after s", |trial: &Trial| trial.held_after_s)
            .percent("processor time", |trial| trial.cpu)
            .max("undone after s, worst", |trial| trial.gone_after_s)
            .percent("manual weight stayed", stayed)
            .table()
            .keyed("rules");
        let spread = |figure: &dyn Fn(&Trial) -> f64| Spread::of(self.trials.iter().map(figure));
        Study {
            title: "Rules".to_owned(),
            question: "A rule makes a reservation for a player. What does the daemon cost, and what remains when it is killed?"
                .to_owned(),
            verdicts: vec![
                Verdict::of_spread("daemon killed: its settings are undone after", spread(&|trial| trial.gone_after_s), "s", Goal::of(Key("rules.gone"))),
                Verdict::of_spread("daemon killed: fraction of manual settings that stayed", spread(&stayed), "", Goal::of(Key("rules.by_hand"))),
                Verdict::of_spread("processor time of the daemon, as a fraction", spread(&|trial| trial.cpu), "", Goal::of(Key("rules.cpu"))),
            ],
            tables: vec![table],
            ..Study::default()
        }
    }
}

/// Starts `xqos rules run` with our rule and no files of the user.
fn start(display: &str) -> Result<(Owned, Folder, Instant)> {
    let folder = Folder::create()?;
    let rules = folder.path("xqos/rules.d");
    fs::create_dir_all(&rules)?;
    fs::write(rules.join("50-player.toml"), RULES)?;
    let mut command = Command::new(program::own("xqos")?);
    command.args(["rules", "run"]).env("DISPLAY", display).env("XDG_CONFIG_HOME", folder.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    Ok((Owned::start(&mut command, Duration::from_secs(2))?, folder, started))
}

fn players(control: &Control) -> Result<Vec<ClientEntry>> {
    Ok(control.clients()?.clients.into_iter().filter(|entry| entry.name == "mpv").collect())
}

fn is_held(entry: &ClientEntry) -> bool {
    entry.flags & entry_flag::RESERVED != 0
}

fn wait(daemon: &mut Owned, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let limit = Instant::now() + LIMIT;
    while !is_so()? {
        daemon.see_running("xqos rules run")?;
        if Instant::now() > limit {
            bail!("the rule is not applied {} s after the daemon was started", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_left_too_long_or_undone_wrongly_miss_the_goals() {
        let trial = |gone_after_s, by_hand_stayed, cpu| Trial { held_after_s: 0.1, cpu, gone_after_s, by_hand_stayed };
        let met = |trial| -> Vec<_> {
            Rules { trials: vec![trial] }
                .study()
                .verdicts
                .iter()
                .map(|verdict| verdict.is_met() == Some(true))
                .collect()
        };
        assert_eq!(met(trial(0.1, true, 0.001)), [true, true, true]);
        assert_eq!(met(trial(1.5, false, 0.01)), [false, false, false]);
    }
}
