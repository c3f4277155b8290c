//! Facts of the machine, stored beside every number: a figure without them means nothing.

use serde::{Deserialize, Serialize};
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where and when something was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    pub distribution: String,
    /// Of the last minute, before anything was measured.
    pub load_average: f64,
    /// Vendor and version, as the server tells its clients.
    pub server: String,
    pub x11perf: String,
    /// Seconds since 1970, UTC.
    pub measured_at: u64,
}

impl Machine {
    /// The facts as they are now. `server` comes from [`Server::version`](crate::server::Server::version).
    pub fn facts(server: String) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            processor: processor(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: memory_mb(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            distribution: distribution(&read("/etc/os-release")),
            load_average: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            server,
            x11perf: package_version("x11-apps"),
            measured_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        }
    }

    /// Name and value of each fact, for people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("processor", format!("{}, {} cores", self.processor, self.cores)),
            ("memory", format!("{:.1} GB", self.memory_mb as f64 / 1024.0)),
            ("system", format!("{}, Linux {}", self.distribution, self.kernel)),
            ("server", self.server.clone()),
            ("x11perf", self.x11perf.clone()),
            ("load before", format!("{:.2}", self.load_average)),
            ("measured", date(self.measured_at)),
        ]
    }
}

/// Seconds since 1970 as `2024-02-29 13:05 UTC`.
pub fn date(seconds: u64) -> String {
    // Days to a date by H. Hinnant's rule: years begin in March, so that a leap day is the last of its year.
    let days = (seconds / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

fn processor(cpuinfo: &str) -> String {
    // Not every architecture names a model.
    let name = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

fn memory_mb(meminfo: &str) -> u64 {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn distribution(os_release: &str) -> String {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// x11perf prints only its protocol version; Debian knows which one is installed.
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
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(1_709_211_900), "2024-02-29 13:05 UTC");
        assert_eq!(date(951_868_799), "2000-02-29 23:59 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
    }
}
