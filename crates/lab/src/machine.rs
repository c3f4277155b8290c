// SPDX-License-Identifier: MIT
//! Facts about the machine, stored with every result because figures mean nothing without them.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

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
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            processor: processor(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: memory_mb(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            distribution: distribution(&read("/etc/os-release")),
            load_average: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_owned(),
            virtualisation: virtualisation(&read("/proc/cpuinfo"), read("/sys/class/dmi/id/product_name").trim()),
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

fn processor(cpuinfo: &str) -> String {
    // Not every architecture names a model.
    let name = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

fn or_unknown(value: &str) -> String {
    if value.is_empty() { "unknown".to_owned() } else { value.to_owned() }
}

fn virtualisation(cpuinfo: &str, product: &str) -> String {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let is_guest = flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    match (is_guest, product) {
        (false, _) => String::new(),
        (true, "") => "yes (processor flag hypervisor)".to_owned(),
        (true, product) => format!("yes ({product})"),
    }
}

fn memory_mb(meminfo: &str) -> u64 {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
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
    fn facts_are_read_from_the_usual_files() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: Foo 3000 @ 2GHz\n"), "Foo 3000 @ 2GHz");
        assert_eq!(memory_mb("MemTotal:       24622492 kB\n"), 24045);
        assert_eq!(distribution("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"), "Debian GNU/Linux 12");
        assert_eq!(distribution(""), "unknown");
        let cpuinfo = "processor\t: 0\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(virtualisation(cpuinfo, "KVM"), "yes (KVM)");
        assert_eq!(virtualisation("flags\t: fpu\n", "KVM"), "");
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_709_211_900), "2024-02-29 13:05 UTC");
        assert_eq!(date(951_868_799), "2000-02-29 23:59 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
    }
}
