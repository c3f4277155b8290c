//! `xqos policy`: which policy serves clients without a (remaining) reservation, and the server's other settings.

use crate::output;
use crate::quantity::{Micros, Share, slice};
use crate::session::Session;
use anyhow::{Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::str::FromStr;
use xqos_abi::{PolicyChange, ServerInfo};
use xqos_core::PolicyKind;
use xqos_lab::control::Refusal;

/// Shows or sets the scheduling policy and its settings
///
/// Reservations are served first under every policy, the earliest deadline first; the policy decides among all other
/// clients. Without arguments the present settings are shown.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The policy to set
    #[arg(value_name = "NAME", value_parser = policies())]
    policy: Option<PolicyKind>,
    /// How long a client is served before another one may be, 0.1ms to 1s [fair, fixed]
    #[arg(long, value_name = "TIME", value_parser = slice)]
    slice: Option<Micros>,
    /// A turn, after which a busy client's priority falls, 0.1ms to 1s [smart]
    #[arg(long, value_name = "TIME", value_parser = slice)]
    timer_interval: Option<Micros>,
    /// The longest turn of a client that is alone, 0.1ms to 1s [smart]
    #[arg(long, value_name = "TIME", value_parser = slice)]
    maximum_slice: Option<Micros>,
    /// How much may be reserved in all, at most 0.95: the rest stays with other clients
    #[arg(long, value_name = "SHARE")]
    max_utilization: Option<Share>,
    /// Blocking time to assume when reservations are admitted: a time, or 'observed'
    #[arg(long, value_name = "TIME|observed")]
    blocking: Option<Blocking>,
    /// Write JSON instead of words
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos policy                      what is set
  xqos policy smart                the rules published in 2000
  xqos policy fair --slice 2ms
  xqos policy --max-utilization 0.8 --blocking observed

Defaults: fair, slice 5 ms, timer interval 5 ms, maximum slice 15 ms, max
utilization 0.9, blocking observed. They are set for the server's lifetime;
those that it starts with are chosen with `xqos server`.

JSON: an object with policy, slice_ms, timer_interval_ms, maximum_slice_ms,
max_utilization, admitted_utilization, blocking_observed_ms, and
blocking_configured_ms (null: the observed one is used).";

/// What a policy does, in one line.
pub fn policies() -> impl TypedValueParser<Value = PolicyKind> {
    let values = PolicyKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(explained(kind)));
    PossibleValuesParser::new(values)
        .try_map(|name| PolicyKind::from_name(&name).ok_or_else(|| format!("no policy is called {name}")))
}

fn explained(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Stock => "decide nothing: the server's own scheduler chooses, xqos observes",
        PolicyKind::Classic => "1987: ready clients in turn, ten requests each; newcomers wait for the next pass",
        PolicyKind::Smart => "2000: priorities that fall for busy clients, and rise for idle ones and for input",
        PolicyKind::Fair => "the ready client that used the least server time, divided by its weight",
        PolicyKind::Fixed => "the ready client of the highest priority; all others wait, even for ever",
        _ => "a policy that this help does not know yet",
    }
}

/// The blocking time to assume.
#[derive(Clone, Copy, Debug)]
enum Blocking {
    Observed,
    Assumed(Micros),
}

impl Blocking {
    fn us(self) -> u32 {
        match self {
            Blocking::Observed => 0,
            Blocking::Assumed(micros) => micros.0,
        }
    }
}

impl FromStr for Blocking {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "observed" => Ok(Blocking::Observed),
            text => {
                text.parse().map(Blocking::Assumed).map_err(|error| format!("{error}; or write the word 'observed'"))
            }
        }
    }
}

#[derive(Debug, Serialize)]
struct Settings {
    policy: &'static str,
    slice_ms: f64,
    timer_interval_ms: f64,
    maximum_slice_ms: f64,
    max_utilization: f64,
    admitted_utilization: f64,
    blocking_observed_ms: f64,
    blocking_configured_ms: Option<f64>,
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let change = self.change();
        if change == PolicyChange::default() {
            let info = Session::open(display)?.control.server_info()?;
            return if self.json { output::json(&settings(&info)) } else { output::print(&words(&info)) };
        }
        let (session, before) = Session::open_armed(display)?;
        session.control.set_policy(change).map_err(|error| explain(error, &change, &before))?;
        if self.json {
            return output::json(&settings(&session.control.server_info()?));
        }
        output::line(&format!("set: {}; undo: xqos policy{}", typed(&change), undo(&change, &before)))
    }

    fn change(&self) -> PolicyChange {
        PolicyChange {
            policy: self.policy,
            slice_us: self.slice.map(|time| time.0),
            timer_interval_us: self.timer_interval.map(|time| time.0),
            maximum_slice_us: self.maximum_slice.map(|time| time.0),
            max_utilization_ppm: self.max_utilization.map(|share| share.0),
            blocking_us: self.blocking.map(Blocking::us),
        }
    }
}

/// What `change` replaces, as the arguments that set it again.
fn undo(change: &PolicyChange, before: &ServerInfo) -> String {
    let back = PolicyChange {
        policy: change.policy.map(|_| before.policy),
        slice_us: change.slice_us.map(|_| before.slice_us),
        timer_interval_us: change.timer_interval_us.map(|_| before.timer_interval_us),
        maximum_slice_us: change.maximum_slice_us.map(|_| before.maximum_slice_us),
        max_utilization_ppm: change.max_utilization_ppm.map(|_| before.max_utilization_ppm),
        blocking_us: change.blocking_us.map(|_| before.blocking_configured_us),
    };
    format!(" {}", typed(&back))
}

