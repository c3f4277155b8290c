// SPDX-License-Identifier: MIT
//! `xqos doctor`: reports whether xqos serves an X server, whether it can, and what to do next.
//!
//! All facts go into one [`DoctorReport`], from which the text and the JSON are made.

use crate::commands::policy::ServerSettings;
use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use xqos_abi::ServerInfo;
use xqos_agent::admission;
use xqos_agent::field::{Value, count, fields, json_help, part, time, time_of_us};
use xqos_agent::host::{Host, HostProcess, exports, shell_word, xorg_config};
use xqos_agent::session::{self, Session, display_name};
use xqos_cli::output;
use xqos_cli::program::one_line;
use xqos_client::Control;
use xqos_text::quantity::Micros;

/// Shows whether xqos serves an X server, whether it can, and what to do next
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos doctor
  xqos --display :77 doctor --json
  xqos doctor >/dev/null || echo 'not served'

Exit status: 0 if xqos serves the server and is armed; 1 if the server runs
without xqos, xqos has stepped aside, or the server cannot be reached; 2 for
wrong usage.";

fn help() -> String {
    let [report, service] = [json_help("JSON: one object", REPORT), json_help("service", SERVICE)];
    format!("{EXAMPLES}\n\n{report}\n{service}")
}

#[derive(Debug, Default)]
struct DoctorReport {
    display: String,
    /// Why the server cannot be reached.
    error: Option<String>,
    /// `None` if the server cannot be reached.
    host: Option<Host>,
    service: Option<Service>,
    advice: Option<String>,
}

fields! {
const REPORT of report: DoctorReport as JSON;

"display": "name of the server" => Value::Text(report.display.clone());
"reachable": "true if it accepts clients" => Value::Flag(report.host.is_some());
"error": "why it cannot be reached" => text(report.error.as_deref());
"vendor": "vendor of the server" => text(report.host.as_ref().map(|host| host.vendor.as_str()));
"release": "its release" => text(report.host.as_ref().map(|host| host.release.as_str()));
"program": "its program; null if unknown" => text(report.program().as_deref());
"pid": "its process; null on another machine" => Value::or_none(report.process(), |process| count(process.pid));
"command": "its command line" =>
    Value::Other(json!(report.process().map_or(&[][..], |process| process.command.as_slice())), String::new());
"xwayland": "true for Xwayland" => Value::Flag(report.host.as_ref().is_some_and(|host| host.xwayland));
"can_be_served": "null: unknown from here" => Value::or_none(report.can_be_served(), Value::Flag);
"missing_symbols": "symbols that xqos needs and the program does not export" =>
    Value::Other(json!(report.missing_symbols()), String::new());
"served": "true if xqos is in it" => Value::Flag(report.service.is_some());
"service": "null if not served" => Value::Other(json!(report.service), String::new());
"advice": "null: nothing to do" => text(report.advice.as_deref());
}

fn text(text: Option<&str>) -> Value {
    Value::or_none(text.filter(|text| !text.is_empty()), |text| Value::Text(text.to_owned()))
}

impl DoctorReport {
    fn process(&self) -> Option<&HostProcess> {
        self.host.as_ref()?.process.as_ref()
    }

    fn program(&self) -> Option<String> {
        self.process()?.program.as_ref().map(|path| path.display().to_string())
    }

    fn missing_symbols(&self) -> &[&'static str] {
        self.process().and_then(|process| process.missing.as_deref()).unwrap_or_default()
    }

    /// A program that lacks symbols is served through libc; `None` if the program cannot be inspected.
    fn can_be_served(&self) -> Option<bool> {
        (self.service.is_some() || self.process()?.missing.is_some()).then_some(true)
    }
}

/// Facts about a server that runs xqos.
#[derive(Debug, Default)]
struct Service {
    settings: ServerSettings,
    version: String,
    grabs: Vec<String>,
    /// Release of the X server.
    release: String,
}

