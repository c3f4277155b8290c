// SPDX-License-Identifier: MIT
//! `xqos policy`: shows and sets the scheduling policy and the server's other settings.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;
use xqos_abi::{
    CutReport, DesktopReport, Grouping, GroupsReport, PacingReport, PolicyChange, ProcessorReport, ServerInfo, Setting,
    Subject,
};
use xqos_agent::field::{Value, count, fields, json_help, part};
use xqos_agent::session::Session;
use xqos_cli::output;
use xqos_client::{Control, Error};
use xqos_core::PolicyKind;
use xqos_core::setting::{
    BLOCKING, CUT, DESKTOP, GROUPING_HELP, MAX_UTILIZATION, MAXIMUM_SLICE, PACING, POLICY_SLICE, TIMER_INTERVAL,
    USER_LIMIT,
};
use xqos_rules::values::{reader, typed};
use xqos_text::quantity::{Micros, Share};

/// Shows or sets the scheduling policy and its settings
///
/// Under every policy, reservations are served first, in the order of their deadlines. The policy decides among all
/// other clients. Without arguments, the current settings are shown.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    /// The policy to set
    #[arg(value_name = "NAME", value_parser = policies())]
    policy: Option<PolicyKind>,
    #[command(flatten)]
    shared: Shared,
    #[arg(long, value_name = "TIME", value_parser = reader(&TIMER_INTERVAL), help = TIMER_INTERVAL.help)]
    timer_interval: Option<u32>,
    #[arg(long, value_name = "TIME", value_parser = reader(&MAXIMUM_SLICE), help = MAXIMUM_SLICE.help)]
    maximum_slice: Option<u32>,
    #[arg(long, value_name = "TIME|observed", value_parser = reader(&BLOCKING), help = BLOCKING.help)]
    blocking: Option<u32>,
    #[arg(long, value_name = "TIME|off", value_parser = reader(&PACING), help = PACING.help)]
    expose_pacing: Option<u32>,
    /// With --expose-pacing: stop waiting when the client falls below this frame rate, 1 to 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    min_fps: Option<u32>,
    #[arg(long, value_name = "SHARE|off", value_parser = reader(&USER_LIMIT), help = USER_LIMIT.help)]
    user_limit: Option<u32>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Options shared with `xqos server`.
#[derive(Args, Debug)]
pub struct Shared {
    #[arg(long, value_name = "TIME", value_parser = reader(&POLICY_SLICE), help = POLICY_SLICE.help)]
    pub slice: Option<u32>,
    #[arg(long, value_name = "SHARE", value_parser = reader(&MAX_UTILIZATION), help = MAX_UTILIZATION.help)]
    pub max_utilization: Option<u32>,
    #[arg(long, value_name = "on|off|SHARE", value_parser = reader(&DESKTOP), help = DESKTOP.help)]
    pub desktop: Option<u32>,
    #[arg(long, value_name = "on|off|TIME", value_parser = reader(&CUT), help = CUT.help)]
    pub cut: Option<u32>,
    #[arg(long, value_name = "none|app|user", value_parser = grouping, help = GROUPING_HELP)]
    pub groups: Option<Grouping>,
}

fn grouping(text: &str) -> Result<Grouping, String> {
    Grouping::from_name(text).ok_or_else(|| format!("'{text}' is not a grouping: write none, app, or user"))
}

const EXAMPLES: &str = "\
Examples:
  xqos policy                      show the settings
  xqos policy smart                the algorithm published in 2000
  xqos policy fair --slice 2ms
  xqos policy --max-utilization 0.8 --blocking observed
  xqos policy --expose-pacing 40ms  moving a window waits for redraws below it
  xqos policy --desktop off        treat compositors like any other client
  xqos policy --cut off            execute each request without interruption
  xqos policy --groups user --user-limit 0.3       for a terminal server

Desktop: a compositing manager draws what all other clients have drawn, and a
window manager places their windows. Under `fair`, both are served as soon as
they have requests; the time is charged to the other clients in proportion to
their use. While others wait, they get at most the share that --desktop sets,
and are then served last. `xqos list` shows which clients they are.

Cut: a request that takes longer than this is executed in parts, and other
clients are served between two parts. The result is the same as if each request
were executed whole and in order: the rest is executed before another request
that touches the same things. This needs a server of release 21.1 that is not
served through libc; `xqos doctor` says whether it is possible.

Groups: under `fair`, a group has one share, which its clients divide. With app,
the clients of one application are a group (its control group app-*.scope, or
its process): twelve connections of one program get no more than one connection
of another. With user, the clients of one user are a group.

