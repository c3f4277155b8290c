// SPDX-License-Identifier: MIT
//! Tests the figures, the JSON, the CSV and the Parquet tables of a report.

use super::table::csv;
use super::*;
use crate::analysis::tests::{Spec, make};
use crate::observe::{ConnectionId, Direction, Kind, Observer, Opened, Packet};

const MS: u64 = 1_000_000;

fn open(analysis: &mut Analysis, id: u32, at_ms: u64) {
    let address = |port| ([127, 0, 0, 1], port).into();
    let opened = Opened { at_ns: at_ms * MS, client: address(40_000), server: address(6000), started_midstream: false };
    analysis.opened(ConnectionId(id), &opened);
}

/// A client that asks for 46 atoms one at a time, 100 ms apart, each answered after 90 ms.
fn session(connections: u32) -> Report {
    let mut analysis = Analysis::default();
    for id in 0..connections {
        open(&mut analysis, id, 1_000);
        for number in 0..46u64 {
            let at_ns = (1_000 + number * 100) * MS;
            let atom = number.to_le_bytes();
            let ask = Spec {
                name: "InternAtom",
                sequence: number + 1,
                has_reply: true,
                at_ns,
                bytes: &atom,
                ..Spec::default()
            };
            analysis.message(ConnectionId(id), &make(&ask));
            let at_ns = at_ns + 90 * MS;
            let bytes = [1; 32];
            let reply = Spec {
                kind: Kind::Reply,
                name: "InternAtom",
                sequence: number + 1,
                at_ns,
                bytes: &bytes,
                ..Spec::default()
            };
            analysis.message(ConnectionId(id), &make(&reply));
        }
        analysis.ended(ConnectionId(id), 11_000 * MS, Ending::Finished);
    }
    analysis.report(0.05)
}

#[test]
fn the_json_has_the_fields_that_are_promised() {
    let json = serde_json::to_value(session(1)).unwrap();
    let connection = &json["connections"][0];
    assert_eq!(connection["requests"]["InternAtom"], serde_json::json!({ "count": 46, "bytes": 368 }));
    assert_eq!(connection["replies"]["InternAtom"], serde_json::json!({ "count": 46, "bytes": 1472 }));
    let wait = &connection["waits"][0];
    assert_eq!((wait["name"].as_str(), wait["count"].as_u64()), (Some("InternAtom"), Some(46)));
    assert_eq!((wait["avoidable"].as_u64(), wait["reasons"]["atoms-one-by-one"].as_u64()), (Some(45), Some(45)));
    assert!((wait["seconds"].as_f64().unwrap() - 4.14).abs() < 1e-9);
    for field in ["idle_s", "blocked_network_s", "blocked_receiver_s", "reply_wait_s", "network_delay_s", "seconds"] {
        assert!(connection[field].is_f64(), "{field}");
    }
    for field in ["events", "errors"] {
        assert!(connection[field].is_object(), "{field}");
    }
    assert_eq!(json["session"]["round_trips"], 46);
}

#[test]
fn a_saved_round_trip_counts_both_ways() {
    let report = session(1);
    assert_eq!(report.connections[0].figures.avoidable, 45);
    assert!((report.connections[0].figures.saving_s - 4.5).abs() < 1e-9);
}

#[test]
fn the_session_sums_its_connections() {
    let report = session(3);
    assert_eq!((report.session.connections, report.session.figures.round_trips), (3, 138));
    assert_eq!(report.session.figures.requests["InternAtom"].count, 138);
    assert!(
        (report.session.seconds - 10.0).abs() < 1e-9 && (report.session.figures.quiet_s.unwrap() - 4.59).abs() < 1e-9
    );
}

#[test]
fn the_times_of_the_start_add_up() {
    let report = session(1);
    let quiet = &report.connections[0].startup.quiet;
    assert!(report.connections[0].startup.is_quiet && report.connections[0].startup.window.is_none());
    assert!((quiet.seconds - (quiet.reply_wait_s + quiet.blocked_s + quiet.client_s)).abs() < 1e-9);
    assert!((quiet.client_s - 0.45).abs() < 1e-9, "{}", quiet.client_s);
}

