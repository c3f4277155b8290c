// SPDX-License-Identifier: MIT
//! Tests that man pages are named after the commands that users type.

use crate::fixture::{Folder, ended, xqos};

#[test]
fn every_command_has_a_man_page() {
    let folder = Folder::new("bench-man");
    let told = ended(xqos().arg("man").arg(&folder.path)).with(0);
    for page in ["xqos-bench", "xqos-bench-list", "xqos-bench-run", "xqos-bench-report", "xqos-bench-compare"] {
        let page = folder.path.join(format!("{page}.1"));
        assert!(page.is_file() && told.out.contains(page.to_str().unwrap()), "{} is missing", page.display());
    }
}
