//! `xqos policy`: which policy serves clients without a (remaining) reservation, and the server's other settings.

use crate::session::Session;
use anyhow::{Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::str::FromStr;
use xqos_abi::{DesktopReport, PacingReport, PolicyChange, ServerInfo};
use xqos_cli::output;
use xqos_cli::quantity::{Micros, Share, desktop, limit, slice};
use xqos_client::Error;
use xqos_core::{DEFAULT_SHARE_PPM, PolicyKind};

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
    /// How long a client that uncovers others waits for them to redraw, 1ms to 1s, or 'off'
    #[arg(long, value_name = "TIME|off", value_parser = limit)]
    expose_pacing: Option<Micros>,
    /// Frames per second below which such a client waits no longer, 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    min_fps: Option<u32>,
    /// Serve compositing and window managers first: on, off, or how much they get at most while others wait, 0.05 to 0.9
    /// [fair]
    #[arg(long, value_name = "on|off|SHARE", value_parser = desktop)]
    desktop: Option<Share>,
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
  xqos policy --expose-pacing 40ms who drags a window waits for those beneath
  xqos policy --desktop off        a compositor is served like any other client

The desktop: a compositing manager draws what all others have drawn, and a
window manager places their windows. Under `fair` they are served as soon as
they have work, at the cost of all others in proportion to what these use; while
others wait they get at most the share that --desktop sets, and then go last.
`xqos list` shows who they are.

Defaults: fair, slice 5 ms, timer interval 5 ms, maximum slice 15 ms, max
utilization 0.9, blocking observed, expose pacing off, min fps 20, desktop on
(0.666667). They last until the server ends or resets, as it does when its last
client has left, unless it was started with -noreset; those that it starts with
are chosen with `xqos server`.

JSON: an object with policy, slice_ms, timer_interval_ms, maximum_slice_ms,
max_utilization, admitted_utilization, blocking_observed_ms,
blocking_configured_ms (null: the observed one is used), expose_pacing_ms (null:
off), min_fps, and desktop_share (null: off).";

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
    expose_pacing_ms: Option<f64>,
    min_fps: f64,
    desktop_share: Option<f64>,
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let change = self.change();
        let paces = self.expose_pacing.is_some() || self.min_fps.is_some();
        if change == PolicyChange::default() && !paces && self.desktop.is_none() {
            let control = Session::open(display)?.control;
            let info = control.server_info()?;
            let (pacing, desktop) = match info.armed {
                true => (control.pacing()?, control.desktop()?),
                false => Default::default(),
            };
            return match self.json {
                true => output::json(&settings(&info, &pacing, &desktop)),
                false => output::print(&words(&info, &pacing, &desktop)),
            };
        }
        let (session, before) = Session::open_armed(display)?;
        let (paced_before, desktop_before) = (session.control.pacing()?, session.control.desktop()?);
        if change != PolicyChange::default() {
            session.control.set_policy(change).map_err(|error| explain(error, &change, &before))?;
        }
        if paces {
            let limit_us = self.expose_pacing.map_or(paced_before.limit_us, |time| time.0);
            let floor_us = self.min_fps.map_or_else(|| floor_us(&paced_before), |fps| 1_000_000 / fps);
            session.control.set_pacing(limit_us, floor_us).map_err(|error| explain(error, &change, &before))?;
        }
        if let Some(share) = self.desktop {
            session.control.set_desktop_share(share.0).map_err(|error| explain(error, &change, &before))?;
        }
        if self.json {
            let control = &session.control;
            return output::json(&settings(&control.server_info()?, &control.pacing()?, &control.desktop()?));
        }
        let fps_before = 1_000_000 / floor_us(&paced_before);
        let set = [
            typed(&change),
            pacing_typed(self.expose_pacing.map(|time| time.0), self.min_fps),
            desktop_typed(self.desktop.map(|share| share.0)),
        ];
        let back = [
            typed(&undo(&change, &before)),
            pacing_typed(self.expose_pacing.map(|_| paced_before.limit_us), self.min_fps.map(|_| fps_before)),
            desktop_typed(self.desktop.map(|_| desktop_before.share_ppm)),
        ];
        let joined =
            |words: [String; 3]| words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let [set, back] = [set, back].map(joined);
        output::line(&format!("set: {set}; undo: xqos policy {back}"))
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

/// Frames per second that nobody has set.
const DEFAULT_FLOOR_US: u32 = 50_000;

fn floor_us(report: &PacingReport) -> u32 {
    if report.floor_us == 0 { DEFAULT_FLOOR_US } else { report.floor_us }
}

/// What `change` replaces.
fn undo(change: &PolicyChange, before: &ServerInfo) -> PolicyChange {
    PolicyChange {
        policy: change.policy.map(|_| before.policy),
        slice_us: change.slice_us.map(|_| before.slice_us),
        timer_interval_us: change.timer_interval_us.map(|_| before.timer_interval_us),
        maximum_slice_us: change.maximum_slice_us.map(|_| before.maximum_slice_us),
        max_utilization_ppm: change.max_utilization_ppm.map(|_| before.max_utilization_ppm),
        blocking_us: change.blocking_us.map(|_| before.blocking_configured_us),
    }
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

/// Expose pacing as arguments of this command.
fn pacing_typed(limit_us: Option<u32>, fps: Option<u32>) -> String {
    let limit = limit_us.map(|us| match us {
        0 => "--expose-pacing off".to_owned(),
        us => format!("--expose-pacing {}", Micros(us).typed()),
    });
    let floor = fps.map(|fps| format!("--min-fps {fps}"));
    [limit, floor].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The desktop rule as an argument of this command.
fn desktop_typed(share_ppm: Option<u32>) -> String {
    let typed = share_ppm.map(|ppm| match ppm {
        0 => "--desktop off".to_owned(),
        DEFAULT_SHARE_PPM => "--desktop on".to_owned(),
        ppm => format!("--desktop {}", Share(ppm)),
    });
    typed.unwrap_or_default()
}

fn explain(error: Error, change: &PolicyChange, before: &ServerInfo) -> anyhow::Error {
    match error {
        Error::Access => {
            anyhow!(
                "only the user who runs the X server, or root, on its machine may set the policy: do it as that user"
            )
        }
        Error::Value(value) => match change.max_utilization_ppm {
            Some(ppm) if ppm == value => anyhow!(
                "{} is already reserved, which is more than {}: release something first (`xqos list`)",
                Share(before.admitted_utilization_ppm),
                Share(ppm)
            ),
            _ => error.into(),
        },
        _ => error.into(),
    }
}

fn settings(info: &ServerInfo, pacing: &PacingReport, desktop: &DesktopReport) -> Settings {
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
        expose_pacing_ms: (pacing.limit_us != 0).then(|| ms(pacing.limit_us)),
        min_fps: 1e6 / f64::from(floor_us(pacing)),
        desktop_share: (desktop.share_ppm != 0).then(|| f64::from(desktop.share_ppm) / 1e6),
    }
}

fn words(info: &ServerInfo, pacing: &PacingReport, desktop: &DesktopReport) -> String {
    let observed = Micros(info.blocking_observed_us);
    let blocking = match info.blocking_configured_us {
        0 => format!("observed, {observed} lately"),
        us => format!("{}, {observed} observed lately", Micros(us)),
    };
    let (utilization, admitted) = (Share(info.max_utilization_ppm), Share(info.admitted_utilization_ppm));
    let fps = 1_000_000 / floor_us(pacing);
    let paced = match pacing.limit_us {
        0 => "off".to_owned(),
        us => format!("{}, down to {fps} frames per second; {} holds so far", Micros(us), pacing.holds),
    };
    let managers = match desktop.clients {
        0 => "none now".to_owned(),
        1 => "1 now".to_owned(),
        count => format!("{count} now"),
    };
    let desktop = match desktop.share_ppm {
        0 => "off".to_owned(),
        ppm => format!(
            "compositors and window managers first, {} at most while others wait; {managers} (fair)",
            Share(ppm)
        ),
    };
    let lines = [
        ("policy", format!("{}: {}", info.policy.name(), explained(info.policy))),
        ("slice", Micros(info.slice_us).to_string()),
        ("timer interval", format!("{} (smart)", Micros(info.timer_interval_us))),
        ("maximum slice", format!("{} (smart)", Micros(info.maximum_slice_us))),
        ("max utilization", format!("{utilization}, {admitted} of it reserved")),
        ("blocking time", blocking),
        ("expose pacing", paced),
        ("desktop", desktop),
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
        assert_eq!(typed(&undo(&change, &info())), "fair --slice 5ms --blocking observed");
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
        let pacing = PacingReport { limit_us: 25_000, floor_us: 50_000, holds: 7, ..PacingReport::default() };
        let desktop = DesktopReport { share_ppm: 500_000, clients: 2 };
        let text = words(&info(), &pacing, &desktop);
        assert!(text.contains("first, 0.5 at most while others wait; 2 now"), "{text}");
        assert!(text.contains("25 ms, down to 20 frames per second; 7 holds so far"), "{text}");
        for line in
            ["policy           fair: the ready client", "5 ms (smart)", "0.9, 0.3 of it", "observed, 2.1 ms lately"]
        {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        let json =
            serde_json::to_value(settings(&info(), &PacingReport::default(), &DesktopReport::default())).unwrap();
        assert!(json["desktop_share"].is_null());
        assert!(json["expose_pacing_ms"].is_null() && json["min_fps"] == 20.0);
        assert_eq!(json["maximum_slice_ms"], 15.0);
        assert!(json["blocking_configured_ms"].is_null());
        for field in json.as_object().unwrap().keys() {
            assert!(EXAMPLES.contains(field.as_str()), "{field} is not in `xqos policy --help`");
        }
    }

    #[test]
    fn a_limit_below_what_is_reserved_is_told_with_both() {
        let change = PolicyChange { max_utilization_ppm: Some(200_000), ..PolicyChange::default() };
        let told = explain(Error::Value(200_000), &change, &info()).to_string();
        assert!(told.starts_with("0.3 is already reserved, which is more than 0.2"), "{told}");
    }

    #[test]
    fn blocking_is_a_time_or_the_observed_one() {
        assert_eq!("observed".parse::<Blocking>().unwrap().us(), 0);
        assert_eq!("2ms".parse::<Blocking>().unwrap().us(), 2000);
        assert!("soon".parse::<Blocking>().unwrap_err().contains("'observed'"));
    }
}
