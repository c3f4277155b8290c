// SPDX-License-Identifier: MIT
//! `xqos weight`, `xqos priority` and `xqos limit`: a client's standing beside others.

use crate::selector::Selector;
use anyhow::Result;
use clap::Args;
use xqos_abi::{Setting, Subject};
use xqos_agent::client::{back_to_rules, described, weight_of};
use xqos_agent::session::Session;
use xqos_cli::output::{self, note};
use xqos_cli::quantity::{Slice, Weight};
use xqos_core::PolicyKind;

/// Sets how much server time a client gets beside others (policy fair)
///
/// While several clients are busy, one of weight 2 gets twice the server time of one of weight 1, the default. A weight
/// is no promise: with more clients everybody gets less. For a promise, see `xqos reserve --help`. A weight that is set
/// by hand stands above all rules, until `xqos rules adopt`.
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
/// Under `xqos policy fixed` the ready client of the highest priority is served, and all others wait. A busy client can
/// keep lower ones out for as long as it likes; the policy is there for comparison.
#[derive(Args, Debug)]
#[command(name = "priority", after_help = PRIORITY_EXAMPLES)]
pub struct Prioritise {
    #[command(flatten)]
    selector: Selector,
    /// -1000 to 1000, the larger the earlier; 0 is the default
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1000..=1000))]
    priority: i32,
}

const PRIORITY_EXAMPLES: &str = "\
Examples:
  xqos priority --class mpv 10
  xqos priority --pid 4711 -5";

/// Limits how long a client is served at a time
///
/// While others wait, a client is served for at most a slice: 5 ms, unless `xqos policy --slice` says otherwise. One that asks
/// for much at once may be given shorter ones, so that who waits for it waits less. It gets as much of the server as
/// before; for less, see `max` in `xqos rules --help`. A single request is never cut short.
#[derive(Args, Debug)]
#[command(name = "limit", after_help = LIMIT_EXAMPLES)]
pub struct Limit {
    #[command(flatten)]
    selector: Selector,
    /// 100us to 1s; none: as long as all
    #[arg(long, value_name = "TIME")]
    slice: Slice,
}

const LIMIT_EXAMPLES: &str = "\
Examples:
  xqos limit --pid 4711 --slice 2ms
  xqos limit --class firefox --slice none";

impl Limit {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (session, _) = Session::open_armed(display)?;
        for entry in self.selector.resolve(&session)? {
            let set = session.control.set(Subject::Client(entry.client), Setting::Slice(self.slice.0));
            set.map_err(|error| session.explained(error, &entry))?;
            let (who, before, id) = (described(&entry), Slice(entry.slice_us), entry.client);
            output::line(&format!(
                "longest slice {} for {who}, was {before}; undo: xqos limit --client {id:#x} --slice '{before}'",
                self.slice
            ))?;
        }
        Ok(())
    }
}

impl Weigh {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (session, info) = Session::open_armed(display)?;
        for entry in self.selector.resolve(&session)? {
            let set = session.control.set_weight(entry.client, self.weight.0);
            set.map_err(|error| session.explained(error, &entry))?;
            let (who, before, id) = (described(&entry), weight_of(&entry), entry.client);
            let weight = self.weight;
            let undo = back_to_rules(&entry, &entry.settings_origin, "weight");
            let undo = undo.unwrap_or_else(|| format!("xqos weight --client {id:#x} {before}"));
            output::line(&format!("weight {weight} for {who}, was {before}; undo: {undo}"))?;
        }
        only_under(PolicyKind::Fair, info.policy, "weights");
        Ok(())
    }
}

impl Prioritise {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (session, info) = Session::open_armed(display)?;
        for entry in self.selector.resolve(&session)? {
            let set = session.control.set_priority(entry.client, self.priority);
            set.map_err(|error| session.explained(error, &entry))?;
            let (who, before, id) = (described(&entry), entry.fixed_priority, entry.client);
            let priority = self.priority;
            let undo = back_to_rules(&entry, &entry.settings_origin, "priority");
            let undo = undo.unwrap_or_else(|| format!("xqos priority --client {id:#x} {before}"));
            output::line(&format!("priority {priority} for {who}, was {before}; undo: {undo}"))?;
        }
        only_under(PolicyKind::Fixed, info.policy, "fixed priorities");
        Ok(())
    }
}

/// Was my rule applied? Not yet, under another policy.
fn only_under(needed: PolicyKind, policy: PolicyKind, what: &str) {
    if policy != needed {
        let (policy, needed) = (policy.name(), needed.name());
        note(&format!("{what} count under policy {needed} only, and this is {policy}: `xqos policy {needed}`"));
    }
}
