// SPDX-License-Identifier: MIT
//! Gives the program and the X server at the other end of a link a common cookie.
//!
//! The server sees the program as a client from another machine, and lets it in only with a cookie. A command that
//! controls access itself is left alone, and so is anything but an X server: a relay leads to a display with its own
//! cookies.

use anyhow::{Context, Result};
use std::path::Path;
use xqos_near::setup::Cookie;
use xqos_wire::capture::relay::authority::{Authority, secret};
use xqos_wire::link::Side;

const SERVERS: [&str; 8] = ["X", "Xorg", "Xvfb", "Xephyr", "Xnest", "Xvnc", "Xtigervnc", "Xwayland"];
/// Options with which a server's command controls access itself.
const ACCESS: [&str; 2] = ["-ac", "-auth"];
/// With one of these characters, an appended option may end up in another command.
const SHELL: [char; 10] = ['|', '&', ';', '<', '>', '(', ')', '`', '#', '\n'];

/// Writes a file with a cookie for this display, if one of the servers can be given it.
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

/// The server's command line for the shell, which takes the cookie's file from XAUTHORITY.
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
