// SPDX-License-Identifier: MIT
//! The start-up settings: from the environment (set by `xqos server` for a preload) or from the module's options in
//! xorg.conf. They are read once. The environment variables are then removed, so that the server's children do not
//! inherit them.

use std::ops::RangeInclusive;
use xqos_abi::Grouping;
use xqos_core::setting::{CUT, DESKTOP, MAX_UTILIZATION, POLICY_SLICE};
use xqos_core::{Parameters, PolicyKind, named};

/// The names of the module's options; the variable of `slice_us` is `XQOS_SLICE_US`.
const NAMES: [&str; 11] = [
    "policy",
    "slice_us",
    "max_utilization_ppm",
    "desktop_share_ppm",
    "contention",
    "groups",
    "chunk_us",
    "grab_limit_ms",
    "cut_us",
    "test_cut",
    "test_fault",
];
/// The valid range of the chunk of work that one read may return.
const CHUNK_RANGE_US: RangeInclusive<u32> = 50..=20_000;

named! {
    /// The place where a deliberate fault occurs, in tests that make xqos step aside.
    FaultPlace {
        Wakeup "wakeup",
        Block "block",
        Request "request",
        /// An event that the server delivers, also while it executes a request.
        Event "event",
        Watcher "watcher",
        /// A failed check instead of a panic.
        Check "check",
        /// Any interposed libc call.
        Call "call",
    }
    /// How contention is determined: measured, or always assumed (for tests in which xqos decides every slice).
    ContentionMode {
        Measured "measured",
        Always "always",
    }
}

/// The test switch `XQOS_TEST_FAULT=PLACE:COUNT` causes a fault at the COUNT-th passage of PLACE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub place: FaultPlace,
    pub count: u64,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub policy: PolicyKind,
    pub parameters: Parameters,
    /// The largest share that compositors and window managers get while other clients wait, in millionths; 0 serves
    /// them like all other clients.
    pub desktop_share_ppm: u32,
    pub contention: ContentionMode,
    /// How clients form groups under `fair`.
    pub grouping: Grouping,
    /// On hosts that do not see single requests, one read returns one request, or several that take at most this time.
    pub chunk_ns: u64,
    /// The log names a client that holds the server grab for longer than this; 0 disables it.
    pub grab_limit_ns: u64,
    pub fault: Option<PlannedFault>,
    /// The time after which a long request is cut to serve other clients; 0: requests are not cut.
    pub part_ns: u64,
    /// Cuts each request that has parts, after each part; for tests.
    pub cuts_always: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: PolicyKind::Fair,
            parameters: Parameters::default(),
            desktop_share_ppm: DESKTOP.initial,
            contention: ContentionMode::Measured,
            grouping: Grouping::Application,
            chunk_ns: 400_000,
            grab_limit_ns: 0,
            fault: None,
            part_ns: 0,
            cuts_always: false,
        }
    }
}

impl Settings {
    /// Reads and clears the `XQOS_*` variables. A value from `option` (on Xorg, the module's options) takes precedence.
    /// An invalid value is logged and replaced by its default: a typing error must not keep the X server from starting.
    pub fn read(option: impl Fn(&str) -> Option<String>, log: impl Fn(&str)) -> Settings {
        let mut settings = Settings::default();
        for name in NAMES {
            let variable = format!("XQOS_{}", name.to_uppercase());
            let from_environment = std::env::var_os(&variable).map(|value| value.to_string_lossy().into_owned());
            // SAFETY: this runs while the server loads the object, when no other thread reads the environment yet.
            unsafe { std::env::remove_var(&variable) };
            let Some(value) = option(name).or(from_environment) else { continue };
            if settings.apply(name, &value).is_none() {
                log(&format!("{variable}={value} is not valid; the default is used"));
            }
        }
        settings
    }

    fn apply(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "policy" => self.policy = PolicyKind::from_name(value)?,
            "slice_us" => self.parameters.slice_ns = number(value, POLICY_SLICE.all())? * 1000,
            "max_utilization_ppm" => {
                self.parameters.max_utilization_ppm = number(value, MAX_UTILIZATION.all())? as u32;
            }
            "desktop_share_ppm" => self.desktop_share_ppm = number(value, DESKTOP.all())? as u32,
            "contention" => self.contention = ContentionMode::from_name(value)?,
            "groups" => self.grouping = Grouping::from_name(value)?,
            "chunk_us" => self.chunk_ns = number(value, CHUNK_RANGE_US)? * 1000,
            "grab_limit_ms" => self.grab_limit_ns = number(value, 0..=3_600_000)? * 1_000_000,
            "cut_us" if value == "0" => self.part_ns = 0,
            "cut_us" => self.part_ns = number(value, CUT.all())? * 1000,
            "test_cut" if value == "always" => (self.cuts_always, self.part_ns) = (true, 250_000),
            "test_fault" => self.fault = Some(parse_fault(value)?),
            _ => return None,
        }
        Some(())
    }
}

fn number(value: &str, range: RangeInclusive<u32>) -> Option<u64> {
    value.parse().ok().filter(|number| range.contains(number)).map(u64::from)
}

fn parse_fault(value: &str) -> Option<PlannedFault> {
    let (place, count) = value.split_once(':')?;
    let place = FaultPlace::from_name(place)?;
    Some(PlannedFault { place, count: count.parse().ok()? })
}
