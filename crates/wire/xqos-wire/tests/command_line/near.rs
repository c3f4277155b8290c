// SPDX-License-Identifier: MIT
//! Tests `xqos near`: programs get the same answers as without it, but sooner, and no process or file is left.

mod other_clients;

use crate::fixture::{Ended, Folder, Running, Server, ended, eventually, xqos};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, MapState};
use x11rb::rust_connection::{DefaultStream, RustConnection};

/// The command `xqos near` with a separate cache for this test.
fn near(server: &Server, folder: &Folder, options: &[&str], program: &[&str]) -> Command {
    let mut command = server.xqos(&["near"]);
    command.args(options).arg("--").args(program).env("XDG_CACHE_HOME", &folder.path).env("HOME", &folder.path);
    command
}

fn run(server: &Server, folder: &Folder, options: &[&str], program: &[&str]) -> Ended {
    ended(&mut near(server, folder, options, program))
}

/// The number that precedes these words in the report.
#[track_caller]
fn figure(ended: &Ended, words: &str) -> u64 {
    let before = ended.err.split(words).next().unwrap_or_default();
    let number = before.rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("'{words}' is missing: {ended:#?}"))
}

fn windows(server: &Server) -> usize {
    let (client, screen) = RustConnection::connect(Some(&server.display)).unwrap();
    let root = client.setup().roots[screen].root;
    let tree = client.query_tree(root).unwrap().reply().unwrap();
    let is_seen = |&&window: &&u32| {
        let attributes = client.get_window_attributes(window).unwrap().reply();
        attributes.is_ok_and(|attributes| attributes.map_state == MapState::VIEWABLE)
    };
    tree.children.iter().filter(is_seen).count()
}

/// A running proxy, its display and its cookie file.
struct Proxy {
    running: Running,
    display: String,
    authority: String,
}

impl Proxy {
    fn start(server: &Server, folder: &Folder, options: &[&str]) -> Proxy {
        let file = folder.file("display");
        let script = format!("echo $DISPLAY $XAUTHORITY > {file}.new; mv {file}.new {file}; exec sleep 1000");
        let running = Running::start(near(server, folder, options, &["sh", "-c", &script]).stderr(Stdio::piped()));
        let text = eventually("the program has a display", || fs::read_to_string(&file).ok());
        let (display, authority) = text.trim().split_once(' ').unwrap();
        Proxy { running, display: display.to_owned(), authority: authority.to_owned() }
    }

    fn socket(&self) -> UnixStream {
        UnixStream::connect(format!("/tmp/.X11-unix/X{}", self.display.trim_start_matches(':'))).unwrap()
    }

    fn client(&self) -> RustConnection {
        let (stream, _) = DefaultStream::from_unix_stream(self.socket()).unwrap();
        let (name, data) = (b"MIT-MAGIC-COOKIE-1".to_vec(), self.cookie());
        RustConnection::connect_to_stream_with_auth_info(stream, 0, name, data).unwrap()
    }

    /// Connects a client with the cookie, and reads the setup reply.
    fn open(&self, order: Order) -> UnixStream {
        let mut socket = self.socket();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.write_all(&order.setup(&self.cookie())).unwrap();
        let head = read(&mut socket, 8);
        assert_eq!(head[0], 1, "the client is accepted");
        let words = u16::from_ne_bytes(order.short(u16::from_ne_bytes([head[6], head[7]])));
        read(&mut socket, 4 * usize::from(words));
        socket
    }

    /// The cookie of the proxy's display: the last field of the file's first entry.
    fn cookie(&self) -> Vec<u8> {
        let bytes = fs::read(&self.authority).unwrap();
        let mut place = 2;
        let mut field = || {
            let length = usize::from(bytes[place]) * 256 + usize::from(bytes[place + 1]);
            place += 2 + length;
            bytes[place - length..place].to_vec()
        };
        (0..3).for_each(|_| _ = field());
        field()
    }
}

