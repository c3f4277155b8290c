// SPDX-License-Identifier: MIT
//! The machine: its hardware and kernel, and how busy it is.

use std::fs;

/// Clock ticks of all processors since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    pub busy: u64,
    pub idle: u64,
    /// Taken by the host of a virtual machine.
    pub steal: u64,
}

/// `None` if the kernel does not report them.
pub fn ticks() -> Option<Ticks> {
    parse_ticks(&read("/proc/stat"))
}

/// Fields: user nice system idle iowait irq softirq steal. Time of guests is already included in user.
fn parse_ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = *fields.get(..8)? else { return None };
    Some(Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

/// Time in which processors have run tasks, in nanoseconds; zero if the kernel does not report it.
pub fn busy_ns() -> u64 {
    parse_busy(&read("/proc/schedstat"))
}

/// Each processor's line has nine figures; the seventh is the time of all tasks.
fn parse_busy(schedstat: &str) -> u64 {
    let lines = schedstat.lines().filter(|line| line.starts_with("cpu"));
    lines.filter_map(|line| line.split_whitespace().nth(7)?.parse::<u64>().ok()).sum()
}

/// Time in which a runnable task waited for a processor, in microseconds, if the kernel records it.
pub fn pressure_us() -> Option<u64> {
    parse_pressure(&read("/proc/pressure/cpu"))
}

fn parse_pressure(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("some "))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// The model of the first processor, or else the architecture.
pub fn processor() -> String {
    parse_processor(&read("/proc/cpuinfo"))
}

fn parse_processor(cpuinfo: &str) -> String {
    // Not every architecture names a model.
    let name = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

/// Evidence of a virtual machine; empty if there is none.
pub fn virtualisation() -> String {
    parse_virtualisation(&read("/proc/cpuinfo"), read("/sys/class/dmi/id/product_name").trim())
}

fn parse_virtualisation(cpuinfo: &str, product: &str) -> String {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let is_guest = flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    match (is_guest, product) {
        (false, _) => String::new(),
        (true, "") => "yes (processor flag hypervisor)".to_owned(),
        (true, product) => format!("yes ({product})"),
    }
}

pub fn memory_mb() -> u64 {
    parse_memory_mb(&read("/proc/meminfo"))
}

fn parse_memory_mb(meminfo: &str) -> u64 {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Load average of the last minute.
pub fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Frequency governor; empty if the kernel does not report it.
pub fn governor() -> String {
    read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_owned()
}

/// The kernel's clock source; empty if unknown.
pub fn clock_source() -> String {
    read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figures_are_read() {
        let stat = "cpu  100 20 30 400 50 6 4 7 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(parse_busy("version 15\ncpu0 0 0 0 0 0 0 70 8 9\ndomain0 1 2\ncpu1 0 0 0 0 0 0 5 8 9\n"), 75);
        assert_eq!(parse_ticks(stat), Some(Ticks { busy: 160, idle: 450, steal: 7 }));
        assert_eq!(parse_ticks("cpu  1 2 3\n"), None);
        let pressure = "some avg10=96.21 avg60=74.10 avg300=44.13 total=996368194\nfull avg10=0.00 total=1\n";
        assert_eq!(parse_pressure(pressure), Some(996_368_194));
    }

    #[test]
    fn facts_are_read_from_the_usual_files() {
        assert_eq!(parse_processor("processor\t: 0\nmodel name\t: Foo 3000 @ 2GHz\n"), "Foo 3000 @ 2GHz");
        assert_eq!(parse_memory_mb("MemTotal:       24622492 kB\n"), 24045);
        let cpuinfo = "processor\t: 0\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(parse_virtualisation(cpuinfo, "KVM"), "yes (KVM)");
        assert_eq!(parse_virtualisation("flags\t: fpu\n", "KVM"), "");
    }
}
