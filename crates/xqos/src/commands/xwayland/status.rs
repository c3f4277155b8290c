// SPDX-License-Identifier: MIT
//! Reports what is installed for Xwayland, and which Xwayland processes run with xqos.

use super::files::{self, Places};
use super::weston;
use anyhow::Result;
use serde::Serialize;
use std::fs;
use xqos_agent::host::has_module;
use xqos_cli::output;

#[derive(Debug, Serialize)]
struct Status {
    /// The script; null if there is none.
    script: Option<String>,
    /// Whether the module that the script loads exists.
    module_present: bool,
    /// Our file in environment.d; null if there is none.
    environment: Option<String>,
    /// Whether that file sets WLR_XWAYLAND, and puts the script first in PATH.
    wlroots: bool,
    path: bool,
    weston: bool,
    diverted: bool,
    running: Vec<Running>,
}

#[derive(Debug, Serialize)]
struct Running {
    pid: i32,
    with_xqos: bool,
}

impl Status {
    fn look() -> Result<Status> {
        let places = Places::of_user()?;
        let read = |path: &std::path::Path| fs::read_to_string(path).unwrap_or_default();
        let ours = |path: &std::path::Path| files::is_ours(path).then(|| path.display().to_string());
        let script = read(&places.wrapper);
        let divertor = read(files::PROGRAM.as_ref());
        let module = [&script, &divertor].into_iter().find_map(|text| module_of(text));
        Ok(Status {
            script: ours(&places.wrapper),
            module_present: module.is_some_and(|module| fs::metadata(module).is_ok()),
            environment: ours(&places.environment),
            wlroots: files::sets(&places.environment, "WLR_XWAYLAND"),
            path: files::sets(&places.environment, "PATH"),
            weston: weston::without_path(&read(&places.weston)).is_some(),
            diverted: files::is_diverted(),
            running: xqos_sys::pids().into_iter().filter_map(running).collect(),
        })
    }
}

/// The module that one of our scripts loads.
fn module_of(script: &str) -> Option<String> {
    let quoted = script.lines().find_map(|line| line.strip_prefix("module="))?;
    Some(quoted.strip_prefix('\'')?.strip_suffix('\'')?.replace("'\\''", "'"))
}

fn running(pid: i32) -> Option<Running> {
    let program = xqos_sys::proc::program_path(pid)?;
    let name = program.file_name()?.to_str()?;
    name.starts_with("Xwayland").then(|| Running { pid, with_xqos: has_module(pid) })
}

pub fn show(json: bool) -> Result<()> {
    let status = Status::look()?;
    if json {
        return output::json(&status);
    }
    let yes = |is: bool, words: &str| if is { words.to_owned() } else { "no".to_owned() };
    let mut lines = vec![
        ("script", status.script.clone().unwrap_or_else(|| "none: `xqos xwayland install` writes it".to_owned())),
        ("wlroots", yes(status.wlroots, "WLR_XWAYLAND names the script")),
        ("in PATH", yes(status.path, "the script comes before Xwayland")),
        ("weston", yes(status.weston, "weston.ini names the script")),
        ("mutter", yes(status.diverted, "/usr/bin/Xwayland is diverted")),
    ];
    if (status.script.is_some() || status.diverted) && !status.module_present {
        lines.push(("", "the module that the script loads is missing: Xwayland starts without xqos".to_owned()));
    }
    for running in &status.running {
        lines.push((
            "running",
            format!("process {} {} xqos", running.pid, if running.with_xqos { "with" } else { "without" }),
        ));
    }
    if status.running.is_empty() {
        lines.push(("running", "no Xwayland".to_owned()));
    }
    output::print(&lines.into_iter().fold(String::new(), |all, (title, text)| all + &format!("{title:<10}{text}\n")))
}