#[test]
fn wrong_usage_says_what_to_write() {
    for (arguments, words) in [
        (&[][..], "PROGRAM"),
        (&["--relax", "--", "true"], "--relaxed"),
        (&["true"], "--"),
        (&["--resident", "--forget", "--", "true"], "cannot be used with"),
    ] {
        let ended = ended(xqos().arg("near").args(arguments)).with(2);
        assert!(ended.err.contains(words), "{arguments:?}: '{words}' is missing in\n{}", ended.err);
    }
    let near = |arguments: &[&str]| ended(xqos().arg("near").args(arguments).env("XDG_CACHE_HOME", "/nowhere"));
    near(&["--forget", "--", "true"]).failed_saying(&["DISPLAY is not set", "--display"]);
    near(&["--forget", "--display", ":9985", "--", "true"]).failed_saying(&[":9985", "check that it runs"]);
    let server = Server::stock();
    server.ask(&["near", "--forget", "--", "/nowhere/program"]).failed_saying(&["/nowhere/program"]);
    let folder = Folder::new("near-wrong");
    fs::write(folder.file("profile"), "xqos near questions 2\nprograms a\n1 GrabServer\nend\n").unwrap();
    let told = run(&server, &folder, &["--profile", &folder.file("profile")], &["true"]);
    told.failed_saying(&["profile", "line 3"]);
}

#[test]
fn a_server_that_cannot_be_reached_is_reported_in_a_line() {
    let folder = Folder::new("near-unreachable");
    let mut command = xqos();
    // This address is not known to be this machine, so the program starts before the connection is made.
    command.args(["near", "--display", "0.0.0.0:9985", "--", "sh", "-c", "xdpyinfo 2> /dev/null; exit 0"]);
    let told = ended(command.env("XDG_CACHE_HOME", &folder.path)).with(1);
    assert!(told.err.lines().count() == 1 && told.err.contains("0.0.0.0:9985"), "{told:#?}");
}

#[test]
fn the_exit_status_is_the_programs_and_signals_reach_it() {
    let (server, folder) = (Server::stock(), Folder::new("near-status"));
    assert_eq!(run(&server, &folder, &[], &["sh", "-c", "xdpyinfo > /dev/null; exit 7"]).with(7).err, "");
    run(&server, &folder, &[], &["sh", "-c", "kill -9 $$"]).with(137);
    let file = folder.file("hears");
    let script = format!("trap 'exit 5' TERM; : > {file}; while :; do sleep 0.05; done");
    let running = Running::start(near(&server, &folder, &[], &["sh", "-c", &script]).stderr(Stdio::piped()));
    eventually("the program runs", || Path::new(&file).exists().then_some(()));
    running.signal("TERM");
    running.ended().with(5);
}

