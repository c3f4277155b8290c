// SPDX-License-Identifier: MIT
//! Finds the process that serves a display: the one that listens on its socket.

use crate::displays::{Displays, is_server_name};
use crate::error::{Result, bail, refused};
use crate::rules::process::exe;
use xqos_sys as sys;
use xqos_x11::display::local_number;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedServer {
    pub pid: i32,
    pub program: String,
    pub display: Option<u32>,
}

impl AttachedServer {
    /// `word` is a pid or a display such as `:7`. If it is empty, finds the server of DISPLAY, or else the only server.
    pub fn find(word: &str, display: Option<&str>) -> Result<AttachedServer> {
        // Only root can access the kernel's trace and any server's descriptors.
        if sys::effective_ids().0 != 0 {
            bail!("watching a server without xqos needs the kernel's trace, which only root may read: use sudo");
        }
        let from_environment = std::env::var("DISPLAY").ok();
        let word = if word.is_empty() { display.or(from_environment.as_deref()).unwrap_or("") } else { word };
        if word.is_empty() {
            return the_only_one();
        }
        if let Some(number) = local_number(word) {
            let found = servers().into_iter().find(|server| server.display == Some(number));
            return found.ok_or_else(|| refused!("no process of this machine serves the display :{number}"));
        }
        match word.rsplit_once(':') {
            Some(("" | "unix", _)) => bail!("{word} is not a display: write it as :7"),
            Some(_) => bail!("{word} is on another machine: only a local server can be watched"),
            None => {
                let pid: i32 =
                    word.parse().map_err(|_| refused!("{word} is neither a pid nor a display such as :7"))?;
                let found = servers().into_iter().find(|server| server.pid == pid);
                found.ok_or_else(|| refused!("process {pid} serves no display"))
            }
        }
    }
}

fn the_only_one() -> Result<AttachedServer> {
    let mut servers = servers();
    match servers.len() {
        0 => bail!("no X server is running on this machine"),
        1 => Ok(servers.remove(0)),
        _ => {
            let names: Vec<String> =
                servers.iter().filter_map(|server| Some(format!(":{} ({})", server.display?, server.pid))).collect();
            bail!("there are several X servers: choose one of {}", names.join(", "))
        }
    }
}

/// The servers, one for each display. A compositor that listens on behalf of Xwayland is not a server.
fn servers() -> Vec<AttachedServer> {
    let displays = Displays::read();
    let server = |display: u32| {
        let listeners = displays.listeners(display).into_iter().rev();
        let targets = listeners.map(|pid| AttachedServer { pid, program: program(pid), display: Some(display) });
        // `max_by_key` returns the last of several servers, which has the lowest pid.
        targets.max_by_key(|target| is_server_name(&target.program))
    };
    displays.numbers().into_iter().filter_map(server).collect()
}

fn program(pid: i32) -> String {
    exe(pid).map(|path| sys::last_part(&path).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_target_is_refused_with_an_explanation() {
        if sys::effective_ids().0 != 0 {
            assert!(AttachedServer::find(":7", None).unwrap_err().to_string().contains("sudo"));
            return;
        }
        for (word, said) in [
            ("far:0", "another machine"),
            (":x", "is not a display"),
            ("x", "neither a pid nor"),
            ("1", "serves no display"),
            (":64999", "serves the display :64999"),
        ] {
            let error = format!("{:#}", AttachedServer::find(word, None).unwrap_err());
            assert!(error.contains(said), "{word}: {error}");
        }
    }
}
