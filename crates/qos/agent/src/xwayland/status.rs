// SPDX-License-Identifier: MIT
//! Reports what is installed for Xwayland, and which Xwayland processes run with xqos.

use super::files::{self, Places};
use crate::error::Result;
use crate::host::has_module;
use serde::Serialize;
use std::fs;
use xqos_sys::proc;

#[derive(Debug, Serialize)]
pub struct Status {
    /// The script; null if there is none.
    pub script: Option<String>,
    /// Whether the module that the script loads exists.
    pub module_present: bool,
    /// Our file in environment.d; null if there is none.
    pub environment: Option<String>,
    /// Whether that file sets WLR_XWAYLAND, and puts the script first in PATH.
    pub wlroots: bool,
    pub path: bool,
    pub weston: bool,
    pub diverted: bool,
    pub running: Vec<RunningXwayland>,
}

#[derive(Debug, Serialize)]
pub struct RunningXwayland {
    pub pid: i32,
    pub with_xqos: bool,
}

impl Status {
    pub fn look() -> Result<Status> {
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
            weston: files::weston_without_path(&read(&places.weston)).is_some(),
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

fn running(pid: i32) -> Option<RunningXwayland> {
    let program = proc::program_path(pid)?;
    let name = program.file_name()?.to_str()?;
    name.starts_with("Xwayland").then(|| RunningXwayland { pid, with_xqos: has_module(pid) })
}
