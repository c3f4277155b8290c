// SPDX-License-Identifier: MIT
//! All tables and columns with their meaning. Rows and files are generated from this definition, and docs/fleet.md is
//! checked against it.
//!
//! Rows repeat the session, program and user, so most queries need no join. A repeated value takes only a few bytes in
//! a file.

use crate::column::{Cells, Column, Field, Instant};

/// A table.
pub trait Table {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const COLUMNS: &'static [Column];
    type Row<'a>;

    /// Appends each field to its column; there is one column of cells for each field.
    fn add(row: &Self::Row<'_>, cells: &mut [Cells]);
}

/// Description of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub columns: &'static [Column],
}

impl TableDescription {
    const fn of<T: Table>() -> TableDescription {
        TableDescription { name: T::NAME, about: T::ABOUT, columns: T::COLUMNS }
    }
}

/// All tables. The first four come from traces, the others from captures.
pub const ALL: [TableDescription; 6] = [
    TableDescription::of::<Sessions>(),
    TableDescription::of::<Clients>(),
    TableDescription::of::<Bursts>(),
    TableDescription::of::<Waits>(),
    TableDescription::of::<Connections>(),
    TableDescription::of::<RoundTrips>(),
];

macro_rules! kind {
    (text $life:lifetime) => { &$life str };
    (optional_text $life:lifetime) => { Option<&$life str> };
    (number $life:lifetime) => { i64 };
    (optional_number $life:lifetime) => { Option<i64> };
    (time $life:lifetime) => { Instant };
    (flag $life:lifetime) => { bool };
    (optional_flag $life:lifetime) => { Option<bool> };
}

macro_rules! table {
    ($name:literal $table:ident $row:ident $about:literal { $($column:ident: $kind:ident = $of_column:literal,)+ }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug)]
        pub struct $table;

        #[doc = concat!("A row of `", $name, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $row<'a> {
            $(#[doc = $of_column] pub $column: kind!($kind 'a),)+
        }

        impl Table for $table {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $about;
            const COLUMNS: &'static [Column] =
                &[$(Column::of::<kind!($kind 'static)>(stringify!($column), $of_column)),+];
            type Row<'a> = $row<'a>;

            fn add(row: &$row<'_>, cells: &mut [Cells]) {
                let mut cells = cells.iter_mut();
                $(if let Some(cells) = cells.next() {
                    row.$column.add_to(cells);
                })+
            }
        }
    };
}

table! { "sessions" Sessions Session "One row for each trace." {
    session: text = "Name of the session, the same in all tables.",
    began: time = "Time of the first record.",
    span_ns: number = "Time from the first to the last record.",
    level: text = "`slices` or `requests`.",
    policy: optional_text = "The last policy; null if the trace does not contain it.",
    has_kernel: flag = "Recorded with `--kernel`: waits for a processor are distinguished from waits for the server.",
    records: number = "Number of records.",
    lost_records: number = "Number of lost records; figures are too low by their contents.",
    decisions: number = "Number of times that the server's next client was chosen.",
    early_ends: number = "Slices that ended early because a better client had arrived.",
} }

table! { "clients" Clients Client "A client's usage and waits in a session, on one day." {
    session: text = "The session.",
    client: number = "Number of the client in its session, from 0 on.",
    program: text = "Name of its program; empty if unknown.",
    pid: optional_number = "Its process; null if it is remote.",
    uid: optional_number = "Its user; null if it is remote.",
    server_time_ns: number = "Time for which it was served.",
    reserved_time_ns: number = "Part of that time from its reservation.",
    requests: number = "Number of requests executed.",
    slices: number = "Number of slices.",
    bursts: number = "Number of bursts.",
    waited_ns: number = "Time for which it had work and was not served.",
    longest_wait_ns: number = "Longest single wait.",
    longest_request_ns: optional_number = "Its longest request, if one was timed alone.",
    longest_request: optional_text = "Name of that request.",
    misses: number = "Missed deadlines of its reservation, with budget and work left.",
    grabs: number = "Number of server grabs.",
    grabbed_ns: number = "Time for which it held the server grab.",
    inputs: number = "Number of input events delivered to it.",
    cuts: number = "Number of times that another client was served between two parts of its requests.",
    finished: number = "Rests of its cut requests that were executed early, for another client's request.",
    finished_ns: number = "Time for which these rests were executed.",
} }

table! { "bursts" Bursts Burst "Bursts: from the moment a client has work until all of it is done." {
    session: text = "The session.",
    burst: number = "Number of the burst in its session, from 0.",
    client: number = "Number of the client.",
    program: text = "Name of its program.",
    uid: optional_number = "Its user; null if it is remote.",
    ended: time = "Time when all work was done.",
    response_ns: number = "Time from the start to the end.",
    served_ns: number = "Time for which it was served.",
    waited_ns: number = "The rest of the response.",
} }

table! { "waits" Waits Wait "Causes of the wait of a burst: one row for each cause." {
    session: text = "The session.",
    burst: number = "The burst that waited.",
    program: text = "Name of the program that waited.",
    uid: optional_number = "Its user; null if it is remote.",
    cause: text = "`client`: another client was served; `server`: no client was served; `grab`: another client held the server grab; \
             `kernel`: the server had no processor; `budget`: its own hard reservation was used up.",
    ns: number = "Length of this part of the wait.",
    by_client: optional_number = "The client that was served or held the grab; null for other causes.",
    by_program: optional_text = "Name of its program.",
    by_uid: optional_number = "Its user.",
    request: optional_text = "Request at the end of these slices, or the most expensive one in them.",
    is_long: optional_flag = "Each of its slices was a single request of at least a millisecond.",
} }

table! { "connections" Connections Connection "Connections of a capture." {
    session: text = "The session.",
    connection: number = "Number of the connection in the session, from 1 on.",
    client: text = "Address of the client.",
    began: time = "Time when it was opened.",
    span_ns: number = "Time from its start to its end.",
    is_whole: flag = "Its start was captured.",
    requests: number = "Number of requests.",
    round_trips: number = "Number of replies that the client waited for.",
    avoidable: number = "Number of these that are avoidable.",
    reply_wait_ns: number = "Time for which it waited for replies.",
    network_delay_ns: number = "Time for which it waited for replies or had requests delayed by the network.",
    blocked_network_ns: number = "Time for which the network delayed either direction.",
    blocked_receiver_ns: number = "Time for which a receiver delayed either direction.",
    bytes: number = "Bytes of both directions.",
    missing_bytes: number = "Number of bytes that were not captured.",
} }

table! { "round_trips" RoundTrips RoundTrip "Replies that a client waited for, by request." {
    session: text = "The session.",
    connection: number = "Number of the connection.",
    request: text = "Name of the request.",
    round_trips: number = "Number of replies.",
    avoidable: number = "Number of these that are avoidable.",
    wait_ns: number = "Time for which the client waited for them.",
    reason: optional_text = "Main reason why they are avoidable.",
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_are_unique_and_described() {
        for table in ALL {
            let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns.len(), "{}", table.name);
            let parts = ["host", "display", "day"];
            assert!(parts.iter().all(|part| !names.contains(part)), "{}: a column is a part of the path", table.name);
            assert!(table.columns.iter().all(|column| column.about.ends_with('.')), "{}", table.name);
        }
    }
}
