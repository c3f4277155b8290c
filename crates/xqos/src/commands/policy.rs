// SPDX-License-Identifier: MIT
//! `xqos policy`: which policy serves clients without a (remaining) reservation, and the server's other settings.

use crate::session::Session;
use anyhow::{Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use std::str::FromStr;
use xqos_abi::{DesktopReport, Grouping, GroupsReport, PacingReport, PolicyChange, ProcessorReport, ServerInfo};
use xqos_cli::output;
use xqos_cli::quantity::{Micros, Share, desktop, limit, slice};
use xqos_client::{Control, Error};
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
    /// Which clients share as one: none, those of an application, or those of a user [fair]
    #[arg(long, value_name = "none|app|user", value_parser = grouping)]
    groups: Option<Grouping>,
    /// How much the reservations of one user may sum up to, 0.01 to 0.95, or off; root and the server's user excepted
    #[arg(long, value_name = "SHARE|off", value_parser = user_limit)]
    user_limit: Option<Share>,
    /// Write JSON instead of words
    #[arg(long)]
    json: bool,
}

/// Which clients are one group.
pub fn grouping(text: &str) -> Result<Grouping, String> {
    Grouping::from_name(text).ok_or_else(|| format!("'{text}' is no grouping: write none, app, or user"))
}

fn user_limit(text: &str) -> Result<Share, String> {
    let wanted = || format!("'{text}' is no limit: write off, or a number from 0.01 to 0.95, such as 0.3");
    match text {
        "off" => Ok(Share(0)),
        _ => text.parse().ok().filter(|share: &Share| (10_000..=950_000).contains(&share.0)).ok_or_else(wanted),
    }
}

const EXAMPLES: &str = "\
Examples:
  xqos policy                      what is set
  xqos policy smart                the rules published in 2000
  xqos policy fair --slice 2ms
  xqos policy --max-utilization 0.8 --blocking observed
  xqos policy --expose-pacing 40ms  who drags a window waits for those beneath
  xqos policy --desktop off        a compositor is served like any other client
  xqos policy --groups user --user-limit 0.3       for a terminal server

The desktop: a compositing manager draws what all others have drawn, and a
window manager places their windows. Under `fair` they are served as soon as
they have work, at the cost of all others in proportion to what these use; while
others wait they get at most the share that --desktop sets, and then go last.
`xqos list` shows who they are.

Groups: under `fair` a group has one share, which its clients divide. With app
those of an application are one (its control group app-*.scope, else its
process), so that twelve connections of one program get no more than one of
another; with user, those of a user.

Defaults: fair, slice 5 ms, timer interval 5 ms, maximum slice 15 ms, max
utilization 0.9, blocking observed, expose pacing off, min fps 20, desktop on
(0.666667), groups app, user limit off. They last until the server ends or
resets, as it does when its last client has left, unless it was started with
-noreset; those that it starts with are chosen with `xqos server`.

JSON: an object with policy, slice_ms, timer_interval_ms, maximum_slice_ms,
max_utilization, utilization_limit (the same, or less where `xqos server --cpu`
bounds it), admitted_utilization, blocking_observed_ms, blocking_configured_ms
(null: the observed one is used), expose_pacing_ms (null: off), min_fps,
desktop_share (null: off), groups, and user_limit (null: off).";

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

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let change = self.change();
        if change == Change::default() {
            let settings = Settings::of(&Session::open(display)?.control)?;
            return if self.json { output::json(&settings.figures()) } else { output::print(&settings.words()) };
        }
        let (session, _) = Session::open_armed(display)?;
        let before = Settings::of(&session.control)?;
        change.make(&session.control, &before).map_err(|error| explain(error, &change.policy, &before.info))?;
        if self.json {
            return output::json(&Settings::of(&session.control)?.figures());
        }
        output::line(&format!("set: {}; undo: xqos policy {}", change.typed(), change.undo(&before).typed()))
    }

    fn change(&self) -> Change {
        Change {
            policy: PolicyChange {
                policy: self.policy,
                slice_us: self.slice.map(|time| time.0),
                timer_interval_us: self.timer_interval.map(|time| time.0),
                maximum_slice_us: self.maximum_slice.map(|time| time.0),
                max_utilization_ppm: self.max_utilization.map(|share| share.0),
                blocking_us: self.blocking.map(Blocking::us),
            },
            pacing_us: self.expose_pacing.map(|time| time.0),
            min_fps: self.min_fps,
            desktop_ppm: self.desktop.map(|share| share.0),
            grouping: self.groups,
            user_limit_ppm: self.user_limit.map(|share| share.0),
        }
    }
}

/// What is to be set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Change {
    policy: PolicyChange,
    pacing_us: Option<u32>,
    min_fps: Option<u32>,
    desktop_ppm: Option<u32>,
    grouping: Option<Grouping>,
    user_limit_ppm: Option<u32>,
}