Other initial settings: fair, timer interval 5 ms, maximum slice 15 ms, blocking
observed, expose pacing off, min fps 20, desktop at most 0.666667, cut after
0.25 ms, user limit off. Changes last until the server exits or resets; without
-noreset, a server resets when its last client disconnects. To choose the
settings at start-up, use `xqos server`.";

fn help() -> String {
    format!("{EXAMPLES}\n\n{}", json_help("JSON", SETTINGS))
}

/// Parses a policy; the possible values are explained in one line each.
pub fn policies() -> impl TypedValueParser<Value = PolicyKind> {
    let values = PolicyKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(explained(kind)));
    PossibleValuesParser::new(values)
        .try_map(|name| PolicyKind::from_name(&name).ok_or_else(|| format!("there is no policy {name}")))
}

fn explained(kind: PolicyKind) -> &'static str {
    match kind {
        PolicyKind::Stock => "no decisions: the server's own scheduler chooses, xqos only observes",
        PolicyKind::Classic => "1987: ready clients in turn, ten requests each; new clients wait for the next pass",
        PolicyKind::Smart => "2000: priorities that fall for busy clients, and rise for idle clients and for input",
        PolicyKind::SmartStrict => "2000: as smart, but a client of low priority can wait for ever, as in the paper",
        PolicyKind::Fair => "the ready client that has used the least server time, divided by its weight",
        PolicyKind::Fixed => "the ready client with the highest priority; all others wait, even for ever",
        _ => "a policy that this help does not know yet",
    }
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if CHANGEABLE.iter().all(|(_, asked, ..)| asked(self).is_none()) {
            let settings = ServerSettings::of(&Session::open(display)?.control)?;
            return if self.json { output::json(&settings) } else { output::print(&settings.words()) };
        }
        let (session, _) = Session::open_armed(display)?;
        let before = ServerSettings::of(&session.control)?;
        if self.shared.cut.is_some() && !before.cut.is_possible {
            bail!("this server's requests cannot be cut, and no setting was changed: `xqos doctor` shows the reason");
        }
        self.make(&session.control, &before)
            .map_err(|error| explain(error, self.shared.max_utilization, &before.info))?;
        if self.json {
            return output::json(&ServerSettings::of(&session.control)?);
        }
        let [set, undo] = self.typed(&before);
        output::line(&format!("set: {set}; undo: xqos policy {undo}"))
    }

    /// The new and the previous settings, as arguments of this command.
    fn typed(&self, before: &ServerSettings) -> [String; 2] {
        let changed = CHANGEABLE.iter().filter_map(|(option, asked, now, print)| {
            Some((format!("{option}{}", print(asked(self)?)), format!("{option}{}", print(now(before)))))
        });
        let (set, undo): (Vec<String>, Vec<String>) = changed.unzip();
        [set, undo].map(|words| words.join(" "))
    }

    fn make(&self, control: &Control, before: &ServerSettings) -> xqos_client::Result<()> {
        let policy = PolicyChange {
            policy: self.policy,
            slice_us: self.shared.slice,
            timer_interval_us: self.timer_interval,
            maximum_slice_us: self.maximum_slice,
            max_utilization_ppm: self.shared.max_utilization,
            blocking_us: self.blocking,
        };
        if policy != PolicyChange::default() {
            control.set_policy(policy)?;
        }
        if self.expose_pacing.is_some() || self.min_fps.is_some() {
            let limit_us = self.expose_pacing.unwrap_or(before.pacing.limit_us);
            control.set_pacing(limit_us, self.min_fps.map_or(before.floor_us(), |fps| 1_000_000 / fps))?;
        }
        let others = [
            self.user_limit.map(Setting::UserLimit),
            self.shared.groups.map(Setting::Grouping),
            self.shared.cut.map(Setting::Cut),
            self.shared.desktop.map(Setting::Desktop),
        ];
        others.into_iter().flatten().try_for_each(|setting| control.set(Subject::Server, setting))
    }
}

