// SPDX-License-Identifier: MIT
//! `xqos replay`: runs a recorded trace through the scheduler again, unchanged or under another policy.

use crate::commands::policy::policies;
use crate::commands::trace;
use anyhow::{Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use xqos_abi::trace::Event;
use xqos_agent::amount::KindOptions;
use xqos_agent::client::in_ns;
use xqos_cli::output;
use xqos_core::setting::{CUT, POLICY_SLICE};
use xqos_core::{Parameters, PolicyKind};
use xqos_rules::values::reader;
use xqos_sim::check::Check;
use xqos_sim::server::{Refused, Rules, serve};
use xqos_sim::workload::{Plan, Workload};
use xqos_text::quantity::{Micros, Reservation};
use xqos_text::table::{Column, TextTable};
use xqos_text::time::of_ns;
use xqos_trace::histogram::Histogram;
use xqos_trace::model::Model;
use xqos_trace::show::line;

/// Replays a recorded trace under another policy or other reservations
///
/// Reports the response times that would have resulted. Clients make the same requests as in the trace. Each request
/// takes the same time, and the pauses between a client's bursts are the same. The cost of decisions and the kernel's
/// scheduling are not simulated.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos replay --check desk.trace
  xqos replay --policy stock desk.trace
  xqos replay --policy fair --reserve mpv=5ms/40ms desk.trace
  xqos replay --policy fair --cut on desk.trace    long requests in parts

--check exits with 1 if a decision differs from the recorded one.")]
pub struct Arguments {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Repeat the recorded calls to the scheduler, and compare every decision
    #[arg(long, conflicts_with_all = ["policy", "reserve", "slice", "cut"])]
    check: bool,
    /// The policy [default: the recorded one]
    #[arg(long, value_name = "POLICY", value_parser = policies(), hide_possible_values = true)]
    policy: Option<PolicyKind>,
    /// Reserve for programs with this text in their name, or for a pid; may be repeated
    #[arg(long, value_name = "NAME|PID=BUDGET/PERIOD", value_parser = reserve)]
    reserve: Vec<(String, Reservation)>,
    #[command(flatten)]
    kind: KindOptions,
    /// Maximum slice under fair and fixed
    #[arg(long, value_name = "TIME", value_parser = reader(&POLICY_SLICE))]
    slice: Option<u32>,
    /// Time after which a long core request is cut to serve other clients: on, off, or 0.05ms to 100ms
    #[arg(long, value_name = "on|off|TIME", value_parser = reader(&CUT), default_value = "off")]
    cut: u32,
}

fn reserve(text: &str) -> Result<(String, Reservation), String> {
    let (who, reservation) =
        text.split_once('=').ok_or_else(|| format!("'{text}': write program=budget/period, such as mpv=5ms/40ms"))?;
    Ok((who.to_owned(), reservation.parse()?))
}

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        if self.check { self.perform_check() } else { self.perform_replay() }
    }

    fn perform_check(&self) -> Result<()> {
        let (file, names) = trace::open(&self.file)?;
        let mut check = Check::default();
        let mut model = Model::new();
        for event in file.events() {
            check.take(&event);
            model.take(&event);
        }
        for difference in &check.differences {
            let event = |what| Event { at: difference.at, what };
            let recorded = line(&event(difference.recorded), &model, &names);
            let decided = match difference.decided {
                Some(what) => line(&event(what), &model, &names),
                None => "no client is served".to_owned(),
            };
            output::line(&format!("recorded {recorded}\nreplayed {decided}"))?;
        }
        let Check { agreed, differed, unchecked, .. } = check;
        let skipped = if unchecked > 0 {
            format!("; {unchecked} could not be checked, because records before them are missing")
        } else {
            String::new()
        };
        output::line(&format!("{agreed} decisions agree, {differed} differ{skipped}"))?;
        if differed > 0 {
            bail!("this version of the scheduler decides differently than the recorded one");
        }
        if agreed == 0 {
            bail!("the trace has no decision that can be checked: record a longer one");
        }
        Ok(())
    }

    fn perform_replay(&self) -> Result<()> {
        let (file, _) = trace::open(&self.file)?;
        let mut recorded = Model::new();
        for event in file.events() {
            recorded.take(&event);
        }
        let workload = Workload::of_events(file.events());
        if workload.plans.is_empty() {
            bail!("no client was served in this trace: there is nothing to replay");
        }
        let policy = self.policy.or(recorded.policy).unwrap_or(PolicyKind::Fair);
        let mut parameters = Parameters { blocking_ns: 1, ..Parameters::default() };
        if let Some(slice) = self.slice {
            parameters.slice_ns = Micros(slice).ns();
        }
        let names = names_of(&workload);
        let reservations = self.reservations(&names)?;
        let rules = Rules {
            policy,
            parameters,
            reservations,
            watches: policy != PolicyKind::Stock,
            part_ns: Micros(self.cut).ns(),
        };
        let mut replayed = Model::new();
        serve(&workload, &rules, |event| {
            replayed.take(&event);
        })
        .map_err(|refused| match refused {
            Refused::Admission(place) => {
                anyhow::anyhow!("the reservation for {} is refused with the others: reserve less", names[place].0)
            }
            _ => anyhow::anyhow!("the trace has more clients than a server can have"),
        })?;
        output::print(&report(&recorded, &replayed, policy))
    }

    fn reservations(&self, names: &[(String, u32)]) -> Result<BTreeMap<usize, xqos_core::Reservation>> {
        let mut reservations = BTreeMap::new();
        for (who, wanted) in &self.reserve {
            let is_meant = |(name, pid): &(String, u32)| name.contains(who.as_str()) || who.parse() == Ok(*pid);
            let places: Vec<usize> = (0..names.len()).filter(|&place| is_meant(&names[place])).collect();
            if places.is_empty() {
                bail!("no client of the trace is called '{who}': `xqos trace stats` lists them");
            }
            for place in places {
                reservations.insert(place, in_ns(*wanted, self.kind.get()));
            }
        }
        Ok(reservations)
    }
}

