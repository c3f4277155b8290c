// SPDX-License-Identifier: MIT
//! `xqos weight`, `xqos priority` and `xqos limit`: settings of a client relative to others.

use crate::selector::Selector;
use anyhow::Result;
use clap::Subcommand;
use xqos_abi::{ClientEntry, Setting, SettingKind, Subject};
use xqos_agent::client::{adopt_command, described};
use xqos_agent::rules::apply::describe;
use xqos_agent::session::Session;
use xqos_cli::output::{self, note};
use xqos_core::PolicyKind;
use xqos_core::setting::{PRIORITY, SLICE, WEIGHT};
use xqos_rules::values::{Slice, Weight};

#[derive(Debug, Subcommand)]
pub enum WeightCommand {
    /// Sets a client's share of server time relative to others (policy fair)
    ///
    /// While several clients are busy, a client of weight 2 gets twice the server time of a client of weight 1, the
    /// default. A weight is no guarantee: with more clients, each gets less. For a guarantee, see `xqos reserve
    /// --help`. A weight that is set manually overrides all rules, until `xqos rules adopt`.
    #[command(after_help = "\
Examples:
  xqos weight --class firefox 0.5
  xqos weight --pid 4711 2")]
    Weight {
        #[command(flatten)]
        selector: Selector,
        #[arg(value_name = "W", help = WEIGHT.help)]
        weight: Weight,
    },
    /// Sets a client's fixed priority (policy fixed)
    ///
    /// Under `xqos policy fixed`, the ready client with the highest priority is served, and all others wait. A busy
    /// client can lock out clients of lower priority indefinitely; the policy exists for comparison.
    #[command(after_help = "\
Examples:
  xqos priority --class mpv 10
  xqos priority --pid 4711 -5")]
    Priority {
        #[command(flatten)]
        selector: Selector,
        #[arg(value_name = "N", allow_negative_numbers = true, help = PRIORITY.help)]
        #[arg(value_parser = clap::value_parser!(i32).range(i64::from(PRIORITY.least)..=i64::from(PRIORITY.most)))]
        priority: i32,
    },
    /// Limits how long a client is served at a time
    ///
    /// While others wait, a client is served for at most a slice: 5 ms, unless `xqos policy --slice` sets another
    /// value. A shorter slice for a client with long bursts reduces the waits of others. The client's share of the
    /// server stays the same; to reduce it, see `max` in `xqos rules --help`. A single request is interrupted only if
    /// it can be cut (`xqos policy --cut`).
    #[command(after_help = "\
Examples:
  xqos limit --pid 4711 --slice 2ms
  xqos limit --class firefox --slice none")]
    Limit {
        #[command(flatten)]
        selector: Selector,
        #[arg(long, value_name = "TIME", help = SLICE.help)]
        slice: Slice,
    },
}

impl WeightCommand {
    /// Changes the setting of each selected client, and reports each change and how to undo it.
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (selector, wanted, needed) = match self {
            WeightCommand::Weight { selector, weight } => {
                (selector, Setting::Weight(weight.0), Some((PolicyKind::Fair, "weights")))
            }
            WeightCommand::Priority { selector, priority } => {
                (selector, Setting::Priority(*priority), Some((PolicyKind::Fixed, "fixed priorities")))
            }
            WeightCommand::Limit { selector, slice } => (selector, Setting::Slice(slice.0), None),
        };
        let (session, info) = Session::open_armed(display)?;
        for entry in selector.resolve(&session)? {
            let set = session.control.set(Subject::Client(entry.client), wanted);
            set.map_err(|error| session.explained(error, &entry))?;
            let Some((name, before, undo)) = command_for(&entry, wanted.kind()) else { continue };
            let undo = adopt_command(&entry, &entry.settings_origin, name).unwrap_or(undo);
            output::line(&format!("{} for {}, was {before}; undo: {undo}", describe(&wanted), described(&entry)))?;
        }
        if let Some((needed, what)) = needed.filter(|(needed, _)| *needed != info.policy) {
            let (policy, needed) = (info.policy.name(), needed.name());
            note(&format!("{what} apply under policy {needed} only, and this is {policy}: run `xqos policy {needed}`"));
        }
        Ok(())
    }
}

/// For a setting of this file's commands: its name in rules, the client's value, and the command to set that value.
pub fn command_for(entry: &ClientEntry, kind: SettingKind) -> Option<(&'static str, String, String)> {
    let (name, value, typed) = match kind {
        SettingKind::Weight => ("weight", Weight(entry.weight).to_string(), "weight"),
        SettingKind::Priority => ("priority", entry.fixed_priority.to_string(), "priority"),
        SettingKind::Slice => ("slice", Slice(entry.slice_us).to_string(), "limit"),
        _ => return None,
    };
    let option = if kind == SettingKind::Slice { format!("--slice '{value}'") } else { value.clone() };
    Some((name, value, format!("xqos {typed} --client {:#x} {option}", entry.client)))
}