#[test]
fn a_hung_server_is_named_as_the_cause_of_waiting_connections() {
    let (server, folder) = (Server::stock(), Folder::new("near-hung"));
    // The program is killed once it is connected, and after some time for the proxy to notice.
    let program = r#"exec 2> /dev/null; kill -STOP $0; xlsatoms & display=${DISPLAY#:}
        until grep -q " 03 .*/X${display%.*}$" /proc/net/unix; do sleep 0.02; done; sleep 0.5; kill $!; wait $!"#;
    let pid = server.process.pid().to_string();
    for mut command in [near(&server, &folder, &[], &[]), server.xqos(&["cap", "--"])] {
        command.args(["sh", "-c", program, &pid]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let (mut said, mut line) = (BufReader::new(running.err()), String::new());
        said.read_line(&mut line).unwrap();
        assert!(line.contains("the program has exited, but the X server has not ended 1 connection"), "{line}");
        running.signal("TERM");
        running.ended().with(128 + 15);
        server.process.signal("CONT");
    }
}

#[test]
fn a_second_start_waits_for_few_round_trips_and_gets_the_same_answers() {
    let (server, folder) = (Server::stock(), Folder::new("near-xterm"));
    let xterm = ["xterm", "-e", "true"];
    let first = run(&server, &folder, &["--report"], &xterm).with(0);
    assert!(figure(&first, " round trips left") <= 40, "the program has a profile: {first:#?}");
    let second = run(&server, &folder, &["--report", "--verify"], &xterm).with(0);
    assert!(second.err.contains("none differed") && figure(&second, " answers were") > 200, "{second:#?}");
    let third = run(&server, &folder, &["--report"], &xterm).with(0);
    assert!(figure(&third, " round trips left") <= 20, "{third:#?}");
    let relaxed = run(&server, &folder, &["--report", "--relaxed"], &xterm).with(0);
    assert!(figure(&relaxed, " round trips left") < figure(&third, " round trips left"), "{relaxed:#?}");
}

#[test]
fn a_profile_can_be_named_by_a_symbolic_link() {
    let (server, folder) = (Server::stock(), Folder::new("near-link"));
    let (file, link) = (folder.file("profile"), folder.file("link"));
    run(&server, &folder, &["--profile", &file], &["xdpyinfo"]).with(0);
    let before = fs::read_to_string(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    run(&server, &folder, &["--profile", &link], &["xdpyinfo"]).with(0);
    assert_eq!((fs::read_to_string(&file).unwrap(), Path::new(&link).is_symlink()), (before, true));
}

/// The questions in a profile.
fn questions(text: &str) -> Vec<&str> {
    text.lines().skip(2).filter_map(|line| Some(line.split_once(' ')?.1)).collect()
}

#[test]
fn profiles_have_the_questions_of_debians_programs() {
    check_profiles(&[
        ("chromium", &["chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", "about:blank"]),
        ("gtk3", &["gtk3-demo"]),
        ("qt5", &["featherpad", "--standalone"]),
        ("xt", &["xclock"]),
        ("xterm", &["xterm"]),
    ]);
}

#[test]
#[ignore = "make test-lab: needs programs of more toolkits"]
fn profiles_of_more_toolkits_have_the_questions_of_debians_programs() {
    check_profiles(&[
        ("emacs", &["emacs", "-Q"]),
        ("gtk2", &["gtk-demo"]),
        ("gtk4", &["gtk4-demo"]),
        ("qt6", &["qt6ct"]),
        ("sdl2", &["ffplay", "-f", "lavfi", "testsrc"]),
        ("tk", &["wish"]),
    ]);
}

fn check_profiles(programs: &[(&str, &[&str])]) {
    for (profile, program) in programs.iter().filter(|(_, program)| xqos_testkit::program(program[0]).is_some()) {
        let (server, folder) = (Server::stock(), Folder::new(&format!("near-profile-{profile}")));
        let file = folder.file("profile");
        let mut command = near(&server, &folder, &["--quiet", "--profile", &file], program);
        let running = Running::start(command.stderr(Stdio::null()).stdout(Stdio::null()));
        eventually("the window is mapped", || (windows(&server) > 0).then_some(()));
        running.signal("TERM");
        running.ended();
        let recorded = fs::read_to_string(file).unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../data/near/{profile}.profile"));
        let shipped = fs::read_to_string(shipped).unwrap();
        let (asked, known) = (questions(&recorded), questions(&shipped));
        let found = asked.iter().filter(|question| known.contains(question)).count();
        println!("{profile}: {found} of {}", asked.len());
        assert!(10 * found >= 9 * asked.len(), "{profile} has {found} of {} questions of {program:?}", asked.len());
    }
}

#[test]
fn a_toolkit_gets_the_servers_answers() {
    if xqos_testkit::program("gtk3-demo").is_none() {
        return;
    }
    let (server, folder) = (Server::stock(), Folder::new("near-gtk"));
    for options in [&["--report", "--verify"][..], &["--report", "--verify"], &["--report", "--verify", "--relaxed"]] {
        let mut command = near(&server, &folder, options, &["gtk3-demo"]);
        let running = Running::start(command.stderr(Stdio::piped()).stdout(Stdio::null()));
        eventually("the window is mapped", || (windows(&server) > 0).then_some(()));
        running.signal("TERM");
        let ended = running.ended().with(128 + 15);
        assert!(ended.err.contains("none differed"), "{options:?}: {ended:#?}");
        // Even after a signal, all answers are compared, except those to helpers that are still running.
        let (answered, compared) = (figure(&ended, " answered locally"), figure(&ended, " answers were"));
        assert!(compared <= answered && 2 * compared > answered, "{ended:#?}");
        eventually("the window is gone", || (windows(&server) == 0).then_some(()));
    }
}

/// The pixels of a screen, without the names in the header of xwd.
fn screenshot(server: &Server) -> Vec<u8> {
    let output = Command::new("xwd").args(["-root", "-silent", "-display", &server.display]).output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 100_000, "{:?}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_window_looks_the_same_as_without_the_proxy() {
    let (plain, proxied, folder) = (Server::stock(), Server::stock(), Folder::new("near-look"));
    let xterm = ["xterm", "-geometry", "80x24+10+10", "-e", "seq 1 30; exec sleep 1000"];
    run(&proxied, &folder, &[], &["xterm", "-e", "true"]).with(0);
    let mut command = Command::new(xterm[0]);
    let _one = Running::start(command.args(&xterm[1..]).env("DISPLAY", &plain.display).env("HOME", &folder.path));
    let _other = Running::start(&mut near(&proxied, &folder, &["--relaxed"], &xterm));
    let empty = screenshot(&Server::stock());
    eventually("both look the same", || {
        let (one, other) = (screenshot(&plain), screenshot(&proxied));
        (one == other && one != empty).then_some(())
    });
}

#[test]
fn clients_without_the_cookie_are_refused() {
    let (server, folder) = (Server::stock(), Folder::new("near-cookie"));
    let proxy = Proxy::start(&server, &folder, &[]);
    assert_eq!(fs::metadata(&proxy.authority).unwrap().permissions().mode() & 0o777, 0o600);
    let xdpyinfo = |authority: &str| {
        ended(Command::new("xdpyinfo").env("DISPLAY", &proxy.display).env("XAUTHORITY", authority)).status
    };
    assert_eq!((xdpyinfo("/dev/null"), xdpyinfo(&proxy.authority)), (1, 0));
    proxy.running.signal("TERM");
    let told = proxy.running.ended().with(128 + 15);
    assert!(told.err.contains("does not have this display's cookie"), "{told:#?}");
    assert!(!Path::new(&proxy.authority).exists(), "nothing is left");
}

#[test]
fn colours_that_were_answered_locally_can_be_freed_on_the_server() {
    let server = Server::stock();
    for options in [&[][..], &["--verify"]] {
        let folder = Folder::new("near-colours");
        let proxy = Proxy::start(&server, &folder, options);
        // The first client's query reaches the server; the second client is answered locally.
        for _ in 0..2 {
            let client = proxy.client();
            let colormap = client.setup().roots[0].default_colormap;
            let plain = client.alloc_color(colormap, 0x1200, 0x3400, 0x5600).unwrap().reply().unwrap().pixel;
            let named = client.alloc_named_color(colormap, b"wheat1").unwrap().reply().unwrap().pixel;
            for pixel in [plain, named] {
                client.free_colors(colormap, 0, &[pixel]).unwrap().check().unwrap();
                assert!(client.free_colors(colormap, 0, &[pixel]).unwrap().check().is_err(), "already freed");
            }
        }
        proxy.running.signal("TERM");
        let told = proxy.running.ended().with(128 + 15);
        assert!(options.is_empty() || told.err.contains("none differed"), "{told:#?}");
    }
}

#[test]
fn the_cookie_is_also_found_under_the_name_of_this_machine() {
    let (server, folder) = (Server::stock(), Folder::new("near-entries"));
    let told = run(&server, &folder, &[], &["xauth", "-q", "list"]).with(0).out;
    let lines: Vec<&str> = told.lines().collect();
    let &[one, any] = &lines[..] else { panic!("{told}") };
    assert!(one.contains("/unix:") && one.contains("MIT-MAGIC-COOKIE-1"), "{told}");
    assert!(any.starts_with("#ffff#") && any.ends_with(one.split_whitespace().last().unwrap()), "{told}");
}

#[test]
fn a_killed_proxy_ends_its_programs_as_a_lost_server_would() {
    let (server, folder) = (Server::stock(), Folder::new("near-killed"));
    let file = folder.file("pid");
    let script = format!("echo $$ > {file}; exec xterm -e sleep 1000");
    let running = Running::start(near(&server, &folder, &[], &["sh", "-c", &script]).stderr(Stdio::null()));
    eventually("the window is mapped", || (windows(&server) == 1).then_some(()));
    let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
    running.signal("KILL");
    eventually("xterm has ended", || fs::read_link(format!("/proc/{pid}/exe")).is_err().then_some(()));
}

#[test]
fn the_cache_is_private_and_a_damaged_file_is_rebuilt() {
    let (server, folder) = (Server::stock(), Folder::new("near-cache"));
    run(&server, &folder, &[], &["xdpyinfo"]).with(0);
    let cache = folder.path.join("xqos/near").join(server.display.trim_start_matches(':'));
    let file = cache.join("xdpyinfo");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&cache), mode(&file)), (0o700, 0o600));
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let told = run(&server, &folder, &[], &["xdpyinfo"]).with(0);
    assert!(told.err.contains("is damaged") && told.err.lines().count() == 1, "{told:#?}");
    assert_eq!(fs::read(&file).unwrap(), whole);
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let told = run(&server, &folder, &[], &["xdpyinfo"]).with(0);
    assert!(told.err.contains("others may write there"), "{told:#?}");
    fs::remove_file(&file).unwrap();
    run(&server, &folder, &["--forget"], &["xdpyinfo"]).with(0);
    assert!(!file.exists());
}

