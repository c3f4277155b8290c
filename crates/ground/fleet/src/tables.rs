// SPDX-License-Identifier: MIT
//! All tables and columns with their meaning. Rows and files are generated from this definition, and docs/fleet.md is
//! checked against it.
//!
//! Rows repeat the session, program and user, so most queries need no join. A repeated value takes only a few bytes in
//! a file.

use crate::column::{CellValue, Cells, Column, Instant};

pub trait TableSchema {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const COLUMNS: &'static [Column];
    type Row<'a>;

    /// Appends each field to its column; there is one column of cells for each field.
    fn add(row: &Self::Row<'_>, cells: &mut [Cells]);
}

#[derive(Clone, Copy, Debug)]
pub struct TableDescription {
    pub name: &'static str,
    pub about: &'static str,
    pub columns: &'static [Column],
}

impl TableDescription {
    const fn of<T: TableSchema>() -> TableDescription {
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

macro_rules! table {
    ($name:literal $table:ident $row:ident $about:literal { $($column:ident: $type:ty = $of_column:literal,)+ }) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug)]
        pub struct $table;

        #[doc = concat!("A row of `", $name, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $row<'a> {
            $(#[doc = $of_column] pub $column: $type,)+
        }

        impl<'a> $row<'a> {
            const COLUMNS: &'static [Column] = &[$(Column::of::<$type>(stringify!($column), $of_column)),+];

            /// Sets a number by the name of its column; has no effect on other columns.
            pub fn set(&mut self, column: &str, value: i64) {
                match column {
                    $(stringify!($column) => self.$column.set(value),)+
                    _ => {}
                }
            }
        }

        impl TableSchema for $table {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = $about;
            const COLUMNS: &'static [Column] = $row::COLUMNS;
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
    session: &'a str = "Name of the session, the same in all tables.",
    began: Instant = "Time of the first record.",
    span_ns: i64 = "Time from the first to the last record.",
    level: &'a str = "`slices` or `requests`.",
    policy: Option<&'a str> = "The last policy; null if the trace does not contain it.",
    has_kernel: bool = "Recorded with `--kernel`: waits for a processor are distinguished from waits for the server.",
    records: i64 = "Number of records.",
    lost_records: i64 = "Number of lost records; other figures do not include them.",
    decisions: i64 = "Number of times that the server's next client was chosen.",
    early_ends: i64 = "Slices that ended early for another client.",
} }

table! { "clients" Clients Client "A client's usage and waits in a session, on one day." {
    session: &'a str = "The session.",
    client: i64 = "Number of the client in its session, from 0 on.",
    program: &'a str = "Name of its program; empty if unknown.",
    pid: Option<i64> = "Its process; null if it is remote.",
    uid: Option<i64> = "Its user; null if it is remote.",
    server_time_ns: i64 = "Time for which it was served.",
    reserved_time_ns: i64 = "Part of that time from its reservation.",
    requests: i64 = "Number of requests executed.",
    slices: i64 = "Number of slices.",
    bursts: i64 = "Number of bursts.",
    waited_ns: i64 = "Time for which it had work and was not served.",
    longest_wait_ns: i64 = "Longest single wait.",
    longest_request_ns: Option<i64> = "Its longest request, if one was timed alone.",
    longest_request: Option<&'a str> = "Name of that request.",
    misses: i64 = "Missed deadlines of its reservation, with budget and work left.",
    grabs: i64 = "Number of server grabs.",
    grabbed_ns: i64 = "Time for which it held the server grab.",
    inputs: i64 = "Number of input events delivered to it.",
    cuts: i64 = "Number of times that another client was served between two parts of its requests.",
    finished: i64 = "Rests of its cut requests that were executed early, for another client's request.",
    finished_ns: i64 = "Time for which these rests were executed.",
} }

table! { "bursts" Bursts Burst "Bursts: from the moment a client has work until all of it is done." {
    session: &'a str = "The session.",
    burst: i64 = "Number of the burst in its session, from 0.",
    client: i64 = "Number of the client.",
    program: &'a str = "Name of its program.",
    uid: Option<i64> = "Its user; null if it is remote.",
    ended: Instant = "Time when all work was done.",
    response_ns: i64 = "Time from the start to the end.",
    served_ns: i64 = "Time for which it was served.",
    waited_ns: i64 = "The rest of the response.",
} }

table! { "waits" Waits Wait "Causes of the wait of a burst: one row for each cause." {
    session: &'a str = "The session.",
    burst: i64 = "The burst that waited.",
    program: &'a str = "Name of the program that waited.",
    uid: Option<i64> = "Its user; null if it is remote.",
    cause: &'a str = "`client`: another client was served; `server`: no client was served; `grab`: another client held the server grab; \
             `kernel`: the server had no processor; `budget`: its own hard reservation was used up.",
    ns: i64 = "Length of this part of the wait.",
    by_client: Option<i64> = "The client that was served or held the grab; null for other causes.",
    by_program: Option<&'a str> = "Name of its program.",
    by_uid: Option<i64> = "Its user.",
    request: Option<&'a str> = "Request at the end of these slices, or the most expensive one in them.",
    is_long: Option<bool> = "Each of its slices was a single request of at least a millisecond.",
} }

table! { "connections" Connections Connection "Connections of a capture." {
    session: &'a str = "The session.",
    connection: i64 = "Number of the connection in the session, from 1 on.",
    client: &'a str = "Address of the client.",
    began: Instant = "Time when it was opened.",
    span_ns: i64 = "Time from its start to its end.",
    is_whole: bool = "Its start was captured.",
    requests: i64 = "Number of requests.",
    round_trips: i64 = "Number of replies that the client waited for.",
    avoidable: i64 = "Number of these that are avoidable.",
    reply_wait_ns: i64 = "Time for which it waited for replies.",
    network_delay_ns: i64 = "Time for which it waited for replies or had requests delayed by the network.",
    blocked_network_ns: i64 = "Time for which the network delayed either direction.",
    blocked_receiver_ns: i64 = "Time for which a receiver delayed either direction.",
    bytes: i64 = "Bytes of both directions.",
    missing_bytes: i64 = "Number of bytes that were not captured.",
} }

table! { "round_trips" RoundTrips RoundTrip "Replies that a client waited for, by request." {
    session: &'a str = "The session.",
    connection: i64 = "Number of the connection.",
    request: &'a str = "Name of the request.",
    round_trips: i64 = "Number of replies.",
    avoidable: i64 = "Number of these that are avoidable.",
    wait_ns: i64 = "Time for which the client waited for them.",
    reason: Option<&'a str> = "Main reason why they are avoidable.",
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