#[test]
fn the_states_of_a_connection_add_up_to_its_time() {
    let mut analysis = Analysis::default();
    open(&mut analysis, 0, 1_000);
    let base = Packet {
        direction: Direction::Requests,
        at_ns: 1_000 * MS,
        offset: 0,
        length: 1448,
        acknowledged: 0,
        window: 60_000,
        is_retransmission: false,
        is_control: false,
    };
    let back = Packet { direction: Direction::Replies, length: 0, acknowledged: 1448, ..base };
    for packet in [base, Packet { at_ns: 1_001 * MS, window: 0, ..back }, Packet { at_ns: 1_501 * MS, ..back }] {
        analysis.packet(ConnectionId(0), &packet);
    }
    analysis.ended(ConnectionId(0), 2_000 * MS, Ending::Open);
    let report = analysis.report(0.05);
    let figures = &report.connections[0].figures;
    assert!((figures.blocked_receiver_s - 0.5).abs() < 1e-9, "{}", figures.blocked_receiver_s);
    let sum = figures.idle_s + figures.blocked_network_s + figures.blocked_receiver_s;
    assert!((sum - report.connections[0].seconds).abs() < 1e-9);
}

#[test]
fn every_line_of_the_csv_has_all_columns() {
    let text = csv(&session(2));
    assert!(text.contains("\n2,waits,InternAtom,46,,4.140000,45\n"), "{text}");
    assert!(text.contains("\nsession,requests,InternAtom,92,736,,\n"), "{text}");
    assert!(text.lines().all(|line| line.matches(',').count() == 6), "{text}");
}

#[test]
fn an_empty_capture_gives_an_empty_report() {
    let report = Analysis::default().report(0.05);
    assert!(report.connections.is_empty() && report.session.figures.waits.is_empty());
}

#[test]
fn many_short_waits_keep_their_exact_sum() {
    let mut analysis = Analysis::default();
    open(&mut analysis, 0, 1_000);
    for number in 0..100_000u64 {
        for (kind, at_ns) in [(Kind::Request, 0), (Kind::Reply, 100_000)] {
            let at_ns = 1_000 * MS + number * MS + at_ns;
            let has_reply = kind == Kind::Request;
            let spec = Spec { kind, name: "GetImage", sequence: number + 1, has_reply, at_ns, ..Spec::default() };
            analysis.message(ConnectionId(0), &make(&spec));
        }
    }
    analysis.ended(ConnectionId(0), 101_000 * MS, Ending::Open);
    let figures = &analysis.report(0.05).connections[0].figures;
    assert!((figures.reply_wait_s - 10.0).abs() < 1e-6 && (figures.network_delay_s - 10.0).abs() < 1e-6);
}

#[test]
fn parquet_tables_match_the_report() {
    use super::parquet::{CaptureTables, write};
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;
    let folder = std::env::temp_dir().join(format!("xqos-wire-tables-{}", std::process::id()));
    let report = session(2);
    let written = write(&report, &CaptureTables { folder: &folder, host: "ts01", session: "one" }).unwrap();
    assert_eq!((written.rows, written.files), (4, 2));
    let path = "host=ts01/display=%3A0/day=1970-01-01/one.parquet";
    let open = |table| std::fs::File::open(folder.join(table).join(path)).unwrap();
    let rows = |table| {
        let reader = SerializedFileReader::new(open(table)).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let connections = rows("connections");
    assert_eq!(connections.iter().map(|row| row.get_long(7).unwrap()).sum::<i64>(), 92);
    let round_trips = rows("round_trips");
    assert_eq!(round_trips[1].get_long(1).unwrap(), 2, "the second connection");
    assert_eq!(round_trips[1].get_string(2).unwrap(), "InternAtom");
    assert_eq!((round_trips[1].get_long(4).unwrap(), round_trips[1].get_long(5).unwrap()), (45, 4_140_000_000));
    assert_eq!(round_trips[1].get_string(6).unwrap(), "atoms-one-by-one");
    let json = serde_json::to_value(Reason::AtomsOneByOne).unwrap();
    assert_eq!(json, Reason::AtomsOneByOne.name());
    std::fs::remove_dir_all(folder).unwrap();
}

fn figures(name: &str, count: u64, seconds: f64) -> Figures {
    Figures {
        requests: [(name.to_owned(), MessageSum { count, bytes: 8 * count })].into(),
        waits: vec![WaitFigures { name: name.to_owned(), count, seconds, avoidable: 1, ..WaitFigures::default() }],
        round_trips: count,
        idle_s: 1.0,
        ..Figures::default()
    }
}

#[test]
fn equal_names_are_summed_and_the_longest_wait_comes_first() {
    let mut sum = Figures::default();
    for one in [figures("InternAtom", 3, 0.3), figures("GetProperty", 1, 2.0), figures("InternAtom", 4, 0.4)] {
        sum.merge(&one);
    }
    assert_eq!(sum.requests["InternAtom"], MessageSum { count: 7, bytes: 56 });
    let waits: Vec<_> = sum.waits.iter().map(|wait| (wait.name.as_str(), wait.count, wait.avoidable)).collect();
    assert_eq!(waits, [("GetProperty", 1, 1), ("InternAtom", 7, 2)]);
    assert_eq!((sum.round_trips, sum.idle_s), (8, 3.0));
}
