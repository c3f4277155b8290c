// SPDX-License-Identifier: MIT
//! Opens a page in a real Chromium, if one is installed, and runs a script in it. The tests of each page include this
//! file. Any exception or console message of the page makes the test fail.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A script that precedes the page's own. Failed loads also count as errors, because pages load no other files.
const LISTENER: &str = "<script>{
    const all = [], complain = what => { all.push(what); document.documentElement.dataset.complaints = all.join('; '); };
    addEventListener('error', event => complain(event.message || 'not loaded: ' + event.target.outerHTML), true);
    addEventListener('unhandledrejection', event => complain(event.reason));
    for (const kind of ['error', 'warn']) console[kind] = (...words) => complain(words.join(' '));
}</script>";

/// A temporary folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the script in a page and returns the resulting HTML. The script reports results in the dataset of the
/// root element. The page sets `data-ready` when it is drawn. `None` if Chromium is not installed; the test is then
/// left out.
pub fn run_script(page: &[u8], script: &str) -> Option<String> {
    // Tests of the same process run at the same time.
    static PAGES: AtomicU32 = AtomicU32::new(0);
    let name = format!("xqos-page-{}-{}", std::process::id(), PAGES.fetch_add(1, Ordering::Relaxed));
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("page.html");
    let wait = "while (!document.documentElement.dataset.ready) await new Promise(go => setTimeout(go, 5));";
    let element = format!(
        "<script>(async () => {{ {wait} try {{ {script} }} catch (error) {{ console.error(error.stack); }} \
         document.documentElement.dataset.finished = \"true\"; }})();</script>"
    );
    let head = page.iter().position(|&byte| byte == b'\n').expect("a page begins with its doctype") + 1;
    let whole = [&page[..head], LISTENER.as_bytes(), &page[head..], element.as_bytes()].concat();
    std::fs::write(&file, whole).unwrap();
    let mut command = Command::new(xqos_testkit::program("chromium")?);
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]);
    command.args(["--virtual-time-budget=20000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.0.join("profile").display()));
    let done = command.arg(format!("file://{}", file.display())).output().unwrap();
    let seen = String::from_utf8_lossy(&done.stdout).into_owned();
    let root = root(&seen);
    assert!(root.contains("data-finished=\"true\""), "the page was not drawn, or the script failed: {root}");
    assert!(!root.contains("data-complaints"), "{root}");
    Some(seen)
}

/// The root element's tag with all attributes.
pub fn root(seen: &str) -> &str {
    &seen[..seen.find("<head").unwrap_or(seen.len().min(300))]
}
