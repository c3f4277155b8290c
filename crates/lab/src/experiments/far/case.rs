// SPDX-License-Identifier: MIT
//! The definition of a cell: the program that is started, the transport of X, and the link.

use crate::program;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_wire::link::Side;

/// Declares an enum, the list of its values in the order of the tables, and the facts about each.
macro_rules! declare {
    ($(#[$doc:meta])* $kind:ident: $facts:ty; $($name:ident => $fact:expr,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub(in crate::experiments) enum $kind { $($name),* }

        impl $kind {
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            fn facts(self) -> $facts {
                match self { $(Self::$name => $fact,)* }
            }
        }
    };
}

/// A clock that shows a text instead of the time. Only the fonts differ.
macro_rules! text {
    ($($option:literal)*) => {
        &["env", "LC_ALL=C", "xclock", "-digital", "-update", "3600", "-strftime",
          "The quick brown fox jumps over the lazy dog. 0123456789 THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
          $($option),*]
    };
}

declare! {
    /// Title and command. Nothing may blink, because a program with a blinking cursor is never quiet.
    Program: (&'static str, &'static [&'static str]);
    Xterm => ("xterm", &["xterm", "-e", "sleep", "1000"]),
    Gtk => ("gtk3-demo", &["gtk3-demo"]),
    Emacs => ("emacs", &["emacs", "-Q", "--eval", "(blink-cursor-mode 0)"]),
    Qt => ("speedcrunch", &["speedcrunch"]),
    Chromium => ("chromium", &["chromium", "--no-sandbox", "--no-first-run", "--app=about:blank"]),
    Files => ("pcmanfm", &["pcmanfm", "--no-desktop"]),
    Office => ("gnumeric", &["gnumeric"]),
    Gtk4 => ("gtk4-demo", &["gtk4-demo"]),
    Qt6 => ("qt6ct", &["qt6ct"]),
    Session => ("Xfce session", &["dbus-run-session", "xfce4-session"]),
    CoreText => ("text, core fonts", text!("-norender" "-fn" "fixed")),
    ClientText => ("text, client-side fonts", text!("-render" "-face" "Monospace-10")),
    Background => ("background", &["xqos-bench", "act", "\"background\""]),
}

impl Program {
    /// The programs that are started over all transports.
    pub const MAIN: [Program; 4] = [Program::Xterm, Program::Gtk, Program::Emacs, Program::Qt];

    pub fn title(self) -> &'static str {
        self.facts().0
    }

    pub fn command(self) -> &'static [&'static str] {
        self.facts().1
    }

    fn needs(self) -> &'static [&'static str] {
        match self {
            Program::Session => &["dbus-run-session", "xfce4-session", "xfwm4", "xfce4-panel", "xfdesktop"],
            Program::CoreText | Program::ClientText => &["xclock"],
            Program::Background => &[],
            _ => &self.command()[..1],
        }
    }
}

const SSH: &[&str] = &["sshd", "ssh", "ssh-keygen", "xauth"];

declare! {
    /// How X is carried from the program to its server: title, style in charts, and programs. `taint` lets nxproxy
    /// answer GetInputFocus itself. At a first start, near knows nothing of the program. `xqos ssh` has strict order.
    Route: (&'static str, &'static str, &'static [&'static str]);
    Raw => ("raw X", "stock", &[]),
    SshC => ("ssh -C -Y", "smart", SSH),
    Nx => ("nxproxy", "fair", &["nxproxy"]),
    NxTaint => ("nxproxy taint", "cbs", &["nxproxy"]),
    Ssh => ("ssh -Y", "classic", SSH),
    FirstStrict => ("first start, strict", "fair", &[]),
    FirstRelaxed => ("first start, relaxed", "reserved", &[]),
    Strict => ("near, strict", "fair", &[]),
    Relaxed => ("near, relaxed", "reserved", &[]),
    ThroughSsh => ("xqos ssh", "classic", SSH),
}

impl Route {
    pub fn title(self) -> &'static str {
        self.facts().0
    }

    /// No chart has two transports with the same style.
    pub fn look(self) -> &'static str {
        self.facts().1
    }

    pub fn is_near(self) -> bool {
        self.is_first() || matches!(self, Route::Strict | Route::Relaxed | Route::ThroughSsh)
    }

    pub fn is_first(self) -> bool {
        matches!(self, Route::FirstStrict | Route::FirstRelaxed)
    }
}

/// The link between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) struct Line {
    pub kbit_per_s: u64,
    /// One-way delay.
    pub delay_us: u64,
}