impl Change {
    fn make(&self, control: &Control, before: &Settings) -> xqos_client::Result<()> {
        if self.policy != PolicyChange::default() {
            control.set_policy(self.policy)?;
        }
        if self.pacing_us.is_some() || self.min_fps.is_some() {
            let limit_us = self.pacing_us.unwrap_or(before.pacing.limit_us);
            control.set_pacing(limit_us, self.min_fps.map_or(before.floor_us(), |fps| 1_000_000 / fps))?;
        }
        if self.grouping.is_some() || self.user_limit_ppm.is_some() {
            let grouping = self.grouping.unwrap_or(before.groups.grouping);
            control.set_groups(grouping, self.user_limit_ppm.unwrap_or(before.groups.user_limit_ppm))?;
        }
        self.desktop_ppm.map_or(Ok(()), |ppm| control.set_desktop_share(ppm))
    }

    /// The change back to what was before.
    fn undo(&self, before: &Settings) -> Change {
        let Settings { info, pacing, desktop, groups, .. } = before;
        let policy = &self.policy;
        Change {
            policy: PolicyChange {
                policy: policy.policy.map(|_| info.policy),
                slice_us: policy.slice_us.map(|_| info.slice_us),
                timer_interval_us: policy.timer_interval_us.map(|_| info.timer_interval_us),
                maximum_slice_us: policy.maximum_slice_us.map(|_| info.maximum_slice_us),
                max_utilization_ppm: policy.max_utilization_ppm.map(|_| info.max_utilization_ppm),
                blocking_us: policy.blocking_us.map(|_| info.blocking_configured_us),
            },
            pacing_us: self.pacing_us.map(|_| pacing.limit_us),
            min_fps: self.min_fps.map(|_| before.min_fps()),
            desktop_ppm: self.desktop_ppm.map(|_| desktop.share_ppm),
            grouping: self.grouping.map(|_| groups.grouping),
            user_limit_ppm: self.user_limit_ppm.map(|_| groups.user_limit_ppm),
        }
    }

