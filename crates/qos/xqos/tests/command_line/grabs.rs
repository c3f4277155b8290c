// SPDX-License-Identifier: MIT
//! Commands during a server grab, when only its holder is served, and on a full server, which accepts no client.

use crate::fixture::{Folder, Running, Server, eventually};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, EventMask, GrabMode};
use x11rb::rust_connection::RustConnection;

/// A client of this process that holds the server grab.
fn holder(server: &Server) -> RustConnection {
    let (connection, _) = x11rb::connect(Some(&server.display)).unwrap();
    connection.grab_server().unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
    connection
}

/// An established connection; `None` if the server refuses it.
fn connection(server: &Server) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(format!("/tmp/.X11-unix/X{}", &server.display[1..])).unwrap();
    stream.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut head = [0; 8];
    stream.read_exact(&mut head).unwrap();
    (head[0] == 1).then_some(stream)
}

/// Opens connections until the server refuses one.
fn fill(server: &Server) -> Vec<UnixStream> {
    std::iter::from_fn(|| connection(server)).collect()
}

#[test]
fn every_command_answers_during_a_server_grab_and_names_the_holder() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let holder = holder(&server);
    let pid = std::process::id();
    let named = format!("(pid {pid}, client {:#x}) holds the server grab", holder.setup().resource_id_base);
    let list = server.ask(&["list"]).with(0);
    assert!(list.out.contains("xclock") && list.err.contains(&named), "{list:#?}");
    let doctor = server.ask(&["doctor"]).with(0);
    assert!(doctor.out.contains(&named), "{doctor:#?}");
    let clock = clock.pid().to_string();
    for arguments in [
        &["reserve", "--pid", &clock, "2ms/20ms"][..],
        &["weight", "--pid", &clock, "2"],
        &["release", "--pid", &clock],
        &["policy"],
    ] {
        server.ask(arguments).with(0);
    }
    let by_window = server.ask(&["reserve", "--class", "xclock", "2ms/20ms"]);
    by_window.failed_saying(&["a client holds the server grab", "xqos list"]);
    assert_eq!(server.clients().len(), 2, "no command has left a connection behind");
}

#[test]
fn the_client_that_grabs_pointer_and_keyboard_is_named() {
    let server = Server::served(&[]);
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let (root, now) = (connection.setup().roots[screen].root, x11rb::CURRENT_TIME);
    let mode = GrabMode::ASYNC;
    connection.grab_keyboard(false, root, now, mode, mode).unwrap().reply().unwrap();
    connection
        .grab_pointer(false, root, EventMask::NO_EVENT, mode, mode, x11rb::NONE, x11rb::NONE, now)
        .unwrap()
        .reply()
        .unwrap();
    let list = server.ask(&["list"]).with(0);
    for device in ["keyboard", "pointer"] {
        let named = format!(
            "(pid {}, client {:#x}) has grabbed the {device}",
            std::process::id(),
            connection.setup().resource_id_base
        );
        assert!(list.err.contains(&named), "{list:#?}");
        assert!(server.ask(&["doctor"]).with(0).out.contains(&named));
    }
    connection.ungrab_keyboard(now).unwrap();
    connection.ungrab_pointer(now).unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
    assert_eq!(server.ask(&["list"]).with(0).err, "");
}

#[test]
fn a_trace_names_the_holder_of_a_grab() {
    grab_in_trace(&Server::served(&[]), "grab");
}

#[test]
fn a_trace_through_libc_names_the_holder_of_a_grab() {
    grab_in_trace(&Server::served_through_libc(), "grab-below");
}

fn grab_in_trace(server: &Server, folder: &str) {
    let folder = Folder::new(folder);
    let (waiter, _) = x11rb::connect(Some(&server.display)).unwrap();
    let file = folder.file("grab.trace");
    let mut record = server.xqos(&["trace", "record", &file]);
    let recorder = Running::start(record.stderr(Stdio::piped()));
    eventually("it records", || std::fs::metadata(&file).ok());
    let holder = holder(server);
    // Wait until the grab no longer counts as short, because short grabs are not watched.
    sleep(Duration::from_millis(50));
    let cookie = waiter.get_input_focus().unwrap();
    waiter.flush().unwrap();
    // The server answers on its control socket, so it has noticed the waiting request by then.
    server.ask(&["list"]).with(0);
    sleep(Duration::from_millis(200)); // time: the length of the grab in the trace
    holder.ungrab_server().unwrap();
    holder.flush().unwrap();
    cookie.reply().unwrap();
    recorder.signal("INT");
    recorder.ended().with(0);
    let stats = server.ask(&["trace", "stats", &file]).with(0).out;
    let pid = std::process::id();
    assert!(stats.contains(&format!("({pid}) held the server grab\n")), "{stats}");
    let json = server.json(&["trace", "stats", "--json", &file]);
    let waits = json["delays"].as_array().unwrap().iter();
    let longest = waits.filter(|delay| delay["why"].as_str().unwrap().contains("held the server grab"));
    let longest_ms = longest.map(|delay| delay["ms"].as_f64().unwrap()).fold(0.0, f64::max);
    assert!(longest_ms >= 200.0, "{json:#}");
    assert!(stats.contains(&format!("({pid}) held the server grab once, for ")), "{stats}");
    for name in ["grab.html", "grab.pftrace"] {
        let exported = folder.file(name);
        server.ask(&["trace", "export", &file, &exported]).with(0);
        let exported = String::from_utf8_lossy(&std::fs::read(&exported).unwrap()).into_owned();
        assert!(exported.contains(&format!("({pid}) held the server grab")), "{name}");
    }
}

#[test]
fn a_full_served_server_lists_connections_by_program() {
    let server = Server::served_with(&["-maxclients", "64"]);
    let taken = fill(&server);
    assert_eq!(taken.len(), 63);
    let list = server.ask(&["list"]).with(0);
    let own = std::process::id().to_string();
    let counted = |line: &str| line.split_whitespace().take(2).eq(["63", own.as_str()]);
    assert!(list.out.lines().any(counted), "{}", list.out);
    assert!(list.err.contains("63 of at most 63 clients"), "{}", list.err);
    let doctor = server.ask(&["doctor"]).with(0).out;
    assert!(doctor.contains("63 of at most 63: "), "{doctor}");
    assert_eq!(server.json(&["list", "--json"])["server"]["clients_limit"], 63);
}

#[test]
fn a_full_server_without_xqos_is_listed_from_the_kernels_sockets() {
    let server = Server::stock_with(&["-maxclients", "64"]);
    let _taken = fill(&server);
    let list = server.ask(&["list"]).with(1);
    assert!(list.out.contains(&std::process::id().to_string()), "{list:#?}");
    assert!(list.err.contains("Maximum number of clients"), "{list:#?}");
}