/// One of the two byte orders of requests; true means big-endian.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn short(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn word(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn number(self, bytes: &[u8]) -> u16 {
        let two = [bytes[2], bytes[3]];
        if self.0 { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
    }

    fn setup(self, cookie: &[u8]) -> Vec<u8> {
        let name = b"MIT-MAGIC-COOKIE-1\0\0";
        let lengths = [self.short(11), [0; 2], self.short(18), self.short(cookie.len() as u16), [0; 2]].concat();
        [&[if self.0 { b'B' } else { b'l' }, 0][..], &lengths, name, cookie].concat()
    }

    fn atom(self, name: &str) -> Vec<u8> {
        let mut bytes = [&[16, 0][..], &self.short((2 + name.len().div_ceil(4)) as u16)].concat();
        bytes.extend([self.short(name.len() as u16), [0; 2]].concat());
        bytes.extend(name.bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }
}

fn read(socket: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn sequence_numbers_are_right_in_both_byte_orders_and_wrap_around() {
    let (server, folder) = (Server::stock(), Folder::new("near-numbers"));
    let proxy = Proxy::start(&server, &folder, &[]);
    for order in [Order(false), Order(true)] {
        let mut socket = proxy.open(order);
        let (no_operation, sync) =
            ([&[127, 0][..], &order.short(1)].concat(), [&[43, 0][..], &order.short(1)].concat());
        // MapWindow of a window that does not exist causes an error.
        let wrong = [&[8, 0][..], &order.short(2), &order.word(0xfff_ffff)].concat();
        let (mut number, mut expected, mut sent) = (0_u64, Vec::new(), Vec::new());
        let mut say = |bytes: &[u8], kind: Option<u8>| {
            number += 1;
            sent.extend(bytes);
            expected.extend(kind.map(|kind| (kind, number as u16)));
        };
        for round in 0..150 {
            (0..997).for_each(|_| say(&no_operation, None));
            say(&sync, Some(1));
            (0..round % 5).for_each(|_| say(&order.atom("WM_PROTOCOLS"), Some(1)));
            say(&wrong, Some(0));
            say(&order.atom("WM_PROTOCOLS"), Some(1));
            say(&order.atom("WM_DELETE_WINDOW"), Some(1));
        }
        let mut writer = socket.try_clone().unwrap();
        let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
        let mut atoms = Vec::new();
        for (kind, number) in expected {
            let message = read(&mut socket, 32);
            assert_eq!((message[0], order.number(&message)), (kind, number));
            atoms.extend((kind == 1 && message[8..12] != [0; 4]).then(|| message[8..12].to_vec()));
        }
        writing.join().unwrap();
        atoms.sort();
        atoms.dedup();
        assert!(atoms.len() <= 3, "proxy and server give the same answer");
    }
}

#[test]
fn a_request_of_length_zero_is_an_error_and_the_next_one_is_answered() {
    let (server, folder) = (Server::stock(), Folder::new("near-zero"));
    let proxy = Proxy::start(&server, &folder, &[]);
    for order in [Order(false), Order(true)] {
        let mut socket = proxy.open(order);
        let mut said = |bytes: &[u8]| {
            socket.write_all(bytes).unwrap();
            let message = read(&mut socket, 32);
            (message[0], message[1], order.number(&message))
        };
        const BAD_LENGTH: u8 = 16;
        assert_eq!(said(&[55, 0, 0, 0]), (0, BAD_LENGTH, 1), "CreateGC");
        assert_eq!(said(&[43, 0, 0, 0]), (0, BAD_LENGTH, 2), "GetInputFocus");
        for number in 3..6 {
            assert_eq!(said(&order.atom("WM_NAME")), (1, 0, number));
        }
    }
}

#[test]
fn shared_memory_extensions_are_hidden_and_big_requests_are_not() {
    let (server, folder) = (Server::stock(), Folder::new("near-hidden"));
    let told = run(&server, &folder, &[], &["xdpyinfo", "-queryExtensions"]).with(0);
    assert!(told.out.contains("BIG-REQUESTS") && told.out.contains("RANDR"), "{}", told.out);
    for hidden in ["MIT-SHM", "DRI2", "DRI3"] {
        assert!(!told.out.contains(hidden), "{}", told.out);
    }
    let direct = server.ask(&["near", "--forget", "--", "xdpyinfo"]).out;
    let size = |text: &str| text.lines().find(|line| line.contains("maximum request size")).map(str::to_owned);
    assert!(size(&direct).is_some_and(|line| line.contains("16777212")), "{direct}");
}

#[test]
fn programs_share_a_resident_proxy_until_it_is_stopped() {
    let (server, folder) = (Server::stock(), Folder::new("near-resident"));
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o700)).unwrap();
    let run = |options: &[&str], program: &[&str]| {
        ended(near(&server, &folder, options, program).env("XDG_RUNTIME_DIR", &folder.path))
    };
    let stop = || ended(server.xqos(&["near", "--stop"]).env("XDG_RUNTIME_DIR", &folder.path));
    assert!(stop().with(0).out.contains("nothing to stop: display"));
    let display = |told: &Ended| told.out.lines().next().unwrap().to_owned();
    let script = ["sh", "-c", "echo $DISPLAY; xdpyinfo > /dev/null; exit 3"];
    let first = run(&["--resident"], &script).with(3);
    let second = run(&["--resident"], &script).with(3);
    assert_eq!(display(&first), display(&second), "one display for both");
    let reported = run(&["--resident", "--report"], &script).with(3);
    assert!(reported.err.contains("3 connections"), "including this one: {reported:#?}");
    let other = run(&["--resident", "--relaxed"], &script).with(3);
    assert!(other.err.contains("strict order") && other.err.contains("--stop"), "{other:#?}");
    let unverified = run(&["--resident", "--verify"], &script).with(3);
    assert!(unverified.err.contains("runs without --verify"), "{unverified:#?}");
    stop().with(0);
    let socket = format!("/tmp/.X11-unix/X{}", display(&first).trim_start_matches(':'));
    eventually("nothing is left", || (!Path::new(&socket).exists()).then_some(()));
    let verified = run(&["--resident", "--verify"], &script).with(3);
    assert!(!verified.err.contains("runs without"), "{verified:#?}");
    let stops = format!("{} near --stop; exit 7", crate::PROGRAM);
    let stopped = run(&["--resident", "--report"], &["sh", "-c", &format!("DISPLAY={} {stops}", server.display)]);
    assert!(stopped.err.contains("there is no report"), "{stopped:#?}");
    stopped.with(7);
}

#[test]
fn a_resident_proxy_that_is_ending_is_replaced() {
    let (server, folder) = (Server::stock(), Folder::new("near-ending"));
    // A proxy that is ending has the lock, but listens no longer.
    let place = folder.path.join("xqos-near").join(server.display.trim_start_matches(':'));
    DirBuilder::new().recursive(true).mode(0o700).create(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut command = near(&server, &folder, &["--resident"], &["sh", "-c", "exit 3"]);
    let launcher = Running::start(command.env("XDG_RUNTIME_DIR", &folder.path).stderr(Stdio::piped()));
    std::thread::sleep(Duration::from_secs(1)); // time: the launcher's first proxy finds the lock and exits
    drop(lock);
    launcher.ended().with(3);
    ended(server.xqos(&["near", "--stop"]).env("XDG_RUNTIME_DIR", &folder.path)).with(0);
}
