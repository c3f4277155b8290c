// SPDX-License-Identifier: MIT
//! How xqos starts in this server: from the environment (a preload, as `xqos server` sets it) or from the options of
//! the module in xorg.conf. Read once; the environment is cleared, so that the server's children do not inherit it.

use xqos_abi::Grouping;
use xqos_core::{DEFAULT_SHARE_PPM, MAX_SHARE_PPM, Parameters, PolicyKind};

/// Largest U: input, new connections and the server's own work always keep 5 %.
pub const MAX_UTILIZATION_LIMIT_PPM: u32 = 950_000;
/// Smallest and largest slice, timer interval and maximum slice.
pub const SLICE_RANGE_US: std::ops::RangeInclusive<u32> = 100..=1_000_000;

/// Shortest and longest chunk of work that one read may bring.
pub const CHUNK_RANGE_US: std::ops::RangeInclusive<u32> = 50..=20_000;

/// Where a deliberate fault strikes, for tests of stepping aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPlace {
    Wakeup,
    Block,
    Request,
    Watcher,
    /// A failed check instead of a panic.
    Check,
    /// Any call of the server that we stand before.
    Call,
}

/// The test switch `XQOS_TEST_FAULT=PLACE:COUNT`: a fault at the COUNT-th passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub place: FaultPlace,
    pub count: u64,
}

/// When there is contention: as measured, or always, for tests that want each slice decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Measured,
    Always,
}

/// What to start with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub policy: PolicyKind,
    pub parameters: Parameters,
    /// The most that clients that work for others get while others wait, millionths; 0: they are served like all others.
    pub desktop_share_ppm: u32,
    pub contention: When,
    /// Which clients are one group under `fair`.
    pub grouping: Grouping,
    /// Where requests are not seen: a read may return the work of this time, or one request.
    pub chunk_ns: u64,
    /// After how long the log names who holds the server grab; 0: never.
    pub grab_limit_ns: u64,
    pub fault: Option<PlannedFault>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: PolicyKind::Fair,
            parameters: Parameters::default(),
            desktop_share_ppm: DEFAULT_SHARE_PPM,
            contention: When::Measured,
            grouping: Grouping::default(),
            chunk_ns: 400_000,
            grab_limit_ns: 0,
            fault: None,
        }
    }
}

impl Settings {
    /// Reads and clears `XQOS_*`; what `option` gives for a name (on Xorg the module's options) wins. What cannot be
    /// understood is logged and left at its default: a typing error must not cost anybody their X server.
    pub fn read(option: impl Fn(&str) -> Option<String>, log: impl Fn(&str)) -> Settings {
        let mut settings = Settings::default();
        const NAMES: [(&str, &str); 9] = [
            ("XQOS_POLICY", "policy"),
            ("XQOS_SLICE_US", "slice_us"),
            ("XQOS_MAX_UTILIZATION_PPM", "max_utilization_ppm"),
            ("XQOS_DESKTOP_SHARE_PPM", "desktop_share_ppm"),
            ("XQOS_CONTENTION", "contention"),
            ("XQOS_GROUPS", "groups"),
            ("XQOS_CHUNK_US", "chunk_us"),
            ("XQOS_GRAB_LIMIT_MS", "grab_limit_ms"),
            ("XQOS_TEST_FAULT", "test_fault"),
        ];
        for (variable, name) in NAMES {
            let from_environment = std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned());
            // SAFETY: the server has no other thread yet that reads the environment: this runs while it loads us.
            unsafe { std::env::remove_var(variable) };
            let Some(value) = option(name).or(from_environment) else { continue };
            if settings.apply(variable, &value).is_none() {
                log(&format!("{variable}={value} is not understood; the default is used"));
            }
        }
        settings
    }

    fn apply(&mut self, variable: &str, value: &str) -> Option<()> {
        match variable {
            "XQOS_POLICY" => self.policy = PolicyKind::from_name(value)?,
            "XQOS_SLICE_US" => {
                let slice_us = value.parse().ok().filter(|slice_us| SLICE_RANGE_US.contains(slice_us))?;
                self.parameters.slice_ns = u64::from(slice_us) * 1000;
            }
            "XQOS_MAX_UTILIZATION_PPM" => {
                let ppm = value.parse().ok().filter(|&ppm: &u32| ppm <= MAX_UTILIZATION_LIMIT_PPM)?;
                self.parameters.max_utilization_ppm = ppm;
            }
            "XQOS_DESKTOP_SHARE_PPM" => {
                self.desktop_share_ppm = value.parse().ok().filter(|&ppm: &u32| ppm <= MAX_SHARE_PPM)?;
            }
            "XQOS_CONTENTION" => {
                self.contention = match value {
                    "measured" => When::Measured,
                    "always" => When::Always,
                    _ => return None,
                };
            }
            "XQOS_GROUPS" => self.grouping = Grouping::from_name(value)?,
            "XQOS_CHUNK_US" => {
                let us = value.parse().ok().filter(|us: &u32| CHUNK_RANGE_US.contains(us))?;
                self.chunk_ns = u64::from(us) * 1000;
            }
            "XQOS_GRAB_LIMIT_MS" => {
                let ms = value.parse().ok().filter(|&ms: &u32| ms <= 3_600_000)?;
                self.grab_limit_ns = u64::from(ms) * 1_000_000;
            }
            _ => self.fault = Some(parse_fault(value)?),
        }
        Some(())
    }
}

fn parse_fault(value: &str) -> Option<PlannedFault> {
    let (place, count) = value.split_once(':')?;
    let place = match place {
        "wakeup" => FaultPlace::Wakeup,
        "block" => FaultPlace::Block,
        "request" => FaultPlace::Request,
        "watcher" => FaultPlace::Watcher,
        "check" => FaultPlace::Check,
        "call" => FaultPlace::Call,
        _ => return None,
    };
    Some(PlannedFault { place, count: count.parse().ok()? })
}