fields! {
const SERVICE of service: Service as JSON;

"host": "dix: through the server's own functions; libc: through its calls of libc" =>
    Value::Text(if service.settings.through_libc { "libc" } else { "dix" }.to_owned());
"clients": "connections" => count(service.info().clients);
"clients_limit": "maximum; null if unknown" => count(service.info().clients_limit).when(service.info().clients_limit > 0);
"grabs": "sentences: which client holds the server grab, the pointer or the keyboard; the latter two are unknown with \
    host libc" => Value::Other(json!(service.grabs), String::new());
"armed": "false if xqos stepped aside" => Value::Flag(service.info().armed);
"reason": "why xqos stepped aside" => Value::Text(service.info().reason.clone()).when(!service.info().reason.is_empty());
"version": "protocol version" => Value::Text(service.version.clone());
"policy": "name of the policy" => Value::Text(service.info().policy.name().to_owned());
"reservations": "number of reservations" => count(service.info().reservations);
"admitted_utilization": "sum of all reservations" => part(service.info().admitted_utilization_ppm);
"max_utilization": "configured maximum of that sum" => part(service.info().max_utilization_ppm);
"utilization_limit": "the maximum in effect, which `xqos server --cpu` may lower" => part(service.settings.limit_ppm());
"blocking_observed_ms": "longest in the last 30 to 60 s" => time_of_us(service.info().blocking_observed_us);
"blocking_configured_ms": "null if the observed value is used" =>
    time_of_us(service.info().blocking_configured_us).when(service.info().blocking_configured_us != 0);
"can_cut": "true if long requests of this server can be cut (`xqos policy --cut`)" =>
    Value::Flag(service.settings.cut.is_possible);
"uptime_ms": "time since xqos started" => time(service.info().uptime_ns);
"busy_ms": "server time spent on clients" => time(service.info().busy_ns);
"decisions": "decisions of the scheduler" => count(service.info().decisions);
"early_ends": "slices that were ended early for another client" => count(service.info().early_ends);
"memory_bytes": "memory that xqos uses in the server" => count(service.info().memory_bytes);
}

