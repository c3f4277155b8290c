// SPDX-License-Identifier: MIT
//! Names of displays: `[PROTOCOL/][HOST]:NUMBER[.SCREEN]`, or the path of a socket, as libxcb reads them.

use alloc::borrow::Cow;
use alloc::format;

/// The same display in a form that x11rb reads as libxcb does. x11rb mistakes `unix:7` for the path of a socket, and
/// the brackets of `[::1]:7` for a part of the host's name.
pub fn plain(name: &str) -> Cow<'_, str> {
    if let Some(number) = name.strip_prefix("unix:") {
        return if number.starts_with(|first: char| first.is_ascii_digit()) {
            format!("unix/:{number}").into()
        } else {
            name.into()
        };
    }
    let host_at = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[host_at..].strip_prefix('[').and_then(|rest| rest.rsplit_once("]:")) {
        Some((host, number)) => format!("{}{host}:{number}", &name[..host_at]).into(),
        None => name.into(),
    }
}

/// The number of a display on this machine, unless it is named by its TCP address or by the path of its socket.
pub fn local_number(name: &str) -> Option<u32> {
    let (protocol, rest) = name.rsplit_once('/').unwrap_or(("", name));
    let (host, number) = rest.rsplit_once(':')?;
    let is_local = protocol == "unix" || protocol.is_empty() && matches!(host, "" | "unix");
    number.split('.').next().filter(|_| is_local)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rewritten_only_where_x11rb_needs_it() {
        for (name, expected) in [
            ("unix:7", "unix/:7"),
            ("unix:7.1", "unix/:7.1"),
            ("[::1]:7.1", "::1:7.1"),
            ("tcp/[fe80::1%eth0]:7", "tcp/fe80::1%eth0:7"),
        ] {
            assert_eq!(plain(name), expected);
        }
        for name in
            ["", ":7", ":7.1", "unix/:7", "far:0", "::1:7", "unix:/tmp/socket", "/tmp/[a]/socket.1", "[::1", "7"]
        {
            assert_eq!(plain(name), name);
        }
    }

    #[test]
    fn only_local_displays_have_a_number() {
        for name in [":7", "unix:7", ":7.1", "unix:7.0", "unix/:7", "unix/far:7"] {
            assert_eq!(local_number(name), Some(7), "{name}");
        }
        for name in
            ["far:7", "localhost:10", "[::1]:7", "tcp/localhost:7", "7", ":x", "", "/tmp/.X11-unix/X7", "unix:/x:7"]
        {
            assert_eq!(local_number(name), None, "{name}");
        }
    }
}
