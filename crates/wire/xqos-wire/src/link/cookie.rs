// SPDX-License-Identifier: MIT
//! Gives a common cookie to the program and to the X server at the other end of a link.
//!
//! To the server, the program is a client on another machine, which needs a cookie to connect. Commands that control
//! access themselves are not changed. Commands other than X servers are not changed either: a relay, for example,
//! leads to a display that has a different cookie.

use anyhow::{Context, Result};
use std::path::Path;
use xqos_near::setup::Cookie;
use xqos_wire::link::Side;
use xqos_wire::relay::authority::{Authority, secret};

const SERVERS: [&str; 8] = ["X", "Xorg", "Xvfb", "Xephyr", "Xnest", "Xvnc", "Xtigervnc", "Xwayland"];
/// If a server's command has one of these options, it controls access itself.
const ACCESS: [&str; 2] = ["-ac", "-auth"];
/// If a command contains one of these characters, an appended option could become part of another command.
const SHELL: [char; 10] = ['|', '&', ';', '<', '>', '(', ')', '`', '#', '\n'];

/// Writes a file with a cookie for this display, if one of the servers takes a cookie.
pub fn make(number: u16, servers: &[String]) -> Result<Option<Authority>> {
    if !servers.iter().any(|server| takes_cookie(server)) {
        return Ok(None);
    }
    let make = || {
        let cookie = Cookie::magic(secret()?);
        Authority::make(number, Some(Side::Server.address()), &cookie.name, &cookie.data)
    };
    make().map(Some).context("cannot write the cookie for the X server: start the server with -ac")
}

/// The server's shell command, with the cookie file named by XAUTHORITY if the server takes a cookie.
pub fn with_cookie(server: &str) -> String {
    if takes_cookie(server) { format!("{server} -auth \"$XAUTHORITY\"") } else { server.to_owned() }
}

fn takes_cookie(server: &str) -> bool {
    let is_server = |word: &str| Path::new(word).file_name().is_some_and(|name| SERVERS.iter().any(|it| name == *it));
    let has = |is: &dyn Fn(&str) -> bool| server.split_whitespace().any(is);
    !server.contains(SHELL) && has(&is_server) && !has(&|word| ACCESS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x_server_without_access_options_is_given_the_cookie() {
        for server in ["Xvfb :7 -listen tcp", "exec /usr/bin/Xephyr :7", "xqos server -- Xtigervnc :7 -fp '/a b'"] {
            assert_eq!(with_cookie(server), format!("{server} -auth \"$XAUTHORITY\""));
        }
        for server in [
            "Xvfb :7 -ac",
            "Xvfb :7 -auth file",
            "Xvfb :7 & sleep 9",
            "socat TCP-LISTEN:6000,fork UNIX-CONNECT:/tmp/.X11-unix/X0",
            "python3 -m http.server 8000",
        ] {
            assert_eq!(with_cookie(server), server);
        }
    }
}
