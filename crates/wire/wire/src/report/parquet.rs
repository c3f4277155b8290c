// SPDX-License-Identifier: MIT
//! Writes a report as Parquet tables, into a folder that can also hold the tables of other captures and traces.

use super::{ConnectionReport, Figures, Report, WaitFigures};
use crate::analysis::figure::Declared;
use std::net::SocketAddr;
use std::path::Path;
use xqos_fleet::Error;
use xqos_fleet::column::Instant;
use xqos_fleet::dataset::{Day, Session, SessionFiles, Written};
use xqos_fleet::tables::{Connection, Connections, RoundTrip, RoundTrips};

/// TCP port of display 0. Display N uses port 6000 + N.
const DISPLAY_0: u16 = 6000;

/// Folder of the tables, and the host and session to write into them.
#[derive(Clone, Copy, Debug)]
pub struct CaptureTables<'a> {
    pub folder: &'a Path,
    /// Host on which the capture was made.
    pub host: &'a str,
    pub session: &'a str,
}

pub fn write(report: &Report, target: &CaptureTables<'_>) -> Result<Written, Error> {
    let CaptureTables { folder, host, session } = *target;
    let place = Session { folder: folder.to_owned(), host: host.to_owned(), name: session.to_owned() };
    let mut connections = SessionFiles::<Connections>::new(&place);
    let mut round_trips = SessionFiles::<RoundTrips>::new(&place);
    for (number, connection) in (1..).zip(&report.connections) {
        let day = Day::of_unix_ns(ns(connection.began_s));
        let display = display(&connection.server);
        connections.add(&display, &day, &row(session, number, connection))?;
        for wait in &connection.figures.waits {
            round_trips.add(&display, &day, &round_trip(session, number, wait))?;
        }
    }
    connections.close()?;
    round_trips.close()?;
    Ok(connections.finish()?.plus(round_trips.finish()?))
}

fn row<'a>(session: &'a str, number: i64, connection: &'a ConnectionReport) -> Connection<'a> {
    let mut row = Connection {
        session,
        connection: number,
        client: &connection.client,
        began: Instant::of_unix_ns(ns(connection.began_s)),
        span_ns: ns(connection.seconds),
        is_whole: !connection.started_midstream,
        ..Connection::default()
    };
    for figure in Figures::FIGURES {
        let value = (figure.of)(&connection.figures).unwrap_or_default();
        match figure.key.strip_suffix("_s") {
            Some(key) => row.set(&format!("{key}_ns"), ns(value)),
            // The cast from floating point saturates.
            None => row.set(figure.key, value as i64),
        }
    }
    row
}

fn round_trip<'a>(session: &'a str, connection: i64, wait: &'a WaitFigures) -> RoundTrip<'a> {
    // If counts are equal, the first by name wins.
    let most = wait.reasons.iter().rev().max_by_key(|(_, count)| **count);
    RoundTrip {
        session,
        connection,
        request: &wait.name,
        round_trips: long(wait.count),
        avoidable: long(wait.avoidable),
        wait_ns: ns(wait.seconds),
        reason: most.map(|(reason, _)| reason.name()),
    }
}

/// Display name of a server address: `:1`, or `10.0.0.2:1` for another machine.
fn display(server: &str) -> String {
    let Ok(address) = server.parse::<SocketAddr>() else { return server.to_owned() };
    let Some(number) = address.port().checked_sub(DISPLAY_0) else { return server.to_owned() };
    if address.ip().is_loopback() { format!(":{number}") } else { format!("{}:{number}", address.ip()) }
}

fn ns(seconds: f64) -> i64 {
    // The cast from floating point saturates.
    (seconds * 1e9).round() as i64
}

fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_addresses_become_display_names() {
        assert_eq!(display("127.0.0.1:6010"), ":10");
        assert_eq!(display("10.0.0.2:6000"), "10.0.0.2:0");
        assert_eq!(display("[::1]:6001"), ":1");
        assert_eq!(display("10.0.0.2:22"), "10.0.0.2:22");
    }
}
