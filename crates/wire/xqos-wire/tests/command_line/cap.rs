// SPDX-License-Identifier: MIT
//! Tests `xqos cap` with a stock server: captures of programs and of interfaces, and rewritten captures.

use crate::fixture::{Ended, Folder, Running, Server, ended, eventually, is_ignored, kill, xqos};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use x11rb::connection::Connection;
use x11rb::protocol::shm::ConnectionExt as _;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateGCAux, ImageFormat};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

/// The JSON report of `xqos analyse` about a capture.
pub fn analysed(file: &str) -> Value {
    let told = ended(xqos().args(["analyse", "--json", file])).with(0);
    serde_json::from_str(&told.out).unwrap()
}

pub fn count(report: &Value, kind: &str, name: &str) -> u64 {
    let connections = report["connections"].as_array().unwrap();
    connections.iter().map(|connection| connection[kind][name]["count"].as_u64().unwrap_or(0)).sum()
}

pub fn has(file: &str, text: &str) -> bool {
    fs::read(file).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
}

/// A running capture, and the display of its program.
pub struct Capture {
    pub running: Running,
    pub file: String,
    display: String,
}

impl Capture {
    pub fn start(server: &Server, folder: &Folder, options: &[&str]) -> Capture {
        let (file, display) = (folder.file("capture"), folder.file("display"));
        let script = format!("echo $DISPLAY > {display}.new; mv {display}.new {display}; exec sleep 1000");
        let mut command = server.xqos(&["cap", "-o", &file]);
        command.args(options).args(["--", "sh", "-c", &script]).stderr(Stdio::piped());
        let running = Running::start(&mut command);
        let display = eventually("the program has a display", || fs::read_to_string(&display).ok());
        Capture { running, file, display: display.trim().to_owned() }
    }

    pub fn connect(&self) -> RustConnection {
        RustConnection::connect(Some(&self.display)).unwrap().0
    }

    pub fn end(self) -> Ended {
        self.running.signal("TERM");
        self.running.ended().with(128 + 15)
    }
}

#[test]
fn wrong_usage_says_what_to_write() {
    for (arguments, words) in [
        (&["-o", "x"][..], "PROGRAM"),
        (&["-r", "y"], "--output"),
        (&["--scrub", "--", "true"], "--output"),
        (&["-o", "x", "-i", "lo", "--", "true"], "cannot be used with"),
        (&["-o", "x", "-r", "y", "-i", "lo"], "cannot be used with"),
        (&["-o", "x", "--filter", "tcp", "--", "true"], "cannot be used with"),
        (&["-o", "x", "--duration", "5s", "--", "true"], "cannot be used with"),
        (&["-o", "x", "-i", "lo", "--duration", "5"], "write 5ms"),
        (&["-o", "x", "-i", "lo", "--port", "x"], "such as 6010"),
        (&["-o", "x", "--snaplen", "10", "--", "true"], "10 is not in"),
        (&["-o", "x", "--start-on", "tea", "--", "true"], "write now, window"),
        (&["-o", "x", "--stop-on", "quiet", "--", "true"], "quiet=2s"),
        (&["-o", "x", "--start-on", "message=CreateWindo", "--", "true"], "such as CreateWindow"),
        (&["-o", "x", "--repeat", "--", "true"], "--stop-on"),
        (&["-o", "x", "--stop-on", "key", "--keep", "3", "--", "true"], "--repeat"),
        (&["--stop-on", "key", "--repeat", "--keep", "3", "--", "true"], "--output"),
        (&["-o", "x", "--stop-on", "key", "--repeat", "--keep", "0", "--", "true"], "non-zero"),
        (&["-o", "x", "--scrub", "--keep-cookie", "--", "true"], "cannot be used with"),
    ] {
        let ended = ended(xqos().arg("cap").args(arguments)).with(2);
        assert!(ended.err.contains(words), "{arguments:?}: '{words}' is missing in\n{}", ended.err);
    }
}

