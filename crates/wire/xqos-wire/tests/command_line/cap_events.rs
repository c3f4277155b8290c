// SPDX-License-Identifier: MIT
//! Tests captures that start and stop around events, with a stock server and real programs.

use crate::cap::{Capture, analysed, count, has};
use crate::fixture::{Folder, Server, ended, eventually, xqos};
use std::fs;
use std::path::Path;
use x11rb::protocol::xproto::ConnectionExt;

fn names(folder: &Folder) -> Vec<String> {
    let names = fs::read_dir(&folder.path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn numbered_files_have_one_window_each_and_the_last_are_kept() {
    let (server, folder) = (Server::stock(), Folder::new("cap-ring"));
    let file = folder.file("map.pcapng");
    let events = ["--start-on", "window=XTerm", "--before", "1us", "--stop-on", "message=MapNotify", "--repeat"];
    let program = ["--keep", "2", "--", "sh", "-c", "for number in 1 2 3 4; do xterm -wf -e true; done; exit 5"];
    let told = server.ask(&[&["cap", "-o", &file][..], &events, &program].concat()).with(5);
    assert!(told.err.contains("4 connections") && told.err.contains("in 4 numbered files"), "{}", told.err);
    assert_eq!(names(&folder), ["map-0003.pcapng", "map-0004.pcapng"]);
    for name in names(&folder) {
        let report = analysed(&folder.file(&name));
        let connection = &report["connections"][0];
        assert_eq!((&connection["program"], &connection["started_midstream"]), (&"xterm".into(), &true.into()));
        assert_eq!((count(&report, "requests", "MapWindow"), count(&report, "requests", "CreateWindow")), (1, 0));
        assert!(count(&report, "events", "MapNotify") >= 1);
        let requests = connection["requests"].as_object().unwrap();
        assert!(requests.keys().all(|name| !name.contains("request ")), "all have names: {requests:#?}");
    }
    // A recording in which nothing happens leaves no file.
    let told = server.ask(&["cap", "-o", &file, "--start-on", "key", "--stop-on", "key", "--repeat", "--", "true"]);
    told.failed_saying(&["did not occur"]);
    assert_eq!(names(&folder).len(), 2);
    let nowhere = ["cap", "-o", "/nowhere/file", "--stop-on", "key", "--repeat", "--", "true"];
    server.ask(&nowhere).failed_saying(&["cannot write /nowhere/file-0001"]);
}

#[test]
fn the_numbered_file_that_cannot_be_written_is_named() {
    let (server, folder) = (Server::stock(), Folder::new("cap-lost"));
    let (place, file) = (folder.file("place"), folder.file("place/map.pcapng"));
    fs::create_dir(&place).unwrap();
    let events = ["--start-on", "window=XTerm", "--stop-on", "message=MapNotify", "--repeat"];
    let script = format!("xterm -wf -e true; rm -r {place}; xterm -wf -e true");
    let told = server.ask(&[&["cap", "-o", &file][..], &events, &["--", "sh", "-c", &script]].concat());
    told.failed_saying(&["place/map-0002.pcapng", "No such file"]);
}

#[test]
fn an_existing_capture_is_split() {
    let (server, folder) = (Server::stock(), Folder::new("cap-split"));
    let (whole, parts) = (folder.file("whole"), folder.file("part"));
    server.ask(&["cap", "-q", "-o", &whole, "--", "sh", "-c", "xlsatoms; xlsatoms"]).with(0);
    let events = ["--start-on", "message=GetAtomName", "--stop-on", "quiet=1us", "--repeat"];
    let told = ended(xqos().args(["cap", "-r", &whole, "-o", &parts]).args(events)).with(0);
    assert!(told.err.contains("numbered file"), "{}", told.err);
    let asked: u64 = names(&folder)
        .iter()
        .filter(|name| name.starts_with("part-"))
        .map(|name| count(&analysed(&folder.file(name)), "requests", "GetAtomName"))
        .sum();
    assert_eq!(asked, count(&analysed(&whole), "requests", "GetAtomName"));
}

#[test]
fn messages_are_printed_between_two_events() {
    let server = Server::stock();
    let events = ["--start-on", "message=CreateWindow", "--stop-on", "window"];
    let xterm = ["--", "xterm", "-e", "true"];
    let told = server.ask(&[&["cap", "-q"][..], &events, &xterm].concat()).with(0);
    let find = |words: &str| told.out.lines().position(|line| line.contains(words));
    assert!(find("Request CreateWindow") < find("Request MapWindow") && find("Request MapWindow").is_some());
    assert!(find(" opened ").is_none() && find(" Setup ").is_none() && find(" ended ").is_none(), "{}", told.out);
    let never = server.ask(&[&["cap", "-q", "--start-on", "message=BadAlloc"][..], &xterm].concat());
    never.failed_saying(&["did not occur"]);
}

#[test]
fn a_signal_starts_a_file() {
    let (server, folder) = (Server::stock(), Folder::new("cap-signal"));
    let options = ["--start-on", "signal", "--before", "1us", "--stop-on", "message=ListExtensions"];
    let capture = Capture::start(&server, &folder, &options);
    let client = capture.connect();
    let intern = |name: &str| client.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap();
    intern("XQOS_BEFORE");
    capture.running.signal("USR1");
    let file = capture.file.clone();
    eventually("the file has begun", || {
        intern("XQOS_LATER");
        has(&file, "XQOS_LATER").then_some(())
    });
    client.list_extensions().unwrap().reply().unwrap();
    intern("XQOS_AFTER");
    drop(client);
    capture.end();
    assert!(!has(&file, "XQOS_BEFORE") && !has(&file, "XQOS_AFTER") && Path::new(&file).exists());
    assert_eq!(count(&analysed(&file), "requests", "ListExtensions"), 1);
}
