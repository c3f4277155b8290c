// SPDX-License-Identifier: MIT
//! Runs commands of README and the documents exactly as written. All other commands are only parsed, by the tests in
//! each program's `main`.

#[allow(dead_code, reason = "each program's tests use some of the checks")]
#[path = "../../../../ground/cli/tests/support/checks.rs"]
mod checks;

use crate::fixture::{Folder, Server, ended};
use std::fs;
use std::path::Path;

/// Commands in order: later ones use the files of earlier ones.
const RUN: [&str; 17] = [
    "xqos doctor",
    "xqos list",
    "xqos run --reserve 3ms/10ms -- mpv film.mkv",
    "xqos run --reserve 5ms/50ms --hard -- noisy-app",
    "xqos policy",
    "xqos policy smart",
    "xqos policy fair",
    "xqos policy --expose-pacing 40ms --min-fps 20",
    "xqos policy --expose-pacing off",
    "xqos policy --desktop off",
    "xqos rules check",
    "xqos rules dry-run",
    "xqos trace record --time 10s desk.trace",
    "xqos trace stats hiccup.trace",
    "xqos trace export hiccup.trace hiccup.html",
    "xqos trace export desk.trace fleet.parquet",
    "xqos replay --policy stock hiccup.trace",
];

#[test]
fn commands_of_the_documents_work() {
    let (server, folder) = (Server::served(&[]), Folder::new("documents"));
    for program in ["mpv", "noisy-app"] {
        xqos_testkit::executable(&folder.path.join(program), b"#!/bin/sh\nexec xdpyinfo\n");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let path = format!("{}:{}", folder.path.display(), std::env::var("PATH").unwrap());
    let _clients = [server.client(&["xeyes"]), server.client(&["x11perf", "-rect10", "-repeat", "100000"])];
    for shown in RUN {
        let arguments = checks::arguments(&root, shown).unwrap_or_else(|| panic!("no document has '{shown}'"));
        let mut command = server.xqos(&[]);
        ended(command.args(arguments).current_dir(&folder.path).env("PATH", &path)).with(0);
        if shown.ends_with("desk.trace") {
            // No long wait ends a recording here, so the recording with a time limit also serves as the other file.
            fs::copy(folder.path.join("desk.trace"), folder.path.join("hiccup.trace")).unwrap();
        }
    }
}
