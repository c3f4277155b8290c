// SPDX-License-Identifier: MIT
//! The command line without xqos in any server: usage, exit statuses, and messages about a stock server.

use crate::fixture::{Folder, Server, ended, xqos};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A library that can be preloaded into any program without effect: the C library itself.
fn harmless_module() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("libc.so"));
    library.expect("this program is linked to the C library").into()
}

#[test]
fn wrong_usage_ends_with_status_2_and_a_hint() {
    for (arguments, words) in [
        (&[][..], "Usage"),
        (&["reserve", "3ms/10ms"], "--pid"),
        (&["reserve", "--pid", "1", "--class", "x", "3ms/10ms"], "cannot be used with"),
        (&["reserve", "--pid", "1", "12ms/10ms"], "the budget of 12 ms is longer than the period of 10 ms"),
        (&["reserve", "--pid", "1", "3/10"], "write 3ms"),
        (&["reserve", "--pid", "0", "3ms/10ms"], "0 is not in"),
        (&["reserve", "--window", "zoo", "3ms/10ms"], "0x1c00007"),
        (&["release"], "--all"),
        (&["release", "--all", "--pid", "1"], "cannot be used with"),
        (&["weight", "--pid", "1", "0"], "from 0.01 to 100"),
        (&["priority", "--pid", "1", "1001"], "-1000..=1000"),
        (&["policy", "best"], "fair"),
        (&["policy", "--blocking", "soon"], "'observed'"),
        (&["policy", "--max-utilization", "90%"], "0.9"),
        (&["policy", "--max-utilization", "0.99"], "at most 0.95"),
        (&["policy", "--slice", "2s"], "from 0.1ms to 1s"),
        (&["server", "--slice", "10us", "--", "Xvfb"], "from 0.1ms to 1s"),
        (&["run", "--", "true"], "--reserve"),
        (&["run", "--hard", "--weight", "1", "--", "true"], "--reserve"),
        (&["run", "--soft=paper", "--weight", "1", "--", "true"], "--reserve"),
        (&["run", "--reserve", "3ms/10ms"], "PROGRAM"),
        (&["server"], "SERVER"),
        (&["rules"], "dry-run"),
        (&["rules", "test"], "FILE"),
        (&["explain"], "--pid"),
    ] {
        let ended = ended(xqos().args(arguments));
        assert_eq!(ended.status, 2, "{arguments:?}: {ended:#?}");
        assert!(ended.err.contains(words), "{arguments:?}: '{words}' is missing in\n{}", ended.err);
    }
}

#[test]
fn without_a_display_one_line_says_what_to_set() {
    for arguments in [
        &["list"][..],
        &["policy"],
        &["doctor"],
        &["reserve", "--pid", "1", "3ms/10ms"],
        &["release", "--all"],
        &["run", "--reserve", "3ms/10ms", "--", "true"],
        &["rules", "run"],
        &["rules", "off"],
        &["rules", "dry-run"],
        &["explain", "--pid", "1"],
    ] {
        ended(xqos().args(arguments)).failed_saying(&["DISPLAY is not set", "--display"]);
    }
}

#[test]
fn an_unreachable_display_is_named() {
    for arguments in [&["list"][..], &["doctor"], &["run", "--weight", "2", "--", "true"]] {
        let command = &mut xqos();
        ended(command.args(["--display", ":9987"]).args(arguments)).failed_saying(&[":9987", "check that it runs"]);
        ended(xqos().env("DISPLAY", ":9986").args(arguments)).failed_saying(&[":9986"]);
        ended(xqos().env("DISPLAY", "nonsense").args(arguments)).failed_saying(&["nonsense"]);
    }
}

#[test]
fn doctor_explains_why_a_wayland_session_cannot_be_served() {
    ended(xqos().env("WAYLAND_DISPLAY", "wayland-0").arg("doctor")).failed_saying(&["Wayland session", "Xephyr"]);
    let told = ended(xqos().env("WAYLAND_DISPLAY", "wayland-0").args(["doctor", "--json"])).with(1);
    let json: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(json["reachable"], false);
    assert!(json["advice"].as_str().unwrap().contains("Wayland"), "{json:#}");
}

#[test]
fn a_stock_server_is_recognised_and_advice_is_given() {
    let server = Server::stock();
    let told = server.ask(&["doctor"]).with(1);
    let pid = format!("pid {}", server.process.pid());
    for words in
        ["no: it runs without xqos", "yes: it exports all 15 symbols", "xqos server -- Xvfb -displayfd 1", &pid, "21."]
    {
        assert!(told.out.contains(words), "'{words}' is missing in\n{}", told.out);
    }
    let told = server.ask(&["doctor", "--json"]).with(1);
    let json: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(
        (&json["served"], &json["can_be_served"], &json["xwayland"]),
        (&false.into(), &true.into(), &false.into())
    );
    assert_eq!(json["pid"], server.process.pid());
    assert!(json["service"].is_null() && json["program"].as_str().unwrap().ends_with("Xvfb"), "{json:#}");
    for arguments in [
        &["list"][..],
        &["policy"],
        &["release", "--all"],
        &["reserve", "--pid", "1", "3ms/10ms"],
        &["run", "--reserve", "3ms/10ms", "--", "touch", "/nonexistent/it-ran"],
    ] {
        server.ask(arguments).failed_saying(&["runs without xqos", "xqos server -- Xvfb", "xqos doctor"]);
    }
}