#[test]
fn failures_are_reported_in_one_line() {
    let folder = Folder::new("cap-refused");
    let file = folder.file("capture");
    let cap = |arguments: &[&str]| ended(xqos().args(["cap", "-o", &file]).args(arguments));
    cap(&["--", "true"]).failed_saying(&["DISPLAY is not set", "--display"]);
    cap(&["--display", ":9985", "--", "true"]).failed_saying(&[":9985", "check that it runs"]);
    cap(&["--display", "nonsense", "--", "true"]).failed_saying(&["nonsense", "like :0"]);
    cap(&["-r", "/etc/passwd"]).failed_saying(&["/etc/passwd", "neither a pcap nor a pcapng"]);
    cap(&["-r", "/nowhere/capture"]).failed_saying(&["/nowhere/capture"]);
    cap(&["-r", "/nowhere/capture", "--start-on", "signal"]).failed_saying(&["a file has no signals"]);
    assert!(!Path::new(&file).exists(), "nothing was recorded");
    fs::write(&file, "before").unwrap();
    let server = Server::stock();
    server.ask(&["cap", "-o", &file, "--", "true"]).failed_saying(&[&file, "already exists: remove it"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before", "the existing file is kept");
    fs::remove_file(&file).unwrap();
    server.ask(&["cap", "-o", &file, "--", "/nowhere/program"]).failed_saying(&["/nowhere/program"]);
    assert!(!Path::new(&file).exists(), "nothing was recorded");
    server.ask(&["cap", "-o", "/nowhere/file", "--", "true"]).failed_saying(&["/nowhere/file"]);
    server.ask(&["cap", "-q", "-o", &file, "--", "xdpyinfo"]).with(0);
    let copy = folder.file("copy");
    fs::hard_link(&file, &copy).unwrap();
    ended(xqos().args(["cap", "-r", &file, "-o", &copy])).failed_saying(&["while it is read"]);
    let full = server.ask(&["cap", "-o", "/dev/full", "--", "sh", "-c", "xdpyinfo > /dev/null; exit 7"]);
    full.failed_saying(&["/dev/full is incomplete", "No space left"]);
}

#[test]
fn the_exit_status_is_the_programs_and_children_are_captured() {
    let (server, folder) = (Server::stock(), Folder::new("cap-status"));
    let file = folder.file("capture");
    let run = |script: &str| {
        let _ = fs::remove_file(&file);
        server.ask(&["cap", "-o", &file, "--", "sh", "-c", script])
    };
    run("exit 7").with(7);
    run("kill -9 $$").with(137);
    let told = run("xdpyinfo > /dev/null & xlsatoms > /dev/null & wait; exit 3").with(3);
    assert!(told.err.contains("2 connections") && told.err.contains("0 dropped"), "{}", told.err);
    assert_eq!(told.err.lines().count(), 1, "{}", told.err);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "only the user can read it");
    // Processes that a launcher leaves behind connect after the launcher has exited.
    run("(sleep 0.3; xterm -e sleep 0.3) &").with(0);
    let report = analysed(&file);
    assert_eq!(count(&report, "requests", "MapWindow"), 1, "the window of xterm");
    assert_eq!(report["connections"][0]["program"], "xterm", "the file contains the program's name");
}

#[test]
fn every_request_is_counted() {
    let (server, folder) = (Server::stock(), Folder::new("cap-count"));
    let capture = Capture::start(&server, &folder, &[]);
    let client = capture.connect();
    (0..1000).for_each(|_| _ = client.no_operation().unwrap());
    for number in 0..7 {
        client.intern_atom(false, format!("XQOS_{number}").as_bytes()).unwrap().reply().unwrap();
    }
    let (root, pixmap, gc) =
        (client.setup().roots[0].root, client.generate_id().unwrap(), client.generate_id().unwrap());
    client.create_pixmap(24, pixmap, root, 2048, 1024).unwrap();
    client.create_gc(gc, pixmap, &CreateGCAux::new()).unwrap();
    let image = vec![0x5a; 2048 * 1024 * 4];
    client.put_image(ImageFormat::Z_PIXMAP, pixmap, gc, 2048, 1024, 0, 0, 0, 24, &image).unwrap();
    let back = client.get_image(ImageFormat::Z_PIXMAP, pixmap, 0, 0, 2048, 1, !0).unwrap().reply().unwrap();
    assert!(back.data.chunks(4).all(|pixel| pixel[..3] == [0x5a; 3]), "the image is unchanged");
    client.sync().unwrap();
    drop(client);
    let file = capture.file.clone();
    capture.end();
    let report = analysed(&file);
    let counts = ["NoOperation", "InternAtom", "CreatePixmap", "PutImage"].map(|name| count(&report, "requests", name));
    assert_eq!(counts, [1000, 7, 1, 1]);
    assert_eq!(report["connections"][0]["requests"]["PutImage"]["bytes"], 2048 * 1024 * 4 + 28);
    assert_eq!(count(&report, "replies", "InternAtom"), 7);
    assert_eq!(report["connections"][0]["missing_bytes"], 0);
}

#[test]
fn without_a_file_each_message_is_printed() {
    let server = Server::stock();
    let told = server.ask(&["cap", "--", "sh", "-c", "xlsatoms > /dev/null; exit 4"]).with(4);
    let lines = |words: &str| told.out.lines().filter(|line| line.contains(words)).count();
    assert!(lines(" 1 > 2 Request ") == 1 && lines("name \"PRIMARY\"") == 1, "{}", told.out);
    assert_eq!(lines("Request GetAtomName"), lines("Reply GetAtomName") + lines("Error "));
    assert!(lines("program xlsatoms") == 1 && lines(" 1 ended ") == 1, "{}", told.out);
    assert!(told.err.contains("bytes\n") && !told.err.contains("/dev/null"), "{}", told.err);
    let told = server.ask(&["cap", "-q", "--stop-on", "window", "--", "xterm", "-e", "true"]).with(0);
    assert!(told.out.contains("CreateWindow") && !told.out.contains(" 1 ended "), "nothing follows the stop event");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = server.xqos(&["cap", "--", "sh", "-c", "xlsatoms > /dev/null"]);
    let told = ended(command.stdout(full)).with(1);
    assert!(told.err.contains("cannot write to standard output: No space left"), "{}", told.err);
}

#[test]
fn file_descriptors_of_requests_and_replies_are_passed_on() {
    let (server, folder) = (Server::stock(), Folder::new("cap-files"));
    let capture = Capture::start(&server, &folder, &[]);
    let client = capture.connect();
    assert!(client.shm_query_version().unwrap().reply().unwrap().major_version >= 1);
    let segment = client.generate_id().unwrap();
    let reply = client.shm_create_segment(segment, 4096, false).unwrap().reply().unwrap();
    assert_eq!(File::from(reply.shm_fd.as_fd().try_clone_to_owned().unwrap()).metadata().unwrap().len(), 4096);
    let attached = client.generate_id().unwrap();
    client.shm_attach_fd(attached, reply.shm_fd, false).unwrap().check().unwrap();
    drop(client);
    let told = capture.end();
    assert!(told.err.contains("2 files passed"), "{}", told.err);
}

#[test]
fn a_cookie_reaches_the_server_but_not_the_file() {
    let folder = Folder::new("cap-cookie");
    let (authority, file) = (folder.file("authority"), folder.file("capture"));
    // The server accepts an entry for any display; a client looks for the entry of its own display.
    let cookie = "5a455241436f6f6b6965466f72546573";
    let add = |display: &str| {
        let status = Command::new("xauth").args(["-q", "-f", &authority, "add", display, ".", cookie]).status();
        assert!(status.unwrap().success());
    };
    add(":0");
    let server = Server::stock_with(&["-nolisten", "tcp", "-auth", &authority]);
    add(&server.display);
    let ask = |options: &[&str]| {
        let _ = fs::remove_file(&file);
        let mut command = server.xqos(&["cap", "-o", &file]);
        command.args(options).args(["--", "xdpyinfo"]).env("XAUTHORITY", &authority);
        let told = ended(&mut command).with(0);
        assert!(told.out.contains("name of display:    :"), "{told:#?}");
    };
    let plain = ended(Command::new("xdpyinfo").env("DISPLAY", &server.display).env("XAUTHORITY", "/dev/null"));
    assert_ne!(plain.status, 0, "the server refuses clients without the cookie");
    let mut list = server.xqos(&["cap", "-o", &file, "--", "sh", "-c", "xauth -q list $DISPLAY"]);
    let told = ended(list.env("XAUTHORITY", &authority)).with(0);
    assert!(told.out.contains("/unix:") && told.out.contains(cookie), "as xauth and sshd write it: {told:#?}");
    ask(&[]);
    assert!(has(&file, "MIT-MAGIC-COOKIE-1") && !has(&file, "ZERACookieForTes"));
    ask(&["--keep-cookie"]);
    assert!(has(&file, "ZERACookieForTes"));
}

#[test]
fn signals_end_the_program_and_leave_only_a_complete_file() {
    let server = Server::stock();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        if is_ignored(signal, number) {
            continue;
        }
        let folder = Folder::new(&format!("cap-{signal}"));
        let capture = Capture::start(&server, &folder, &[]);
        let client = capture.connect();
        client.sync().unwrap();
        let number = capture.display.trim_start_matches(':').to_owned();
        let child = child_of(capture.running.pid());
        let files = [format!("/tmp/.X{number}-lock"), format!("/tmp/.X11-unix/X{number}")];
        let made = files.each_ref().map(|file| identity(file).expect("a display has both"));
        kill(capture.running.pid(), signal);
        let told = capture.running.ended();
        assert!(told.status > 128 && told.err.contains("1 connection,"), "{told:#?}");
        assert_eq!(count(&analysed(&capture.file), "requests", "GetInputFocus"), 1);
        for (file, made) in files.iter().zip(made) {
            assert_ne!(identity(file), Some(made), "{file} remains after {signal}");
        }
        assert!(fs::read_link(format!("/proc/{child}/exe")).is_err(), "the program still runs after {signal}");
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_server_that_does_not_answer() {
    let folder = Folder::new("cap-hung");
    let (path, file) = (folder.file("socket"), folder.file("capture"));
    let _listener = UnixListener::bind(&path).unwrap();
    let address = SocketAddrUnix::new(path.as_str()).unwrap();
    let client = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
    // Fill the queue of the listening socket.
    let waiting: Vec<OwnedFd> =
        std::iter::repeat_with(client).take_while(|client| connect(client, &address).is_ok()).collect();
    assert!(!waiting.is_empty());
    let mut command = xqos();
    command.args(["cap", "-o", &file, "--display", &path, "--", "true"]).stderr(Stdio::piped());
    let running = Running::start(&mut command);
    eventually("xqos waits for the server", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", running.pid())).unwrap();
        stat.contains("(xqos-wire) S").then_some(())
    });
    running.signal("TERM");
    assert_eq!(running.ended().status, -1, "the signal has ended xqos");
    assert!(!Path::new(&file).exists());
}

fn child_of(pid: i32) -> String {
    let children = format!("/proc/{pid}/task/{pid}/children");
    fs::read_to_string(children).unwrap().split_whitespace().next().expect("the program").to_owned()
}

#[test]
fn a_file_ends_at_its_stop_event_and_the_program_continues() {
    let (server, folder) = (Server::stock(), Folder::new("cap-stop"));
    let file = folder.file("capture");
    let script = "xterm -e true; xlsatoms > /dev/null; exit 4";
    let told = server.ask(&["cap", "-o", &file, "--stop-on", "window", "--", "sh", "-c", script]).with(4);
    assert!(told.err.contains("2 connections"), "both were relayed: {}", told.err);
    let report = analysed(&file);
    assert_eq!((count(&report, "requests", "MapWindow"), report["connections"].as_array().unwrap().len()), (1, 1));
    assert!(count(&report, "requests", "GetAtomName") < 20, "xlsatoms, which sends hundreds, started later");

    let (none, again) = (folder.file("none"), folder.file("again"));
    fs::write(&again, "before").unwrap();
    let told = server.ask(&["cap", "-o", &none, "--start-on", "key", "--", "xdpyinfo"]);
    let told_again = ended(xqos().args(["cap", "-r", &file, "--start-on", "key", "-o", &again]));
    for told in [told, told_again] {
        assert!(told.status == 1 && told.err.contains("did not occur"), "{told:#?}");
    }
    assert!(!Path::new(&none).exists() && fs::read_to_string(&again).unwrap() == "before");
}

/// A server without key repeat, because xdotool may release a key late on a busy machine.
fn typed_on() -> Server {
    Server::stock_with(&["-nolisten", "tcp", "-r"])
}

/// Starts an xterm behind a relay, with its window under the pointer.
fn terminal(server: &Server, file: &str, options: &[&str], script: &str) -> Running {
    let mut command = server.xqos(&["cap", "-o", file]);
    command.args(options).args([
        "--",
        "xterm",
        "-geometry",
        "80x24+0+0",
        "-T",
        "Zebra Title",
        "-e",
        "sh",
        "-c",
        script,
    ]);
    let running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let asked = || {
        let mut command = Command::new("xdotool");
        command.args(["search", "--onlyvisible", "--name", "Zebra Title"]).env("DISPLAY", &server.display);
        (ended(&mut command).status == 0).then_some(())
    };
    eventually("the window is there", asked);
    server_does(server, &["mousemove", "60", "60"]);
    running
}

fn server_does(server: &Server, arguments: &[&str]) {
    ended(Command::new("xdotool").args(arguments).env("DISPLAY", &server.display)).with(0);
}

#[test]
fn a_file_can_begin_with_a_key() {
    let (server, folder) = (typed_on(), Folder::new("cap-key"));
    let (file, typed) = (folder.file("capture"), folder.file("typed"));
    let script = format!("read line; echo $line > {typed}");
    let terminal = terminal(&server, &file, &["--start-on", "key", "--before", "1us"], &script);
    server_does(&server, &["type", "--delay", "1", "zebra"]);
    server_does(&server, &["key", "Return"]);
    let told = terminal.ended().with(0);
    assert_eq!(fs::read_to_string(typed).unwrap(), "zebra\n");
    let report = analysed(&file);
    assert_eq!(count(&report, "events", "KeyPress"), 6, "{}\n{report:#}", told.err);
    assert_eq!(count(&report, "requests", "CreateWindow"), 0, "the window was created earlier");
}

#[test]
fn a_scrubbed_file_has_no_typed_or_displayed_text() {
    let (server, folder) = (typed_on(), Folder::new("cap-scrub"));
    let (plain, scrubbed, later) = (folder.file("plain"), folder.file("scrubbed"), folder.file("later"));
    let script = "echo zebra-crossing; read line";
    for (file, options) in [(&plain, &["-q"][..]), (&scrubbed, &["-q", "--scrub"])] {
        let terminal = terminal(&server, file, options, script);
        server_does(&server, &["type", "--delay", "1", "secret"]);
        server_does(&server, &["key", "Return"]);
        terminal.ended().with(0);
    }
    ended(xqos().args(["cap", "-q", "-r", &plain, "--scrub", "-o", &later])).with(0);
    for text in ["zebra-crossing", "Zebra Title"] {
        assert!(has(&plain, text) && !has(&scrubbed, text) && !has(&later, text), "{text}");
    }
    let (before, after) = (analysed(&plain), analysed(&later));
    for part in ["requests", "replies", "events", "errors", "waits", "idle_s", "reply_wait_s", "startup"] {
        assert_eq!(before["connections"][0][part], after["connections"][0][part], "{part}");
    }
    let program = |report: &Value| report["connections"][0]["program"].clone();
    assert_eq!((program(&before), program(&after)), ("xterm".into(), Value::Null));
    assert_eq!(count(&after, "events", "KeyPress"), 7);
    let (length, short) = (|file: &str| fs::metadata(file).unwrap().len(), folder.file("short"));
    ended(xqos().args(["cap", "-q", "-r", &plain, "-o", &scrubbed])).with(0);
    let name = 4 + "program: xterm".len().next_multiple_of(4) as u64;
    assert_eq!(length(&scrubbed), length(&later) + name, "sizes stay");
    ended(xqos().args(["cap", "-q", "-r", &plain, "--snaplen", "96", "-o", &short])).with(0);
    // How much shorter the capture is depends on the installed fonts.
    assert!(length(&short) < length(&plain));
}

#[test]
fn tshark_decodes_a_capture_as_x11() {
    let (server, folder) = (Server::stock(), Folder::new("cap-tshark"));
    let file = folder.file("capture");
    server.ask(&["cap", "-q", "-o", &file, "--", "xterm", "-e", "true"]).with(0);
    let tshark = |filter: &str, field: &str| {
        let mut command = Command::new("tshark");
        // For displays above 63, captures contain the port of display 0.
        command.args(["-r", &file, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
        command.args(["-Y", filter, "-T", "fields", "-e", field]).stdin(Stdio::null()).output()
    };
    if xqos_testkit::program("tshark").is_none() {
        return;
    }
    let opcodes = String::from_utf8(tshark("x11", "x11.opcode").unwrap().stdout).unwrap();
    let seen = opcodes.lines().flat_map(|line| line.split(',')).filter(|code| !code.is_empty()).count() as u64;
    let report = analysed(&file);
    let requests = report["connections"][0]["requests"].as_object().unwrap();
    let ours: u64 = requests.values().map(|tally| tally["count"].as_u64().unwrap()).sum();
    assert_eq!(seen, ours, "requests that tshark sees");
    // A zero window is allowed: the receiver may briefly be full.
    let lost = "tcp.analysis.lost_segment || tcp.analysis.retransmission || tcp.analysis.out_of_order";
    let wrong =
        format!("tcp.checksum.status == 0 || ip.checksum.status == 0 || tcp.analysis.ack_lost_segment || {lost}");
    let bad = tshark(&wrong, "frame.number");
    assert_eq!(String::from_utf8(bad.unwrap().stdout).unwrap(), "", "no packet is wrong");
}

#[test]
fn packets_of_a_network_interface_are_captured() {
    let folder = Folder::new("cap-live");
    let (file, err) = (folder.file("capture"), folder.file("err"));
    let server = Server::stock_with(&["-listen", "tcp", "-ac"]);
    let number: u16 = server.display.trim_start_matches(':').parse().unwrap();
    let port = (6000 + number).to_string();
    let mut command = xqos();
    command.args(["cap", "-i", "lo", "--port", &port, "-o", &file, "--scrub"]);
    let mut capture = Running::start(command.stderr(File::create(&err).unwrap()));
    let said = || fs::read_to_string(&err).unwrap();
    eventually("it captures or is refused", || (said().contains("capturing") || !capture.is_running()).then_some(()));
    if said().contains("setcap") {
        return xqos_testkit::left_out(said());
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", capture.pid())).unwrap();
    let nice = stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap();
    assert_eq!(nice, ended(Command::new("nice").args(["-n", "-40", "nice"])).out.trim(), "the highest priority");
    let mut client = Command::new("xlsatoms");
    ended(client.env("DISPLAY", format!("127.0.0.1:{number}"))).with(0);
    eventually("the file can be read while it grows", || has(&file, "WM_NAME").then_some(()));
    capture.signal("TERM");
    capture.ended().with(0);
    assert!(said().contains(" 0 dropped by the kernel"), "{}", said());
    let report = analysed(&file);
    assert!(count(&report, "requests", "GetAtomName") > 50);
    // xlsatoms asks for more atoms than exist.
    let answers = count(&report, "replies", "GetAtomName") + count(&report, "errors", "Atom");
    assert_eq!(count(&report, "requests", "GetAtomName"), answers);
    let time = report["connections"][0]["seconds"].as_f64().unwrap();
    assert!(time > 0.0 && time < 20.0);
    let told = ended(xqos().args(["cap", "-i", "nowhere", "-o", &file, "--duration", "1s"]));
    told.failed_saying(&["nowhere", "no such interface", "lo"]);
    let told = ended(xqos().args(["cap", "-i", "lo", "--filter", "tcp prt", "-o", &file]));
    told.failed_saying(&["filter", "syntax error"]);
    assert!(ended(xqos().args(["cap", "--list"])).with(0).out.lines().any(|line| line.starts_with("lo ")));
}

#[test]
fn a_capture_stops_when_the_connection_is_quiet() {
    let folder = Folder::new("cap-quiet");
    let file = folder.file("capture");
    let server = Server::stock_with(&["-listen", "tcp", "-ac"]);
    let mut command = xqos();
    let port = (6000 + server.display.trim_start_matches(':').parse::<u16>().unwrap()).to_string();
    command.args(["cap", "-i", "any", "--port", &port, "--stop-on", "quiet=300ms", "-o", &file]);
    let mut capture = Running::start(command.stderr(Stdio::piped()));
    let display = format!("127.0.0.1{}", server.display);
    // Repeat, because traffic before the start is not captured. Silence after the first captured packets ends the run.
    eventually("packets were captured, and then none", || {
        ended(Command::new("xlsatoms").env("DISPLAY", &display));
        std::thread::sleep(std::time::Duration::from_millis(600)); // time: the silence that ends the capture
        (!capture.is_running()).then_some(())
    });
    let told = capture.ended();
    if told.err.contains("setcap") {
        return xqos_testkit::left_out(&told.err);
    }
    assert!(told.with(0).err.contains("packets"));
}

/// Identifies the file at a path. An X server may create a new file with the same name when a display becomes free.
fn identity(path: &str) -> Option<(u64, i64, i64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.ino(), file.ctime(), file.ctime_nsec()))
}
