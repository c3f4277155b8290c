// SPDX-License-Identifier: MIT
//! Tests which settings of sshd permit the forwarding of sockets, and the fallback of `xqos ssh`.

use super::{Far, with_program};
use crate::fixture::{Server, ended};
use std::process::Command;

const NO_X11: &str = "X11Forwarding no\nXAuthLocation /nowhere\n";
const NO_SOCKETS: &str = "does not forward sockets (AllowStreamLocalForwarding or AllowTcpForwarding): using ssh -Y";
const NO_DISPLAY: &str = "does not forward X11 either: sshd there needs X11Forwarding yes";

/// Shows that the program reaches the X server.
const PROGRAM: [&str; 3] = ["sh", "-c", "xdpyinfo > /dev/null; exit 3"];

#[test]
fn sockets_are_forwarded_unless_sshd_refuses() {
    let server = Server::stock();
    let remote = "AllowStreamLocalForwarding remote\nAllowTcpForwarding remote\nPermitOpen none\nPermitListen none";
    let settings = format!("{NO_X11}{remote}\nMaxSessions 1");
    let Some(far) = Far::start("ssh-sockets", &with_program(), &settings) else { return };
    assert_eq!(far.run(&server, &[], &PROGRAM).with(3).err, "");
}

#[test]
fn ssh_forwards_x11_if_sshd_refuses_to_forward_sockets() {
    let server = Server::stock();
    for (name, settings) in [
        ("no", "AllowStreamLocalForwarding no"),
        ("local", "AllowStreamLocalForwarding local"),
        ("tcp", "AllowTcpForwarding no"),
    ] {
        let Some(far) = Far::start(&format!("ssh-x11-{name}"), &with_program(), settings) else { return };
        let told = far.run(&server, &[], &PROGRAM).with(3);
        assert!(told.err.contains(NO_SOCKETS) && told.err.lines().count() == 1, "{told:#?}");
    }
    for (name, settings) in
        [("neither", "X11Forwarding no\nAllowStreamLocalForwarding no"), ("none", "DisableForwarding yes")]
    {
        let Some(far) = Far::start(&format!("ssh-x11-{name}"), &with_program(), settings) else { return };
        let told = far.run(&server, &[], &PROGRAM).with(1);
        assert!(told.err.contains(NO_SOCKETS) && told.err.contains(NO_DISPLAY), "{told:#?}");
    }
}

#[test]
fn text_of_the_login_shells_files_is_printed_once() {
    let noisy = "ForceCommand echo welcome; echo noise >&2; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let Some(far) = Far::start("ssh-noise", &with_program(), noisy) else { return };
    let server = Server::stock();
    for options in [&[][..], &["--copy"]] {
        let told = far.run(&server, options, &["echo", "done"]).with(0);
        assert_eq!((told.out.as_str(), told.err.as_str()), ("welcome\ndone\n", "noise\n"), "{options:?}");
    }
}

#[test]
fn the_servers_cookie_stays_on_this_side() {
    const COOKIE: &str = "00112233445566778899aabbccddeeff";
    let Some(far) = Far::start("ssh-cookie", &with_program(), NO_X11) else { return };
    let xauth = |name: &str, display: &str| {
        let file = far.folder.file(name);
        ended(Command::new("xauth").args(["-f", &file, "add", display, ".", COOKIE])).with(0);
        file
    };
    let server = Server::stock_with(&["-nolisten", "tcp", "-auth", &xauth("server", ":0")]);
    let own = xauth("own", &server.display);
    // All that the far side has about the display: the program's entries, and the session's folder.
    let script = "xdpyinfo > /dev/null && xauth list && cat /tmp/xqos-*/authority | od -An -v -tx1 | tr -d ' \\n'";
    let mut command = far.command(&server, &[], &["sh", "-c", script]);
    let told = ended(command.env("XAUTHORITY", &own)).with(0);
    assert!(told.out.contains("MIT-MAGIC-COOKIE-1") && !told.out.contains(COOKIE), "{told:#?}");
    let mut command = far.command(&server, &[], &["xdpyinfo"]);
    let told = ended(command.env("XAUTHORITY", "/nowhere")).with(1);
    assert!(told.err.contains("unable to open display"), "without the server's cookie there is no access: {told:#?}");
}

#[test]
fn an_untrusted_program_cannot_see_the_display_of_others() {
    let Some(far) = Far::start("ssh-untrusted", &with_program(), NO_X11) else { return };
    let server = Server::stock();
    let look = ["sh", "-c", "xdpyinfo | grep -c RENDER; xwd -root -silent > /dev/null"];
    assert_eq!(far.run(&server, &["--untrusted", "--trusted"], &look).with(0).out, "1\n");
    let told = far.run(&server, &["--untrusted"], &look).with(1);
    assert_eq!(told.out, "0\n", "{told:#?}");
    let Some(far) = Far::start("ssh-untrusted-x11", &with_program(), "AllowStreamLocalForwarding no") else { return };
    let told = far.run(&server, &["--untrusted"], &look).with(1);
    assert!(told.out == "0\n" && told.err.contains("using ssh -X"), "{told:#?}");
    let server = Server::stock_with(&["-nolisten", "tcp", "-extension", "SECURITY"]);
    far.run(&server, &["--untrusted"], &["true"]).failed_saying(&["extension SECURITY"]);
}