impl Service {
    fn info(&self) -> &ServerInfo {
        &self.settings.info
    }
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        let report = match examine(display) {
            Ok(report) => report,
            Err(error) if self.json => unreachable_server(display, &error),
            Err(error) => return Err(wayland_without_x().map_or(error, |why| anyhow!(why))),
        };
        if self.json {
            output::json(&report)?;
        } else {
            output::print(&words(&report))?;
        }
        let armed = report.service.as_ref().is_some_and(|service| service.info().armed);
        Ok(if armed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn examine(display: Option<&str>) -> Result<DoctorReport> {
    let name = display_name(display)?;
    let (host, service) = match Control::open(Some(&name))? {
        Some(control) => {
            let settings = ServerSettings::of(&control)?;
            let session = Session { control, display: name.clone() };
            let pid = i32::try_from(settings.info.server_pid).ok().filter(|_| session.is_here());
            let host = Host::look(session.control.connection().ok(), pid);
            let service = service(settings, &session, &host)?;
            (host, Some(service))
        }
        None => (Host::look(Some(&xqos_client::connect(Some(&name))?.0), None), None),
    };
    let advice = advice(&host, service.as_ref());
    Ok(DoctorReport { display: name, error: None, host: Some(host), service, advice })
}

fn unreachable_server(display: Option<&str>, error: &anyhow::Error) -> DoctorReport {
    DoctorReport {
        display: display_name(display).unwrap_or_default(),
        error: Some(one_line(error)),
        advice: wayland_without_x().map(str::to_owned),
        ..DoctorReport::default()
    }
}

/// Advice for a Wayland session without an X server.
fn wayland_without_x() -> Option<&'static str> {
    session::is_wayland().then_some(
        "this is a Wayland session, whose programs are served by the compositor and not by an X server: log into an \
         Xorg session, or run X programs in `xqos server -- Xephyr :77`",
    )
}

fn service(mut settings: ServerSettings, session: &Session, host: &Host) -> Result<Service> {
    let exports_nothing = || host.process.as_ref()?.missing.as_ref().map(|missing| !missing.is_empty());
    settings.through_libc = session.control.is_served_through_libc().or_else(exports_nothing).unwrap_or(false);
    let version = session.control.version();
    let version = format!("{}.{}", version.major, version.minor);
    let grabs = session.control.clients()?.clients.iter().flat_map(session::held_grabs).collect();
    Ok(Service { settings, version, grabs, release: host.release.clone() })
}

fn advice(host: &Host, service: Option<&Service>) -> Option<String> {
    match service {
        Some(service) if service.info().armed => return None,
        Some(_) => return Some("start the server again; its log has the details".to_owned()),
        None => {}
    }
    let Some(process) = &host.process else {
        return Some("the server runs on another machine or in a container: run `xqos doctor` there".to_owned());
    };
    if process.module_loaded {
        return Some("the module is loaded but not active: look for a line of xqos in the server's log".into());
    }
    if host.xwayland && !is_rootful(&process.command) {
        return Some(
            "have the compositor start Xwayland with xqos: run `xqos xwayland install` and start the session again; Wayland \
             programs are served by the compositor"
                .into(),
        );
    }
    Some(match process.missing {
        None if host.name() == "Xorg" => {
            format!("{}; if that does not help, run `xqos doctor` as root", xorg_advice(&process.command))
        }
        None => format!("process {} cannot be inspected by this user: run this as root", process.pid),
        Some(_) if host.name() == "Xorg" => xorg_advice(&process.command),
        Some(_) => {
            let command: Vec<String> = process.command.iter().map(|word| shell_word(word)).collect();
            format!("stop this server and start it with: xqos server -- {}", command.join(" "))
        }
    })
}

/// Returns true if an Xwayland was started manually, with its own root window.
fn is_rootful(command: &[String]) -> bool {
    !command.iter().any(|word| word == "-rootless")
}

fn xorg_advice(command: &[String]) -> String {
    let folders = ["/etc/X11/xorg.conf.d", "/usr/share/X11/xorg.conf.d"];
    match folders.into_iter().find(|folder| Path::new(folder).join("20-xqos.conf").exists()) {
        Some(folder) => {
            if let Some(hiding) = xorg_config::hiding(command, Path::new(folder)) {
                return hiding.advice(&loaded_by(&Path::new(folder).join("20-xqos.conf")));
            }
            format!("{folder}/20-xqos.conf loads xqos when Xorg starts: log out and in again")
        }
        None => "let Xorg load the module with a file 20-xqos.conf in xorg.conf.d: install the package xqos (`make deb`) or \
                 run `sudo make install`, then log out and in again"
            .to_owned(),
    }
}

/// The module path that our configuration file loads.
fn loaded_by(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let load = text.lines().find_map(|line| line.trim().strip_prefix("Load"));
    load.map_or_else(|| "xqos".to_owned(), |path| path.trim().trim_matches('"').to_owned())
}

fn words(report: &DoctorReport) -> String {
    let mut lines = vec![("X server", server_words(report))];
    match &report.service {
        None => {
            lines.extend([("served", "no: it runs without xqos".to_owned()), ("can be served", can_be_words(report))]);
            if let Some(HostProcess { pid, .. }) = report.process() {
                lines.push((
                    "clients",
                    format!("run `sudo xqos top --attach {pid}`, which needs nothing in the server"),
                ));
            }
        }
        Some(service) if !service.info().armed => {
            let reason = Some(service.info().reason.as_str()).filter(|reason| !reason.is_empty());
            let reason = reason.unwrap_or("no reason is known");
            lines.push(("served", format!("no: xqos has stepped aside: {reason}")));
        }
        Some(service) => lines.extend(service_words(service, report.missing_symbols())),
    }
    lines.extend(report.advice.iter().map(|advice| ("next step", advice.clone())));
    lines.into_iter().fold(String::new(), |all, (title, text)| all + &format!("{title:<14}{text}\n"))
}

fn server_words(report: &DoctorReport) -> String {
    let (vendor, release) = report.host.as_ref().map_or(("", ""), |host| (host.vendor.as_str(), host.release.as_str()));
    let named = format!(", {vendor} {release}");
    let named = named.trim_end_matches([' ', ',']);
    let program = report.program().map(|program| format!(", {program}")).unwrap_or_default();
    let pid = report.process().map(|process| format!(", pid {}", process.pid)).unwrap_or_default();
    format!("{}{named}{program}{pid}", report.display)
}

fn can_be_words(report: &DoctorReport) -> String {
    match (report.can_be_served(), report.missing_symbols()) {
        (None, _) => "unknown: this user cannot inspect the program".to_owned(),
        (Some(_), []) => format!("yes: it {}", exports::verdict(&[])),
        (Some(_), missing) => format!("yes, through libc: it {}", exports::verdict(missing)),
    }
}

fn service_words(service: &Service, missing: &[&str]) -> Vec<(&'static str, String)> {
    let Service { settings, version, .. } = service;
    let (info, limit_ppm) = (service.info(), settings.limit_ppm());
    let busy = 100.0 * info.busy_ns as f64 / info.uptime_ns.max(1) as f64;
    let mut clients = match info.clients_limit {
        0 => info.clients.to_string(),
        limit => format!("{} of at most {limit}", info.clients),
    };
    if let Some(why) = session::full(info.clients, info.clients_limit) {
        clients += &format!(": {why} (`xqos list` names them)");
    }
    let by_processor = match limit_ppm < info.max_utilization_ppm {
        true => ", limited by the server's processor time (server --cpu)",
        false => "",
    };
    let plural = if info.reservations == 1 { "" } else { "s" };
    let mut lines = vec![
        ("served", format!("yes: XQOS {version}, policy {}", info.policy.name())),
        ("through", host_words(settings.through_libc, missing)),
        ("clients", clients),
        (
            "reserved",
            format!(
                "{} of at most {}{by_processor}, in {} reservation{plural}",
                admission::ratio(info.admitted_utilization_ppm, 2),
                admission::ratio(limit_ppm, 2),
                info.reservations
            ),
        ),
        ("blocking time", settings.blocking()),
        ("server time", format!("{:.1} s for clients, {busy:.1} % of its time", info.busy_ns as f64 / 1e9)),
        ("decisions", format!("{}, {} slices ended early for another client", info.decisions, info.early_ends)),
        ("long requests", cut_words(service)),
    ];
    lines.extend(service.grabs.iter().map(|held| ("grab", held.clone())));
    if settings.through_libc {
        lines.push(("not visible", "pointer and keyboard grabs, which libc does not show".to_owned()));
    }
    lines
}

/// Describes the time after which long requests are cut, or why they cannot be cut.
fn cut_words(service: &Service) -> String {
    let Service { settings: ServerSettings { cut, through_libc, .. }, release, .. } = service;
    match cut.part_us {
        0 if cut.is_possible => "not cut: cutting is switched off (`xqos policy --cut on`)".to_owned(),
        us if cut.is_possible => format!("cut after {}, to serve other clients (`xqos policy --cut`)", Micros(us)),
        _ if *through_libc => "cannot be cut: through libc, xqos does not see single requests".to_owned(),
        _ if !is_cut_in(release) => format!("cannot be cut: xqos cuts only in release 21.1, and this is {release}"),
        _ => "cannot be cut: the server does not export everything that this needs".to_owned(),
    }
}

/// Returns true if xqos knows the server records of this release that it needs to cut requests.
fn is_cut_in(release: &str) -> bool {
    release.strip_prefix("21.1").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Describes how xqos is attached to the server and, if through libc, the reason.
fn host_words(through_libc: bool, missing: &[&str]) -> String {
    match (through_libc, missing) {
        (false, _) => "the server's own functions (host dix)".to_owned(),
        (_, []) => "the server's calls of libc (host libc): see XQOS_HOST or the server's log".to_owned(),
        (_, missing) => format!("the server's calls of libc (host libc), as it {}", exports::verdict(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::CutReport;

    fn host(program: &str, missing: Option<Vec<&'static str>>, module_loaded: bool) -> Host {
        let process = HostProcess {
            pid: 7,
            program: Some(program.into()),
            command: vec![program.to_owned(), ":0".to_owned()],
            missing,
            module_loaded,
        };
        Host {
            vendor: "X".to_owned(),
            release: "21.1.7".to_owned(),
            xwayland: program.ends_with("Xwayland"),
            process: Some(process),
        }
    }

    fn advised(host: &Host) -> String {
        advice(host, None).expect("a server without xqos needs advice")
    }

    #[test]
    fn every_kind_of_server_gets_its_own_advice() {
        assert!(advised(&host("/usr/bin/Xvfb", Some(vec![]), false)).ends_with("xqos server -- /usr/bin/Xvfb :0"));
        assert!(advised(&host("/usr/lib/xorg/Xorg", Some(vec![]), false)).contains("xorg.conf.d"));
        let mut xwayland = host("/usr/bin/Xwayland", Some(exports::NEEDED.to_vec()), false);
        assert!(advised(&xwayland).ends_with("xqos server -- /usr/bin/Xwayland :0"), "in a window of its own");
        xwayland.process.as_mut().unwrap().command.push("-rootless".to_owned());
        assert!(advised(&xwayland).contains("xqos xwayland install"));
        assert!(advised(&host("/usr/bin/Xvfb", Some(vec!["clients"]), false)).contains("xqos server --"));
        assert!(advised(&host("/usr/bin/Xvfb", None, false)).contains("as root"));
        let mut unreadable = host("/usr/lib/xorg/Xorg", None, false);
        unreadable.process.as_mut().unwrap().program = None;
        assert!(advised(&unreadable).contains("xorg.conf.d"), "lightdm runs Xorg as root: {}", advised(&unreadable));
        assert!(advised(&host("/usr/bin/Xvfb", Some(vec![]), true)).contains("server's log"));
        let elsewhere = Host { process: None, ..host("Xvfb", None, false) };
        assert!(advised(&elsewhere).contains("another machine"));
    }

    #[test]
    fn doctor_says_whether_long_requests_are_cut_or_why_not() {
        let words = |is_possible, part_us, through_libc, release: &str| {
            let cut = CutReport { is_possible, part_us, ..CutReport::default() };
            let mut settings = ServerSettings::default();
            (settings.through_libc, settings.cut) = (through_libc, cut);
            cut_words(&Service { settings, release: release.to_owned(), ..Service::default() })
        };
        assert!(words(true, 250, false, "21.1.7").starts_with("cut after 0.25 ms"));
        assert!(words(true, 0, false, "21.1.7").contains("switched off"));
        assert!(words(false, 250, true, "21.1.7").contains("through libc"));
        assert!(words(false, 250, false, "26.1.0").ends_with("only in release 21.1, and this is 26.1.0"));
        assert!(words(false, 250, false, "21.1.16").contains("does not export"));
        assert!(words(false, 250, false, "21.10").contains("and this is 21.10"));
    }

    #[test]
    fn missing_symbols_and_an_unreadable_program_are_different_answers() {
        let report = DoctorReport { host: Some(host("Xvfb", Some(vec!["clients"]), false)), ..DoctorReport::default() };
        assert!(can_be_words(&report).starts_with("yes, through libc: it does not export clients"));
        assert!(host_words(true, &["clients"]).contains("does not export clients"));
        assert!(can_be_words(&DoctorReport::default()).starts_with("unknown"));
    }
}
