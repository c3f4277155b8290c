// SPDX-License-Identifier: MIT
//! What the rules daemon of a display reports about itself (`xqos rules status`).
//!
//! The daemon sends it as JSON. Any client can own the daemon's selection, so a reader must not trust the texts.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_abi::ClientEntry;
use xqos_rules::decide::Chosen;
use xqos_rules::files::{FileStatus, Loaded};
use xqos_text::escape::printable;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub version: u32,
    pub pid: u32,
    pub running_ms: f64,
    pub rules: RulesRead,
    /// Time since the rule files were read.
    pub read_ago_ms: f64,
    pub last_error: Option<LastError>,
    /// One for each setting of each client.
    pub applied: Vec<Applied>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RulesRead {
    pub count: usize,
    pub files: Vec<String>,
    pub mistakes: Vec<String>,
    /// The last valid version of a refused file stays in effect.
    pub keeps_earlier: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastError {
    pub text: String,
    pub ago_ms: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    pub client: String,
    /// 0 if the client is on another machine.
    pub pid: i32,
    pub program: String,
    /// As in a rule file.
    pub setting: String,
    pub rule: String,
    pub place: String,
}

impl RulesRead {
    pub fn of(loaded: &Loaded) -> RulesRead {
        let is_kept = |status: &FileStatus| *status == FileStatus::Refused { kept: true };
        let counts = loaded.files.iter().filter(|file| file.status == FileStatus::Active || is_kept(&file.status));
        RulesRead {
            count: loaded.rules.rules().len(),
            files: counts.map(|file| file.path.display().to_string()).collect(),
            mistakes: loaded.mistakes.iter().map(ToString::to_string).collect(),
            keeps_earlier: loaded.files.iter().any(|file| is_kept(&file.status)),
        }
    }
}

impl Applied {
    pub fn of(entry: &ClientEntry, chosen: &Chosen<'_>) -> Applied {
        Applied {
            client: format!("{:#x}", entry.client),
            pid: entry.pid,
            program: printable(&entry.name),
            setting: chosen.setting.to_string(),
            rule: chosen.rule.id.clone(),
            place: chosen.rule.place.to_string(),
        }
    }
}

/// A duration for the JSON.
pub fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
