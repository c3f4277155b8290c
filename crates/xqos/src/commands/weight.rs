// SPDX-License-Identifier: MIT
//! `xqos weight`, `xqos priority` and `xqos limit`: settings of a client relative to others.

use crate::selector::Selector;
use anyhow::Result;
use clap::Args;
use xqos_abi::{ClientEntry, Setting, SettingKind, Subject};
use xqos_agent::client::{adopt_command, described, weight_of};
use xqos_agent::rules::apply::describe;
use xqos_agent::session::Session;
use xqos_cli::output::{self, note};
use xqos_cli::quantity::{Slice, Weight};
use xqos_core::PolicyKind;

/// Sets a client's share of server time relative to others (policy fair)
///
/// While several clients are busy, a client of weight 2 gets twice the server time of a client of weight 1, the
/// default. A weight is no guarantee: with more clients, each gets less. For a guarantee, see `xqos reserve --help`. A
/// weight that is set manually overrides all rules, until `xqos rules adopt`.
#[derive(Args, Debug)]
#[command(name = "weight", after_help = WEIGHT_EXAMPLES)]
pub struct Weigh {
    #[command(flatten)]
    selector: Selector,
    /// 0.01 to 100; 1 is the default
    #[arg(value_name = "W")]
    weight: Weight,
}

const WEIGHT_EXAMPLES: &str = "\
Examples:
  xqos weight --class firefox 0.5
  xqos weight --pid 4711 2";

/// Sets a client's fixed priority (policy fixed)
///
/// Under `xqos policy fixed`, the ready client with the highest priority is served, and all others wait. A busy client
/// can lock out clients of lower priority indefinitely; the policy exists for comparison.
#[derive(Args, Debug)]
#[command(name = "priority", after_help = PRIORITY_EXAMPLES)]
pub struct Prioritise {
    #[command(flatten)]
    selector: Selector,
    /// -1000 to 1000; larger values are served first; 0 is the default
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: i32,
}

const PRIORITY_EXAMPLES: &str = "\
Examples:
  xqos priority --class mpv 10
  xqos priority --pid 4711 -5";

/// Limits how long a client is served at a time
///
/// While others wait, a client is served for at most a slice: 5 ms, unless `xqos policy --slice` sets another value. A
/// shorter slice for a client with long bursts reduces the waits of others. The client's share of the server stays the
/// same; to reduce it, see `max` in `xqos rules --help`. A single request is interrupted only if it can
/// be cut (`xqos policy --cut`).
#[derive(Args, Debug)]
#[command(name = "limit", after_help = LIMIT_EXAMPLES)]
pub struct Limit {
    #[command(flatten)]
    selector: Selector,
    /// 100us to 1s, or none for the default of all clients
    #[arg(long, value_name = "TIME")]
    slice: Slice,
}

const LIMIT_EXAMPLES: &str = "\
Examples:
  xqos limit --pid 4711 --slice 2ms
  xqos limit --class firefox --slice none";

impl Limit {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        set(display, &self.selector, Setting::Slice(self.slice.0)).map(drop)
    }
}

impl Weigh {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let policy = set(display, &self.selector, Setting::Weight(self.weight.0))?;
        only_under(PolicyKind::Fair, policy, "weights");
        Ok(())
    }
}

impl Prioritise {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let policy = set(display, &self.selector, Setting::Priority(self.priority))?;
        only_under(PolicyKind::Fixed, policy, "fixed priorities");
        Ok(())
    }
}

/// Changes the setting of each selected client, reports each change and how to undo it, and returns the policy.
fn set(display: Option<&str>, selector: &Selector, wanted: Setting) -> Result<PolicyKind> {
    let (session, info) = Session::open_armed(display)?;
    for entry in selector.resolve(&session)? {
        let set = session.control.set(Subject::Client(entry.client), wanted);
        set.map_err(|error| session.explained(error, &entry))?;
        let Some((name, before, undo)) = command_for(&entry, wanted.kind()) else { continue };
        let undo = adopt_command(&entry, &entry.settings_origin, name).unwrap_or(undo);
        output::line(&format!("{} for {}, was {before}; undo: {undo}", describe(&wanted), described(&entry)))?;
    }
    Ok(info.policy)
}

/// For a setting of this file's commands: its name in rules, the client's value, and the command to set that value.
pub fn command_for(entry: &ClientEntry, kind: SettingKind) -> Option<(&'static str, String, String)> {
    let id = entry.client;
    Some(match kind {
        SettingKind::Weight => {
            let value = weight_of(entry).to_string();
            ("weight", value.clone(), format!("xqos weight --client {id:#x} {value}"))
        }
        SettingKind::Priority => {
            let value = entry.fixed_priority.to_string();
            ("priority", value.clone(), format!("xqos priority --client {id:#x} {value}"))
        }
        SettingKind::Slice => {
            let value = Slice(entry.slice_us).to_string();
            ("slice", value.clone(), format!("xqos limit --client {id:#x} --slice '{value}'"))
        }
        _ => return None,
    })
}

/// Warns if the setting has no effect under the current policy.
fn only_under(needed: PolicyKind, policy: PolicyKind, what: &str) {
    if policy != needed {
        let (policy, needed) = (policy.name(), needed.name());
        note(&format!("{what} apply under policy {needed} only, and this is {policy}: run `xqos policy {needed}`"));
    }
}