    /// As arguments of this command.
    fn typed(&self) -> String {
        let time = |option: &str, us: Option<u32>, zero: &str| match us? {
            0 => Some(format!("{option} {zero}")),
            us => Some(format!("{option} {}", Micros(us).typed())),
        };
        let desktop = |ppm| match ppm {
            0 => "--desktop off".to_owned(),
            DEFAULT_SHARE_PPM => "--desktop on".to_owned(),
            ppm => format!("--desktop {}", Share(ppm)),
        };
        let policy = &self.policy;
        let words = [
            policy.policy.map(|policy| policy.name().to_owned()),
            time("--slice", policy.slice_us, "0ms"),
            time("--timer-interval", policy.timer_interval_us, "0ms"),
            time("--maximum-slice", policy.maximum_slice_us, "0ms"),
            policy.max_utilization_ppm.map(|ppm| format!("--max-utilization {}", Share(ppm))),
            time("--blocking", policy.blocking_us, "observed"),
            time("--expose-pacing", self.pacing_us, "off"),
            self.min_fps.map(|fps| format!("--min-fps {fps}")),
            self.desktop_ppm.map(desktop),
            self.grouping.map(|grouping| format!("--groups {}", grouping.name())),
            self.user_limit_ppm.map(|ppm| format!("--user-limit {}", share_or_off(ppm))),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

fn share_or_off(ppm: u32) -> String {
    if ppm == 0 { "off".to_owned() } else { Share(ppm).to_string() }
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

/// What is set.
#[derive(Debug)]
struct Settings {
    info: ServerInfo,
    processor: ProcessorReport,
    pacing: PacingReport,
    desktop: DesktopReport,
    groups: GroupsReport,
}

#[derive(Debug, Serialize)]
struct Figures {
    policy: &'static str,
    slice_ms: f64,
    timer_interval_ms: f64,
    maximum_slice_ms: f64,
    max_utilization: f64,
    utilization_limit: f64,
    admitted_utilization: f64,
    blocking_observed_ms: f64,
    blocking_configured_ms: Option<f64>,
    expose_pacing_ms: Option<f64>,
    min_fps: f64,
    desktop_share: Option<f64>,
    groups: &'static str,
    user_limit: Option<f64>,
}

/// Frames per second that nobody has set.
const DEFAULT_FLOOR_US: u32 = 50_000;

impl Settings {
    fn of(control: &Control) -> Result<Settings> {
        let info = control.server_info()?;
        if !info.armed {
            return Ok(Settings {
                info,
                processor: Default::default(),
                pacing: Default::default(),
                desktop: Default::default(),
                groups: Default::default(),
            });
        }
        let (processor, pacing) = (control.processor()?, control.pacing()?);
        Ok(Settings { info, processor, pacing, desktop: control.desktop()?, groups: control.groups()? })
    }

    /// What admission goes by.
    fn limit_ppm(&self) -> u32 {
        if self.info.armed { self.processor.limit_ppm } else { self.info.max_utilization_ppm }
    }

    fn floor_us(&self) -> u32 {
        if self.pacing.floor_us == 0 { DEFAULT_FLOOR_US } else { self.pacing.floor_us }
    }

    fn min_fps(&self) -> u32 {
        1_000_000 / self.floor_us()
    }

    fn figures(&self) -> Figures {
        let Settings { info, pacing, desktop, groups, .. } = self;
        let ms = |us: u32| f64::from(us) / 1e3;
        Figures {
            policy: info.policy.name(),
            slice_ms: ms(info.slice_us),
            timer_interval_ms: ms(info.timer_interval_us),
            maximum_slice_ms: ms(info.maximum_slice_us),
            max_utilization: f64::from(info.max_utilization_ppm) / 1e6,
            utilization_limit: f64::from(self.limit_ppm()) / 1e6,
            admitted_utilization: f64::from(info.admitted_utilization_ppm) / 1e6,
            blocking_observed_ms: ms(info.blocking_observed_us),
            blocking_configured_ms: (info.blocking_configured_us != 0).then(|| ms(info.blocking_configured_us)),
            expose_pacing_ms: (pacing.limit_us != 0).then(|| ms(pacing.limit_us)),
            min_fps: 1e6 / f64::from(self.floor_us()),
            desktop_share: (desktop.share_ppm != 0).then(|| f64::from(desktop.share_ppm) / 1e6),
            groups: groups.grouping.name(),
            user_limit: (groups.user_limit_ppm != 0).then(|| f64::from(groups.user_limit_ppm) / 1e6),
        }
    }

    fn words(&self) -> String {
        let Settings { info, pacing, desktop, groups, .. } = self;
        let observed = Micros(info.blocking_observed_us);
        let blocking = match info.blocking_configured_us {
            0 => format!("observed, {observed} lately"),
            us => format!("{}, {observed} observed lately", Micros(us)),
        };
        let (utilization, admitted) = (Share(info.max_utilization_ppm), Share(info.admitted_utilization_ppm));
        let bound = if self.limit_ppm() < info.max_utilization_ppm {
            format!(" and {}, which the server gets of a processor (server --cpu)", Share(self.limit_ppm()))
        } else {
            String::new()
        };
        let fps = self.min_fps();
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
            ("max utilization", format!("{utilization}{bound}, {admitted} of it reserved")),
            ("blocking time", blocking),
            ("expose pacing", paced),
            ("desktop", desktop),
            ("groups", format!("{}, {} now (fair)", groups.grouping.name(), groups.groups)),
            ("user limit", share_or_off(groups.user_limit_ppm)),
        ];
        lines.into_iter().fold(String::new(), |all, (title, text)| all + &format!("{title:<17}{text}\n"))
    }
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
            clients_limit: 255,
            grab_holder: 0,
            reason: String::new(),
        }
    }

    fn settings() -> Settings {
        let desktop = DesktopReport { share_ppm: 500_000, clients: 2 };
        let groups = GroupsReport { grouping: Grouping::Application, user_limit_ppm: 300_000, groups: 4 };
        let processor = ProcessorReport { limit_ppm: info().max_utilization_ppm, ..ProcessorReport::default() };
        Settings { info: info(), processor, pacing: PacingReport::default(), desktop, groups }
    }

    #[test]
    fn the_way_back_sets_only_what_was_changed() {
        let (kind, slice_us, blocking_us) = (Some(PolicyKind::Smart), Some(2500), Some(2000));
        let policy = PolicyChange { policy: kind, slice_us, blocking_us, ..PolicyChange::default() };
        let change = Change { policy, pacing_us: Some(40_000), desktop_ppm: Some(0), ..Change::default() };
        assert_eq!(change.typed(), "smart --slice 2.5ms --blocking 2ms --expose-pacing 40ms --desktop off");
        let groups = Change { grouping: Some(Grouping::User), user_limit_ppm: Some(0), ..Change::default() };
        assert_eq!(groups.typed(), "--groups user --user-limit off");
        assert_eq!(groups.undo(&settings()).typed(), "--groups app --user-limit 0.3");
        let back = change.undo(&settings()).typed();
        assert_eq!(back, "fair --slice 5ms --blocking observed --expose-pacing off --desktop 0.5");
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
        let text = Settings { pacing, ..settings() }.words();
        assert!(text.contains("first, 0.5 at most while others wait; 2 now"), "{text}");
        assert!(text.contains("25 ms, down to 20 frames per second; 7 holds so far"), "{text}");
        for line in
            ["policy           fair: the ready client", "5 ms (smart)", "0.9, 0.3 of it", "observed, 2.1 ms lately"]
        {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        let plain = Settings { desktop: DesktopReport::default(), ..settings() };
        let json = serde_json::to_value(plain.figures()).unwrap();
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
