// SPDX-License-Identifier: MIT
//! Cookies whose clients the X server restricts, with its SECURITY extension, as for `ssh -X`.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use xqos_near::setup::Cookie;
use xqos_sys as sys;

/// Seconds without a client after which the server forgets the cookie.
const LIFETIME: &str = "3600";

/// Asks the server for a cookie. The folder is for xauth's file.
pub fn cookie(display: &str, folder: &Path) -> Result<Cookie> {
    let xauth = |words: &[&str]| {
        let mut command = Command::new("xauth");
        // A signal must be able to end xauth while the server does not answer.
        sys::unblock_signals_in(command.arg("-f").arg(folder.join("untrusted")).args(words));
        command.output().context("--untrusted needs the program xauth on this side: install it")
    };
    let generated = xauth(&["generate", display, ".", "untrusted", "timeout", LIFETIME])?;
    let listed = xauth(&["list"])?;
    match String::from_utf8_lossy(&listed.stdout).split_whitespace().last().and_then(parse) {
        Some(secret) if generated.status.success() => Ok(Cookie::magic(secret)),
        _ => {
            let said = String::from_utf8_lossy(&generated.stderr);
            let said = said.trim().lines().last().unwrap_or("no reason given").trim();
            bail!("--untrusted needs an X server with the extension SECURITY: {said}")
        }
    }
}

fn parse(hex: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(hex, 16).ok().filter(|_| hex.len() == 32).map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_32_hexadecimal_digits() {
        assert_eq!(parse("00ff00ff00ff00ff00ff00ff00ff00ff"), Some([0, 255].repeat(8).try_into().unwrap()));
        assert_eq!((parse("00"), parse("MIT-MAGIC-COOKIE-1"), parse("")), (None, None, None));
    }
}