#[test]
fn the_server_replaces_xqos_and_gets_module_and_settings() {
    let module = harmless_module();
    let say = "echo $$ $LD_PRELOAD $XQOS_POLICY $XQOS_SLICE_US $XQOS_MAX_UTILIZATION_PPM";
    let mut command = xqos();
    command.args(["server", "--policy", "smart", "--slice", "2ms", "--max-utilization", "0.8", "--module"]);
    command.arg(&module).args(["--", "sh", "-c", say]).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let expected = format!("{} {} smart 2000 800000\n", child.id(), module.canonicalize().unwrap().display());
    let told = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), expected, "the server has the pid of xqos");

    let mut command = xqos();
    command.env("XQOS_MODULE", &module).env("LD_PRELOAD", &module);
    let told = ended(command.args(["server", "--", "sh", "-c", "echo $LD_PRELOAD; echo ${XQOS_POLICY-unset}; exit 7"]));
    let preloaded = format!("{}:{}", module.display(), module.canonicalize().unwrap().display());
    assert_eq!(told.with(7).out, format!("{preloaded}\nunset\n"));
}

#[test]
fn a_server_that_cannot_be_started_is_refused() {
    let module = harmless_module();
    let start = |program: &str| ended(xqos().env("XQOS_MODULE", &module).args(["server", "--", program, ":77"]));
    start("Xnowhere").failed_saying(&["Xnowhere", "not in PATH"]);
    start("/etc/passwd").failed_saying(&["/etc/passwd is not a program"]);
    let told = start("/bin/true").with(0);
    assert!(told.err.contains("true is not an X server"), "{}", told.err);
    let folder = Folder::new("server");
    let unexporting = folder.path.join("Xtrue");
    xqos_testkit::executable(&unexporting, &fs::read("/bin/true").unwrap());
    let told = start(unexporting.to_str().unwrap()).with(0);
    assert!(told.err.contains("exports none of the 15 symbols"), "{}", told.err);
    assert!(told.err.contains("served through libc"), "{}", told.err);
    let no_module = ended(xqos().args(["server", "--module", "/nowhere/xqos.so", "--", "Xvfb"]));
    no_module.failed_saying(&["--module", "/nowhere/xqos.so"]);
    let no_module = ended(xqos().env("XQOS_MODULE", "/nowhere/xqos.so").args(["server", "--", "Xvfb"]));
    no_module.failed_saying(&["XQOS_MODULE", "/nowhere/xqos.so"]);
}

#[test]
fn a_setuid_server_is_warned_about() {
    // Our own setuid program gives no additional rights; another user's would, but only root can create such a program.
    let folder = Folder::new("setuid");
    let program = folder.path.join("server");
    xqos_testkit::executable(&program, &fs::read("/bin/true").unwrap());
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() {
        return xqos_testkit::left_out("only root can give a file to another user");
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let told = ended(xqos().env("XQOS_MODULE", harmless_module()).args(["server", "--"]).arg(&program)).with(0);
    assert!(told.err.contains("ignores LD_PRELOAD") && told.err.contains("xorg.conf.d"), "{}", told.err);
}

#[test]
fn every_command_has_a_man_page_that_passes_mandoc() {
    let folder = Folder::new("man");
    let told = ended(xqos().arg("man").arg(&folder.path)).with(0);
    let pages = ["xqos", "xqos-server", "xqos-run", "xqos-reserve", "xqos-list", "xqos-doctor"];
    for page in pages.map(|page| folder.path.join(format!("{page}.1"))) {
        assert!(page.is_file() && told.out.contains(page.to_str().unwrap()), "{} is missing", page.display());
    }
    let pages: Vec<_> = fs::read_dir(&folder.path).unwrap().map(|page| page.unwrap().path()).collect();
    if let Some(mandoc) = xqos_testkit::program("mandoc") {
        let lint = Command::new(mandoc).args(["-Tlint", "-Wwarning"]).args(&pages).output().unwrap();
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
    }
    let list = fs::read_to_string(folder.path.join("xqos-list.1")).unwrap();
    assert!(list.contains(".SH JSON") && list.contains(".SH COLUMNS"), "{list}");
    ended(xqos().args(["man", "/proc/nowhere"])).failed_saying(&["/proc/nowhere"]);
}

#[test]
fn completions_are_written_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let told = ended(xqos().args(["completions", shell])).with(0);
        assert!(told.out.contains("xqos") && told.out.contains("reserve"), "{shell}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let mut child = xqos().args(["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let told = child.wait_with_output().unwrap();
    assert!(told.status.success() && told.stderr.is_empty(), "{told:?}");
}

#[test]
fn help_has_examples_and_hides_packaging_commands() {
    let told = ended(xqos().arg("--help")).with(0);
    for word in ["Examples:", "doctor", "budget / period", "Exit status"] {
        assert!(told.out.contains(word), "{word}");
    }
    assert!(!told.out.contains("completions") && !told.out.contains("  man "), "hidden commands are not shown");
    let help = ended(xqos().args(["policy", "--help"])).with(0).out;
    for policy in ["stock", "classic", "smart", "fair", "fixed", "smart-strict"] {
        assert!(help.contains(&format!("- {policy}:")), "{policy} is not explained in\n{help}");
    }
}
