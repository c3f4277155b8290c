// SPDX-License-Identifier: MIT
//! How xqos starts in this server: from the environment (a preload, as `xqos server` sets it) or from the options of
//! the module in xorg.conf. Read once; the environment is cleared, so that the server's children do not inherit it.

use std::ops::RangeInclusive;
use xqos_abi::Grouping;
use xqos_core::{DEFAULT_SHARE_PPM, MAX_SHARE_PPM, Parameters, PolicyKind, named};

/// Largest U: input, new connections and the server's own work always keep 5 %.
pub const MAX_UTILIZATION_LIMIT_PPM: u32 = 950_000;
/// Smallest and largest slice, timer interval and maximum slice.
pub const SLICE_RANGE_US: RangeInclusive<u32> = 100..=1_000_000;

/// Shortest and longest chunk of work that one read may bring.
pub const CHUNK_RANGE_US: RangeInclusive<u32> = 50..=20_000;

named! {
    /// Where a deliberate fault strikes, for tests of stepping aside.
    FaultPlace {
        Wakeup "wakeup",
        Block "block",
        Request "request",
        Watcher "watcher",
        /// A failed check instead of a panic.
        Check "check",
        /// Any call of the server that we stand before.
        Call "call",
    }
    /// When there is contention: as measured, or always, for tests that want each slice decided.
    When {
        Measured "measured",
        Always "always",
    }
}

/// The test switch `XQOS_TEST_FAULT=PLACE:COUNT`: a fault at the COUNT-th passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub place: FaultPlace,
    pub count: u64,
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
            grouping: Grouping::Application,
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
            "XQOS_SLICE_US" => self.parameters.slice_ns = number(value, SLICE_RANGE_US)? * 1000,
            "XQOS_MAX_UTILIZATION_PPM" => {
                self.parameters.max_utilization_ppm = number(value, 0..=MAX_UTILIZATION_LIMIT_PPM)? as u32;
            }
            "XQOS_DESKTOP_SHARE_PPM" => self.desktop_share_ppm = number(value, 0..=MAX_SHARE_PPM)? as u32,
            "XQOS_CONTENTION" => self.contention = When::from_name(value)?,
            "XQOS_GROUPS" => self.grouping = Grouping::from_name(value)?,
            "XQOS_CHUNK_US" => self.chunk_ns = number(value, CHUNK_RANGE_US)? * 1000,
            "XQOS_GRAB_LIMIT_MS" => self.grab_limit_ns = number(value, 0..=3_600_000)? * 1_000_000,
            _ => self.fault = Some(parse_fault(value)?),
        }
        Some(())
    }
}

/// A number that may be so large.
fn number(value: &str, range: RangeInclusive<u32>) -> Option<u64> {
    value.parse().ok().filter(|number| range.contains(number)).map(u64::from)
}

fn parse_fault(value: &str) -> Option<PlannedFault> {
    let (place, count) = value.split_once(':')?;
    let place = FaultPlace::from_name(place)?;
    Some(PlannedFault { place, count: count.parse().ok()? })
}