impl Line {
    pub const RATES: [u64; 6] = [1_000_000, 100_000, 10_000, 1_000, 100, 10];
    pub const DELAYS: [u64; 4] = [100, 1_000, 10_000, 100_000];
    /// Starts over all other lines are predicted from a capture of raw X over this one.
    pub const KNOWN: Line = Line { kbit_per_s: 100_000, delay_us: 100 };

    pub fn all() -> impl Iterator<Item = Line> {
        Line::RATES.into_iter().flat_map(Line::by_delay)
    }

    pub fn by_delay(kbit_per_s: u64) -> [Line; 4] {
        Line::DELAYS.map(|delay_us| Line { kbit_per_s, delay_us })
    }

    /// True if both machines are idle nearly all the time, because the link is slow.
    pub fn is_slow(self) -> bool {
        self.kbit_per_s <= 100 || self.delay_us >= 100_000
    }

    pub fn title(self) -> String {
        let rate = self.kbit_per_s;
        let (rate, unit) = match rate {
            1_000_000.. => (rate / 1_000_000, "Gb/s"),
            1_000.. => (rate / 1_000, "Mb/s"),
            _ => (rate, "kb/s"),
        };
        format!("{rate} {unit} / {}", self.delay_title())
    }

    pub fn delay_title(self) -> String {
        format!("{} ms", self.delay_us as f64 / 1000.0)
    }

    /// A program is quiet after this time without a packet: 2 s, a round trip, and the transmission time of four full
    /// packets, since two of them may wait for one acknowledgement.
    pub fn silence(self) -> Duration {
        let packets_us = 4 * 1500 * 8 * 1000 / self.kbit_per_s;
        Duration::from_secs(2) + Duration::from_micros(2 * self.delay_us + packets_us)
    }
}

/// The place where X packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) enum Capture {
    /// At the program. Shows what the program waits for, including replies from a proxy on its side of the link.
    AtProgram,
    /// At the server. Shows what a user waits for. Only here can all transports be compared: at the program, X does not
    /// cross a network to reach `xqos near`.
    AtServer,
    /// At a server on the same machine as the program.
    Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) struct Case {
    pub program: Program,
    pub way: Route,
    pub line: Line,
    pub watched: Capture,
    pub turn: u32,
}

impl Case {
    pub fn title(self) -> String {
        let line = if self.watched == Capture::Local { "local".to_owned() } else { self.line.title() };
        format!("{}, {}, {line}", self.program.title(), self.way.title())
    }

    /// The end where packets are captured, and whether X uses the loopback interface there.
    pub fn capture(self) -> (Side, bool) {
        match self.watched {
            Capture::AtProgram => (Side::Client, self.way != Route::Raw),
            Capture::AtServer => {
                let is_plain = self.way == Route::Raw || self.way.is_near() && self.way != Route::ThroughSsh;
                (Side::Server, !is_plain)
            }
            Capture::Local => (Side::Server, true),
        }
    }

    /// A session starts one program after the other, with pauses.
    pub fn silence(self) -> Duration {
        const PAUSE: Duration = Duration::from_secs(6);
        self.line.silence() + if self.program == Program::Session { PAUSE } else { Duration::ZERO }
    }

    /// True if keys are pressed after the start: not with delays below 10 ms, where all answers arrive within a frame.
    pub fn has_work(self) -> bool {
        self.watched == Capture::AtServer && self.way != Route::NxTaint && self.line.delay_us >= 10_000
    }

    /// Approximate duration of the cell: the program's start, its bytes and round trips, the silence, and the work.
    pub fn estimate(self, limit: Duration) -> Duration {
        const START_S: f64 = 3.0;
        const WORK_S: f64 = 15.0;
        const BYTES: f64 = 60_000.0;
        let round_trips = if self.way.is_near() { 40.0 } else { 250.0 };
        let waiting_s = round_trips * 2.0 * self.line.delay_us as f64 / 1e6;
        let sending_s = BYTES * 8.0 / (self.line.kbit_per_s as f64 * 1e3);
        let shown_s = (waiting_s + sending_s).min(limit.as_secs_f64());
        let work_s = if self.has_work() { WORK_S } else { 0.0 };
        Duration::from_secs_f64(START_S + shown_s + work_s) + self.silence()
    }

    /// Returns the name of a required program that is not installed.
    pub fn missing(self) -> Option<String> {
        let mut needs = self.program.needs().iter().chain(self.way.facts().2);
        needs.find_map(|program| program::find(program).err()).map(|missing| missing.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_outlasts_the_packets_of_a_slow_line() {
        let silence = |kbit_per_s, delay_us| Line { kbit_per_s, delay_us }.silence().as_millis();
        assert_eq!((silence(100_000, 100), silence(10, 100_000)), (2000, 7000));
    }
}
