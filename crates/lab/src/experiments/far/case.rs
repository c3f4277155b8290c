// SPDX-License-Identifier: MIT
//! The definition of a cell: the program that is started, the transport of X, and the link.

use crate::program;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_wire::link::Side;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) enum Program {
    Xterm,
    XtermFa,
    Gtk,
    Qt,
    Emacs,
}

impl Program {
    pub const ALL: [Program; 5] = [Program::Xterm, Program::Gtk, Program::XtermFa, Program::Emacs, Program::Qt];

    pub fn title(self) -> &'static str {
        self.facts().0
    }

    pub fn command(self) -> &'static [&'static str] {
        self.facts().1
    }

    /// Title and command. Nothing may blink, because a program with a blinking cursor is never quiet.
    fn facts(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Program::Xterm => ("xterm", &["xterm", "-e", "sleep", "1000"]),
            Program::XtermFa => ("xterm -fa", &["xterm", "-fa", "Monospace", "-fs", "10", "-e", "sleep", "1000"]),
            Program::Gtk => ("gtk3-demo", &["gtk3-demo"]),
            Program::Qt => ("speedcrunch", &["speedcrunch"]),
            Program::Emacs => ("emacs", &["emacs", "-Q", "--eval", "(blink-cursor-mode 0)"]),
        }
    }
}

/// How X is carried from the program to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::experiments) enum Route {
    Raw,
    Ssh,
    SshC,
    Nx,
    /// nxproxy with `taint`: it answers GetInputFocus itself.
    NxTaint,
    Strict,
    Relaxed,
    /// `xqos ssh`: near with strict order, over ssh -C -Y.
    ThroughSsh,
}

impl Route {
    /// All transports, in the order of the tables.
    pub const ALL: [Self; 8] =
        [Self::Raw, Self::SshC, Self::Nx, Self::NxTaint, Self::Ssh, Self::Strict, Self::Relaxed, Self::ThroughSsh];

    pub fn title(self) -> &'static str {
        self.facts().0
    }

    /// Style of the transport's line in charts. No experiment has two transports with the same style.
    pub fn look(self) -> &'static str {
        self.facts().1
    }

    fn facts(self) -> (&'static str, &'static str, &'static [&'static str]) {
        const SSH: &[&str] = &["sshd", "ssh", "ssh-keygen", "xauth"];
        match self {
            Route::Raw => ("raw X", "stock", &[]),
            Route::Ssh => ("ssh -Y", "classic", SSH),
            Route::SshC => ("ssh -C -Y", "smart", SSH),
            Route::Nx => ("nxproxy", "fair", &["nxproxy"]),
            Route::NxTaint => ("nxproxy taint", "cbs", &["nxproxy"]),
            Route::Strict => ("near, strict", "fair", &[]),
            Route::Relaxed => ("near, relaxed", "reserved", &[]),
            Route::ThroughSsh => ("xqos ssh", "classic", SSH),
        }
    }

    pub fn is_near(self) -> bool {
        matches!(self, Route::Strict | Route::Relaxed | Route::ThroughSsh)
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
    pub const RATES: [u64; 5] = [100_000, 10_000, 1_000, 100, 10];
    pub const DELAYS: [u64; 4] = [100, 1_000, 10_000, 100_000];
    pub const FASTEST: Line = Line { kbit_per_s: 100_000, delay_us: 100 };

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
        let rate = if rate >= 1000 { format!("{} Mb/s", rate / 1000) } else { format!("{rate} kb/s") };
        format!("{rate} / {}", self.delay_title())
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
            Capture::AtServer => (Side::Server, !matches!(self.way, Route::Raw | Route::Strict | Route::Relaxed)),
            Capture::Local => (Side::Server, true),
        }
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
        Duration::from_secs_f64(START_S + shown_s + work_s) + self.line.silence()
    }

    /// Returns the name of a required program that is not installed.
    pub fn missing(self) -> Option<String> {
        let mut needs = self.program.command().iter().take(1).chain(self.way.facts().2);
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