/// A change as arguments of this command.
fn typed(change: &PolicyChange) -> String {
    let time = |option: &str, us: Option<u32>| us.map(|us| format!("{option} {}", Micros(us).typed()));
    let blocking = |us| match us {
        0 => "--blocking observed".to_owned(),
        us => format!("--blocking {}", Micros(us).typed()),
    };
    let words = [
        change.policy.map(|policy| policy.name().to_owned()),
        time("--slice", change.slice_us),
        time("--timer-interval", change.timer_interval_us),
        time("--maximum-slice", change.maximum_slice_us),
        change.max_utilization_ppm.map(|ppm| format!("--max-utilization {}", Share(ppm))),
        change.blocking_us.map(blocking),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn explain(error: anyhow::Error, change: &PolicyChange, before: &ServerInfo) -> anyhow::Error {
    match error.downcast_ref::<Refusal>() {
        Some(Refusal::Access) => {
            anyhow!(
                "only the user who runs the X server, or root, on its machine may set the policy: do it as that user"
            )
        }
        Some(Refusal::Value(value)) => match change.max_utilization_ppm {
            Some(ppm) if ppm == *value => anyhow!(
                "{} is already reserved, which is more than {}: release something first (`xqos list`)",
                Share(before.admitted_utilization_ppm),
                Share(ppm)
            ),
            _ => error,
        },
        _ => error,
    }
}

fn settings(info: &ServerInfo) -> Settings {
    let ms = |us: u32| f64::from(us) / 1e3;
    Settings {
        policy: info.policy.name(),
        slice_ms: ms(info.slice_us),
        timer_interval_ms: ms(info.timer_interval_us),
        maximum_slice_ms: ms(info.maximum_slice_us),
        max_utilization: f64::from(info.max_utilization_ppm) / 1e6,
        admitted_utilization: f64::from(info.admitted_utilization_ppm) / 1e6,
        blocking_observed_ms: ms(info.blocking_observed_us),
        blocking_configured_ms: (info.blocking_configured_us != 0).then(|| ms(info.blocking_configured_us)),
    }
}

fn words(info: &ServerInfo) -> String {
    let observed = Micros(info.blocking_observed_us);
    let blocking = match info.blocking_configured_us {
        0 => format!("observed, {observed} lately"),
        us => format!("{}, {observed} observed lately", Micros(us)),
    };
    let (utilization, admitted) = (Share(info.max_utilization_ppm), Share(info.admitted_utilization_ppm));
    let lines = [
        ("policy", format!("{}: {}", info.policy.name(), explained(info.policy))),
        ("slice", Micros(info.slice_us).to_string()),
        ("timer interval", format!("{} (smart)", Micros(info.timer_interval_us))),
        ("maximum slice", format!("{} (smart)", Micros(info.maximum_slice_us))),
        ("max utilization", format!("{utilization}, {admitted} of it reserved")),
        ("blocking time", blocking),
    ];
    lines.into_iter().fold(String::new(), |all, (title, text)| all + &format!("{title:<17}{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ServerInfo {
        ServerInfo {
            armed: true,
            server_pid: 1,
            policy: PolicyKind::Fair,
            clients: 1,
            max_utilization_ppm: 900_000,
            admitted_utilization_ppm: 300_000,
            blocking_observed_us: 2100,
            blocking_configured_us: 0,
            min_budget_us: 100,
            min_period_us: 1000,
            max_period_us: 1_000_000,
            slice_us: 5000,
            timer_interval_us: 5000,
            maximum_slice_us: 15_000,
            uptime_ns: 0,
            busy_ns: 0,
            decisions: 0,
            early_ends: 0,
            memory_bytes: 0,
            reservations: 1,
            reason: String::new(),
        }
    }

    #[test]
    fn the_way_back_sets_only_what_was_changed() {
        let change = PolicyChange {
            policy: Some(PolicyKind::Smart),
            slice_us: Some(2500),
            blocking_us: Some(2000),
            ..PolicyChange::default()
        };
        assert_eq!(typed(&change), "smart --slice 2.5ms --blocking 2ms");
        assert_eq!(undo(&change, &info()), " fair --slice 5ms --blocking observed");
    }

    #[test]
    fn every_policy_is_explained_in_one_line() {
        for kind in PolicyKind::ALL {
            let text = explained(kind);
            assert!(!text.contains("does not know") && text.len() < 90, "{}: {text}", kind.name());
        }
    }

    #[test]
    fn the_settings_are_shown_with_units_and_whose_they_are() {
        let text = words(&info());
        for line in
            ["policy           fair: the ready client", "5 ms (smart)", "0.9, 0.3 of it", "observed, 2.1 ms lately"]
        {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        let json = serde_json::to_value(settings(&info())).unwrap();
        assert_eq!(json["maximum_slice_ms"], 15.0);
        assert!(json["blocking_configured_ms"].is_null());
        for field in json.as_object().unwrap().keys() {
            assert!(EXAMPLES.contains(field.as_str()), "{field} is not in `xqos policy --help`");
        }
    }

    #[test]
    fn a_limit_below_what_is_reserved_is_told_with_both() {
        let change = PolicyChange { max_utilization_ppm: Some(200_000), ..PolicyChange::default() };
        let told = explain(Refusal::Value(200_000).into(), &change, &info()).to_string();
        assert!(told.starts_with("0.3 is already reserved, which is more than 0.2"), "{told}");
    }

    #[test]
    fn blocking_is_a_time_or_the_observed_one() {
        assert_eq!("observed".parse::<Blocking>().unwrap().us(), 0);
        assert_eq!("2ms".parse::<Blocking>().unwrap().us(), 2000);
        assert!("soon".parse::<Blocking>().unwrap_err().contains("'observed'"));
    }
}