/// A setting that this command can change: its option, functions that return the requested and the current value, and
/// one that prints a value.
type Changeable = (&'static str, fn(&Arguments) -> Option<u32>, fn(&ServerSettings) -> u32, fn(u32) -> String);

#[rustfmt::skip]
const CHANGEABLE: [Changeable; 12] = [
    ("", |asked| asked.policy.map(|kind| kind.code().into()), |set| set.info.policy.code().into(),
        |code| PolicyKind::ALL[code as usize].name().to_owned()),
    ("--slice ", |asked| asked.shared.slice, |set| set.info.slice_us, |us| typed(us, &POLICY_SLICE)),
    ("--timer-interval ", |asked| asked.timer_interval, |set| set.info.timer_interval_us,
        |us| typed(us, &TIMER_INTERVAL)),
    ("--maximum-slice ", |asked| asked.maximum_slice, |set| set.info.maximum_slice_us, |us| typed(us, &MAXIMUM_SLICE)),
    ("--max-utilization ", |asked| asked.shared.max_utilization, |set| set.info.max_utilization_ppm,
        |ppm| typed(ppm, &MAX_UTILIZATION)),
    ("--blocking ", |asked| asked.blocking, |set| set.info.blocking_configured_us, |us| typed(us, &BLOCKING)),
    ("--expose-pacing ", |asked| asked.expose_pacing, |set| set.pacing.limit_us, |us| typed(us, &PACING)),
    ("--min-fps ", |asked| asked.min_fps, ServerSettings::min_fps, |fps| fps.to_string()),
    ("--desktop ", |asked| asked.shared.desktop, |set| set.desktop.share_ppm, |ppm| typed(ppm, &DESKTOP)),
    ("--cut ", |asked| asked.shared.cut, |set| set.cut.part_us, |us| typed(us, &CUT)),
    ("--groups ", |asked| asked.shared.groups.map(|grouping| grouping as u32), |set| set.groups.grouping as u32,
        |code| Grouping::ALL[code as usize].name().to_owned()),
    ("--user-limit ", |asked| asked.user_limit, |set| set.groups.user_limit_ppm, |ppm| typed(ppm, &USER_LIMIT)),
];

fn explain(error: Error, max_utilization: Option<u32>, before: &ServerInfo) -> anyhow::Error {
    match (error, max_utilization) {
        (Error::Access, _) => anyhow!(
            "only root or the X server's user may set the policy, on the server's machine: run this as one of them"
        ),
        (Error::Value(value), Some(ppm)) if ppm == value => anyhow!(
            "{} is already reserved, which is more than {}: release a reservation first (`xqos list`)",
            Share(before.admitted_utilization_ppm),
            Share(ppm)
        ),
        (error, _) => error.into(),
    }
}

#[derive(Debug, Default)]
pub struct ServerSettings {
    pub info: ServerInfo,
    processor: ProcessorReport,
    pacing: PacingReport,
    desktop: DesktopReport,
    groups: GroupsReport,
    pub cut: CutReport,
    pub through_libc: bool,
}

fields! {
const SETTINGS of set: ServerSettings as JSON;

"policy" title("policy"): "name of the policy" =>
    Value::Other(json!(set.info.policy.name()), format!("{}: {}", set.info.policy.name(), explained(set.info.policy)));
"slice_ms" title("slice"): "slice of fair and fixed" => ms(set.info.slice_us, Micros(set.info.slice_us).to_string());
"timer_interval_ms" title("timer interval"): "turn of smart" =>
    ms(set.info.timer_interval_us, format!("{} (smart)", Micros(set.info.timer_interval_us)));
"maximum_slice_ms" title("maximum slice"): "longest turn of smart" =>
    ms(set.info.maximum_slice_us, format!("{} (smart)", Micros(set.info.maximum_slice_us)));
"max_utilization" title("max utilization"): "configured maximum of all reservations" =>
    or_null(set.info.max_utilization_ppm, 1e6, set.utilization());
"utilization_limit": "the maximum in effect, which `xqos server --cpu` may lower" => part(set.limit_ppm());
"admitted_utilization": "sum of all reservations" => part(set.info.admitted_utilization_ppm);
"blocking_observed_ms": "longest in the last 30 to 60 s" => ms(set.info.blocking_observed_us, String::new());
"blocking_configured_ms" title("blocking time"): "null if the observed value is used" =>
    or_null(set.info.blocking_configured_us, 1e3, set.blocking());
"expose_pacing_ms" title("expose pacing"): "null if off" => or_null(set.pacing.limit_us, 1e3, set.paced());
"min_fps": "frame rate below which expose pacing stops waiting" => Value::Number(1e6 / f64::from(set.floor_us()));
"desktop_share" title("desktop"): "null if off" => or_null(set.desktop.share_ppm, 1e6, set.managers());
"cut_part_ms" title("cut"): "null if off or not possible" => or_null(set.part_us(), 1e3, set.cutting());
"cut_requests": "requests that were executed in parts, since the server started" => count(set.cut.requests);
"cut_parts": "their parts" => count(set.cut.parts);
"cuts": "times another client was served between two parts" => count(set.cut.cuts);
"cuts_finished_early": "requests whose rest was executed early, for another request that touches the same things" =>
    count(set.cut.finished);
"groups" title("groups"): "none, app, or user" => Value::Other(
    json!(set.groups.grouping.name()), format!("{}, {} now (fair)", set.groups.grouping.name(), set.groups.groups));
"user_limit" title("user limit"): "null if off" =>
    or_null(set.groups.user_limit_ppm, 1e6, typed(set.groups.user_limit_ppm, &USER_LIMIT));
}

fn ms(us: u32, text: String) -> Value {
    Value::Other(json!(f64::from(us) / 1e3), text)
}

fn or_null(value: u32, unit: f64, text: String) -> Value {
    Value::Other(json!((value != 0).then(|| f64::from(value) / unit)), text)
}

/// Default of --min-fps, as the longest time between frames.
const DEFAULT_FLOOR_US: u32 = 50_000;

impl ServerSettings {
    pub fn of(control: &Control) -> Result<ServerSettings> {
        let info = control.server_info()?;
        if !info.armed {
            return Ok(ServerSettings { info, ..ServerSettings::default() });
        }
        let (processor, pacing, desktop) = (control.processor()?, control.pacing()?, control.desktop()?);
        let (groups, cut) = (control.groups()?, control.cut()?);
        let through_libc = control.is_served_through_libc().unwrap_or(false);
        Ok(ServerSettings { info, processor, pacing, desktop, groups, cut, through_libc })
    }

    /// The utilization limit that the admission test uses.
    pub fn limit_ppm(&self) -> u32 {
        if self.info.armed { self.processor.limit_ppm } else { self.info.max_utilization_ppm }
    }

    fn floor_us(&self) -> u32 {
        if self.pacing.floor_us == 0 { DEFAULT_FLOOR_US } else { self.pacing.floor_us }
    }

    fn min_fps(&self) -> u32 {
        1_000_000 / self.floor_us()
    }

    fn utilization(&self) -> String {
        let (utilization, admitted) = (Share(self.info.max_utilization_ppm), Share(self.info.admitted_utilization_ppm));
        let bound = match self.limit_ppm() {
            limit if limit < self.info.max_utilization_ppm => {
                format!(", limited to {} by the server's processor time (server --cpu)", Share(limit))
            }
            _ => String::new(),
        };
        format!("{utilization}{bound}, {admitted} of it reserved")
    }

    pub fn blocking(&self) -> String {
        let observed = Micros(self.info.blocking_observed_us);
        match self.info.blocking_configured_us {
            0 => format!("observed, {observed} in the last minute"),
            us => format!("{}, {observed} observed in the last minute", Micros(us)),
        }
    }

    fn paced(&self) -> String {
        let (fps, holds) = (self.min_fps(), self.pacing.holds);
        match self.pacing.limit_us {
            0 => "off".to_owned(),
            us => format!("{} while above {fps} frames per second; {holds} holds so far", Micros(us)),
        }
    }

    fn managers(&self) -> String {
        let now = if self.desktop.clients == 0 { "none".to_owned() } else { self.desktop.clients.to_string() };
        match self.desktop.share_ppm {
            0 => "off".to_owned(),
            ppm => format!(
                "compositors and window managers first, at most {} under contention; {now} connected (fair)",
                Share(ppm)
            ),
        }
    }

    /// The time after which requests are cut; 0 if they are not.
    fn part_us(&self) -> u32 {
        if self.cut.is_possible { self.cut.part_us } else { 0 }
    }

    fn cutting(&self) -> String {
        let CutReport { is_possible, part_us, cuts, finished, .. } = self.cut;
        match part_us {
            _ if self.through_libc => "not possible on this server (libc)".to_owned(),
            _ if self.info.armed && !is_possible => "not possible on this server (`xqos doctor`)".to_owned(),
            0 => "off".to_owned(),
            us => {
                format!("long requests are cut after {}: {cuts} cuts, {finished} finished early", Micros(us))
            }
        }
    }

    fn words(&self) -> String {
        let titled = SETTINGS.iter().filter(|field| !field.title.is_empty());
        let lines: Vec<String> = titled.map(|field| format!("{:<17}{}\n", field.title, field.text(self))).collect();
        lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;
    use xqos_rules::values::read;

    #[test]
    fn the_desktop_share_is_on_off_or_a_number() {
        assert_eq!((read("on", &DESKTOP), read("off", &DESKTOP)), (Ok(DESKTOP.initial), Ok(0)));
        assert_eq!(read("0.5", &DESKTOP), Ok(500_000));
        for text in ["", "0", "0.04", "0.91", "yes", "50%"] {
            assert!(read(text, &DESKTOP).unwrap_err().contains("on, off, or a number"), "{text}");
        }
    }

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

    fn settings() -> ServerSettings {
        let desktop = DesktopReport { share_ppm: 500_000, clients: 2 };
        let groups = GroupsReport { grouping: Grouping::Application, user_limit_ppm: 300_000, groups: 4 };
        let processor = ProcessorReport { limit_ppm: info().max_utilization_ppm, ..ProcessorReport::default() };
        let cut = CutReport { is_possible: true, part_us: 250, cuts: 1203, finished: 4, ..CutReport::default() };
        let pacing = PacingReport::default();
        ServerSettings { info: info(), processor, pacing, desktop, groups, cut, through_libc: false }
    }

    #[test]
    fn the_undo_command_restores_only_what_was_changed() {
        for (line, back) in [
            (
                "smart --slice 2.5ms --blocking 2ms --expose-pacing 40ms --desktop off",
                "fair --slice 5ms --blocking observed --expose-pacing off --desktop 0.5",
            ),
            ("--groups user --user-limit off", "--groups app --user-limit 0.3"),
            ("--cut off", "--cut on"),
            ("--cut 0.5ms --groups none", "--cut on --groups app"),
        ] {
            let matches = Arguments::augment_args(clap::Command::new("")).no_binary_name(true);
            let matches = matches.get_matches_from(line.split(' '));
            let asked = Arguments::from_arg_matches(&matches).unwrap();
            assert_eq!(asked.typed(&settings()), [line, back]);
        }
    }

    #[test]
    fn every_policy_is_explained_in_one_line() {
        for kind in PolicyKind::ALL {
            let text = explained(kind);
            assert!(!text.contains("does not know") && text.len() < 90, "{}: {text}", kind.name());
        }
    }

    #[test]
    fn settings_are_shown_with_unit_and_policy() {
        let pacing = PacingReport { limit_us: 25_000, floor_us: 50_000, holds: 7, ..PacingReport::default() };
        let text = ServerSettings { pacing, ..settings() }.words();
        assert!(text.contains("first, at most 0.5 under contention; 2 connected"), "{text}");
        assert!(text.contains("25 ms while above 20 frames per second; 7 holds so far"), "{text}");
        for line in ["policy           fair: the ready client", "5 ms (smart)", "0.9, 0.3 of it", "observed, 2.1 ms in"]
        {
            assert!(text.contains(line), "{line} in:\n{text}");
        }
        let plain = ServerSettings { desktop: DesktopReport::default(), ..settings() };
        let json = serde_json::to_value(&plain).unwrap();
        assert!(json["desktop_share"].is_null());
        assert!(json["expose_pacing_ms"].is_null() && json["min_fps"] == 20.0);
        assert_eq!(json["maximum_slice_ms"], 15.0);
        assert!(json["blocking_configured_ms"].is_null());
    }

    #[test]
    fn cutting_is_shown_with_its_counts_or_as_impossible() {
        let of = |cut, through_libc| {
            let settings = ServerSettings { cut, through_libc, ..settings() };
            (settings.cutting(), serde_json::to_value(&settings).unwrap()["cut_part_ms"].clone())
        };
        let cut = settings().cut;
        let text = "long requests are cut after 0.25 ms: 1203 cuts, 4 finished early";
        assert_eq!(of(cut, false), (text.to_owned(), json!(0.25)));
        assert_eq!(of(CutReport { part_us: 0, ..cut }, false), ("off".to_owned(), json!(null)));
        let not = CutReport { is_possible: false, ..cut };
        assert_eq!(of(not, true), ("not possible on this server (libc)".to_owned(), json!(null)));
        assert_eq!(of(not, false), ("not possible on this server (`xqos doctor`)".to_owned(), json!(null)));
    }

    #[test]
    fn a_limit_below_what_is_reserved_is_refused_with_both_values() {
        let told = explain(Error::Value(200_000), Some(200_000), &info()).to_string();
        assert!(told.starts_with("0.3 is already reserved, which is more than 0.2"), "{told}");
    }

    #[test]
    fn blocking_is_a_time_or_observed() {
        assert_eq!((read("observed", &BLOCKING), read("2ms", &BLOCKING)), (Ok(0), Ok(2000)));
        assert!(read("soon", &BLOCKING).unwrap_err().contains("'observed'"));
    }
}
