//! Pages are looked at by a real Chromium, where there is one.

use std::path::PathBuf;
use std::process::Command;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What Chromium makes of a page, as HTML, with a script that looks around in it; nothing where there is no Chromium.
pub fn looked_at(page: &[u8], look: &str) -> Option<String> {
    let folder = Folder(std::env::temp_dir().join(format!("xqos-page-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("page.html");
    let wait = "while (!document.documentElement.dataset.ready) await new Promise(go => setTimeout(go, 5));";
    let script = format!(
        "<script>(async () => {{ {wait} {look} document.documentElement.dataset.looked = \"true\"; }})();</script>"
    );
    std::fs::write(&file, [page, script.as_bytes()].concat()).unwrap();
    for program in ["chromium", "chromium-browser", "google-chrome"] {
        let mut command = Command::new(program);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]);
        command.args(["--virtual-time-budget=20000", "--dump-dom"]);
        command.arg(format!("--user-data-dir={}", folder.0.join("profile").display()));
        if let Ok(done) = command.arg(format!("file://{}", file.display())).output() {
            return Some(String::from_utf8_lossy(&done.stdout).into_owned());
        }
    }
    None
}