/// The name and pid of each plan.
fn names_of(workload: &Workload) -> Vec<(String, u32)> {
    let name = |plan: &Plan| {
        let mut model = Model::new();
        for &what in &plan.identity {
            model.take(&Event { at: workload.began, what });
        }
        model.clients().first().map(|client| (client.identity.program.clone(), client.identity.pid)).unwrap_or_default()
    };
    workload.plans.iter().map(name).collect()
}

fn report(recorded: &Model, replayed: &Model, policy: PolicyKind) -> String {
    let figures = ["BURSTS", "MEAN", "P50", "P99", "WORST"];
    let mut table = TextTable::new(vec![Column::words("CLIENT", 0).elastic()])
        .numbers(0, &figures)
        .numbers(0, &["REPLAYED"])
        .numbers(0, &figures[1..])
        .numbers(0, &["SERVED", "REPLAYED"]);
    let base = |model: &Model, key: usize| model.clients().get(key).map(|client| client.identity.base);
    for (key, client) in recorded.clients().iter().enumerate() {
        let other = (0..replayed.clients().len()).find(|&other| base(replayed, other) == Some(client.identity.base));
        let Some(other) = other.map(|other| &replayed.clients()[other].total) else { continue };
        let figures = |responses: &Histogram| {
            let [p50, p99] = [0.5, 0.99].map(|part| responses.quantile_ns(part));
            let times = [responses.mean_ns(), p50, p99, responses.worst_ns()].map(of_ns);
            [responses.count().to_string()].into_iter().chain(times)
        };
        let mut row = vec![recorded.name(key)];
        row.extend(figures(&client.total.responses));
        row.extend(figures(&other.responses));
        row.extend([of_ns(client.total.server_time_ns), of_ns(other.server_time_ns)]);
        table.row(row);
    }
    let was = recorded.policy.map_or("unknown", PolicyKind::name);
    format!(
        "Recorded under {was}, {:.3} s; replayed under {}, {:.3} s. Response times of bursts.\n\n{}",
        recorded.span_ns() as f64 / 1e9,
        policy.name(),
        replayed.span_ns() as f64 / 1e9,
        table.render(None)
    )
}
