// SPDX-License-Identifier: MIT
//! The programs whose starts are measured over a link.

use serde::{Deserialize, Serialize};

/// Who is started.
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
        match self {
            Program::Xterm => "xterm",
            Program::XtermFa => "xterm -fa",
            Program::Gtk => "gtk3-demo",
            Program::Qt => "speedcrunch",
            Program::Emacs => "emacs",
        }
    }

    /// Nothing that blinks: a cursor would never be quiet.
    pub fn command(self) -> &'static [&'static str] {
        match self {
            Program::Xterm => &["xterm", "-e", "sleep", "1000"],
            Program::XtermFa => &["xterm", "-fa", "Monospace", "-fs", "10", "-e", "sleep", "1000"],
            Program::Gtk => &["gtk3-demo"],
            Program::Qt => &["speedcrunch"],
            Program::Emacs => &["emacs", "-Q", "--eval", "(blink-cursor-mode 0)"],
        }
    }
}
