// SPDX-License-Identifier: MIT
//! Compiles the shim with the X server's own headers, so that a change to the client record causes a compile error.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=shim");
    let flags = Command::new("pkg-config").args(["--cflags", "xorg-server"]).output();
    let flags = match flags {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => {
            panic!("the X server's headers are missing: run scripts/setup, or install pkg-config and xserver-xorg-dev")
        }
    };
    let mut build = cc::Build::new();
    build
        .files(["shim/client.c", "shim/cut.c"])
        .std("gnu11")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .extra_warnings(false);
    for flag in flags.split_whitespace() {
        build.flag(flag);
    }
    build.compile("xqos_shim");
    // Bind our object's uses of libc names to our functions. In a module, libc's functions would otherwise come first.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
