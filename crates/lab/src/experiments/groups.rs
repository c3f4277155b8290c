// SPDX-License-Identifier: MIT
//! Twelve connections of one program beside one of another: what groups make of their shares.
//!
//! Thirteen x11perf of the same test never pause; twelve of them are put into one group by name, as connections of one program are
//! by their process or control group, and the other one into another. Server time is what xqos counts (ListClients before and after),
//! so that a busy machine hardly matters.

use super::{Measure, Takes};
use crate::bench::Bench;
use crate::goals::Key;
use crate::load::{Load, Perf, Placement};
use crate::server::Server;
use crate::statistics::{Spread, jain_index};
use crate::study::{Columns, Goal, Row, Study, Verdict};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use xqos_abi::Grouping;
use xqos_client::Control;

const TEST: &str = "ellipse100";
const CLIENTS: usize = 12;
const CAP_PPM: u32 = 200_000;
/// A fifth too, hard.
const BUDGET_US: u32 = 4000;
const PERIOD_US: u32 = 20_000;

/// What is set for the twelve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Case {
    /// Each stands for itself.
    Alone,
    Grouped,
    Capped,
    Reserved,
}

impl Case {
    const ALL: [Case; 4] = [Case::Alone, Case::Grouped, Case::Capped, Case::Reserved];

    fn title(self) -> &'static str {
        match self {
            Case::Alone => "no groups",
            Case::Grouped => "twelve in a group",
            Case::Capped => "the same, capped at 20 %",
            Case::Reserved => "the same, 4 ms in 20 ms reserved, hard",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Groups {
    trials: Vec<Trial>,
}

/// Server time of the twelve together, and of the one.
#[derive(Debug, Serialize, Deserialize)]
struct Trial {
    case: Case,
    elapsed_ns: u64,
    twelve_ns: u64,
    one_ns: u64,
}

impl Trial {
    fn jain(&self) -> f64 {
        jain_index(&[self.twelve_ns as f64, self.one_ns as f64])
    }

    fn share_of_twelve(&self) -> f64 {
        self.twelve_ns as f64 / self.elapsed_ns as f64
    }

    fn share_of_one(&self) -> f64 {
        self.one_ns as f64 / self.elapsed_ns as f64
    }
}

impl Measure for Groups {
    const NAME: &'static str = "groups";
    const ABOUT: &'static str = "server time of twelve connections of one program beside one of another";
    const TAKES: Takes = Takes { quick_s: 20, full_s: 180 };

    fn run(bench: &Bench) -> Result<Self> {
        let server = bench.xqos(bench.module(), 64)?;
        let control = server.control()?;
        let perf = Perf::calibrate(server.display(), TEST)?;
        let mut trials = Vec::new();
        for pair in 0..bench.pairs {
            bench.say(format!("pair {} of {}", pair + 1, bench.pairs));
            for case in Case::ALL {
                trials.push(measure(bench, &server, &control, &perf, case)?);
            }
        }
        Ok(Groups { trials })
    }

    fn study(&self) -> Study {
        let row = |case: Case| Row::new(case.title(), self.of(case));
        let table = Columns::of("Medians of server time", Case::ALL.into_iter().map(row))
            .name("what is set")
            .percent("twelve", Trial::share_of_twelve)
            .percent("one", Trial::share_of_one)
            .median("Jain's index of the two", Trial::jain)
            .table();
        let spread = |case, figure: fn(&Trial) -> f64| Spread::of(self.of(case).map(figure));
        let verdict = |what: &str, spread, goal| Verdict::of_spread(what, spread, "", goal);
        Study {
            title: "Groups".to_owned(),
            question:
                "Twelve connections of one program and one of another never pause: how is the server's time divided?"
                    .to_owned(),
            verdicts: vec![
                verdict("no groups: Jain's index of twelve and one", spread(Case::Alone, Trial::jain), Goal::Reported),
                verdict(
                    "groups: Jain's index of twelve and one",
                    spread(Case::Grouped, Trial::jain),
                    Goal::of(Key("groups.jain")),
                ),
                verdict(
                    "capped at 20 %: share of the twelve",
                    spread(Case::Capped, Trial::share_of_twelve),
                    Goal::of(Key("groups.capped")),
                ),
                verdict(
                    "4 ms in 20 ms, hard: share of the twelve",
                    spread(Case::Reserved, Trial::share_of_twelve),
                    Goal::of(Key("groups.reserved")),
                ),
            ],
            tables: vec![table],
            notes: vec![format!(
                "How it was measured. One Xvfb with xqos, policy fair, thirteen x11perf -{TEST} side by side; shares are of the time \
                 by the server's clock, in which a server that gets no processor serves nobody."
            )],
            ..Study::default()
        }
    }
}

impl Groups {
    fn of(&self, case: Case) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.case == case)
    }
}

fn measure(bench: &Bench, server: &Server, control: &Control, perf: &Perf, case: Case) -> Result<Trial> {
    control.set_groups(Grouping::None, 0)?;
    let mut twelve = Load::start(server.display(), perf, CLIENTS, Placement::SideBySide)?;
    let mut one = Load::start(server.display(), perf, 1, Placement::Stacked)?;
    let of = |load: &Load| -> Result<Vec<xqos_abi::ClientEntry>> {
        let pids = load.pids();
        Ok(control.clients()?.clients.into_iter().filter(|client| pids.contains(&(client.pid as u32))).collect())
    };
    if case != Case::Alone {
        of(&twelve)?.iter().try_for_each(|client| control.set_client_group(client.client, "twelve"))?;
        of(&one)?.iter().try_for_each(|client| control.set_client_group(client.client, "one"))?;
        let first = of(&twelve)?.first().map_or(0, |client| client.client);
        match case {
            Case::Capped => control.set_group_cap(first, CAP_PPM)?,
            Case::Reserved => control.reserve_group(first, BUDGET_US, PERIOD_US, true)?,
            Case::Alone | Case::Grouped => {}
        }
    }
    let used_ns = |load: &Load| Ok::<u64, anyhow::Error>(of(load)?.iter().map(|client| client.server_time_ns).sum());
    let look = || Ok::<_, anyhow::Error>((control.clients()?.now_ns, used_ns(&twelve)?, used_ns(&one)?));
    let before = look()?;
    std::thread::sleep(bench.time(6000, 1500));
    let after = look()?;
    twelve.see_running()?;
    one.see_running()?;
    let (elapsed_ns, twelve_ns, one_ns) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
    Ok(Trial { case, elapsed_ns, twelve_ns, one_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_held_against_their_goals_and_single_connections_are_not() {
        let trial = |case, twelve_ns| Trial { case, elapsed_ns: 1000, twelve_ns, one_ns: 1000 - twelve_ns };
        let trials = vec![
            trial(Case::Alone, 923),
            trial(Case::Grouped, 500),
            trial(Case::Capped, 200),
            trial(Case::Reserved, 200),
        ];
        let met: Vec<_> = Groups { trials }.study().verdicts.iter().map(Verdict::is_met).collect();
        assert_eq!(met, [None, Some(true), Some(true), Some(true)]);
        let missed = Groups { trials: vec![trial(Case::Grouped, 923), trial(Case::Capped, 300)] }.study();
        assert!(missed.verdicts[1..3].iter().all(|verdict| verdict.is_met() == Some(false)));
    }
}
