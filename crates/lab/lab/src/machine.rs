// SPDX-License-Identifier: MIT
//! Facts about the machine, stored with every result because figures mean nothing without them.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use xqos_sys::machine;

/// Set in the machine of `scripts/machine exact`.
const EXACT: &str = "XQOS_EXACT";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    pub distribution: String,
    /// Load average of the last minute before the measurement.
    pub load_average: f64,
    /// Frequency governor; empty if the kernel does not report it.
    #[serde(default)]
    pub governor: String,
    /// Evidence of a virtual machine; empty if there is none.
    #[serde(default)]
    pub virtualisation: String,
    /// The machine's clock counts instructions: a nanosecond is one instruction.
    #[serde(default)]
    pub exact: bool,
    pub server: String,
    /// Version and a hash of the file: equal hashes mean the same module.
    #[serde(default)]
    pub module: String,
    pub x11perf: String,
    /// Seconds since 1970, UTC.
    pub measured_at: u64,
}

impl Machine {
    /// `server` is [`Server::version`](crate::server::Server::version), `module` is [`module_version`].
    pub fn facts(server: String, module: String) -> Machine {
        Machine {
            processor: machine::processor(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: machine::memory_mb(),
            kernel: machine::kernel_release(),
            distribution: distribution(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
            load_average: machine::load_average(),
            governor: machine::governor(),
            virtualisation: machine::virtualisation(),
            exact: std::env::var_os(EXACT).is_some(),
            server,
            module,
            x11perf: package_version("x11-apps"),
            measured_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        }
    }

    pub fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("processor", format!("{}, {} cores", self.processor, self.cores)),
            ("memory", format!("{:.1} GB", self.memory_mb as f64 / 1024.0)),
            ("system", format!("{}, Linux {}", self.distribution, self.kernel)),
            ("governor", or_unknown(&self.governor)),
            ("virtual", or_unknown(&self.virtualisation)),
            ("clock", if self.exact { "counts instructions: 1 ns each" } else { "real time" }.to_owned()),
            ("server", self.server.clone()),
            ("module", or_unknown(&self.module)),
            ("x11perf", self.x11perf.clone()),
            ("load before", format!("{:.2}", self.load_average)),
            ("measured", date(self.measured_at)),
        ]
    }
}

/// The module's version, which is the same as ours, and a hash of the module's file.
pub fn module_version(path: &Path) -> Result<String> {
    let file = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    // If another standard library hashes differently, results are measured again, which does no harm.
    let mut hasher = DefaultHasher::new();
    hasher.write(&file);
    Ok(format!("{} ({:016x})", env!("CARGO_PKG_VERSION"), hasher.finish()))
}

/// Seconds since 1970 as `2024-02-29 13:05 UTC`.
pub fn date(seconds: u64) -> String {
    xqos_text::time::utc((seconds as i64).saturating_mul(1_000_000_000), "%F %H:%M UTC")
}

fn or_unknown(value: &str) -> String {
    if value.is_empty() { "unknown".to_owned() } else { value.to_owned() }
}

fn distribution(os_release: &str) -> String {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// x11perf prints only its protocol version, so Debian's package database is queried.
fn package_version(package: &str) -> String {
    let answer = Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Version}", package]).output();
    match answer {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_read_from_its_file() {
        assert_eq!(distribution("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
        assert_eq!(distribution(""), "unknown");
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_709_211_900), "2024-02-29 13:05 UTC");
        assert_eq!(date(951_868_799), "2000-02-29 23:59 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
    }
}
