// SPDX-License-Identifier: MIT
//! All tables and columns with their meaning. Rows, files and the document are generated from or checked against this
//! definition.
//!
//! Rows repeat the session, program and user, so most queries need no join. A repeated value costs only some bytes in a
//! file.

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
    session: text = "Name of the session; the same in all tables.",
    began: time = "Time of its first record.",
    span_ns: number = "From the first record to the last.",
    level: text = "`slices` or `requests`.",
    policy: optional_text = "The last policy; null if the trace does not contain it.",
    has_kernel: flag = "Recorded with `--kernel`: the cause `kernel` is known.",
    records: number = "Records in the trace.",
    lost_records: number = "Records that were lost: all figures are too low by their content.",
    decisions: number = "Scheduling decisions.",
    early_ends: number = "Slices that ended early for a better client.",
} }

table! { "clients" Clients Client "One row for each client of a trace and day." {
    session: text = "The session.",
    client: number = "Number of the client in its session, from 0.",
    program: text = "Name of its program; empty if unknown.",
    pid: optional_number = "Its process; null if it is not local.",
    uid: optional_number = "Its user; null if it is not local.",
    server_time_ns: number = "Server time used.",
    reserved_time_ns: number = "The part of it that was paid from its reservation.",
    requests: number = "Requests executed.",
    slices: number = "Slices.",
    bursts: number = "Bursts that were completed.",
    waited_ns: number = "Time for which it had work and was not served.",
    longest_wait_ns: number = "The longest such time without interruption.",
    longest_request_ns: optional_number = "Its longest request that was measured alone; null if there was none.",
    longest_request: optional_text = "Name of that request.",
    misses: number = "Deadlines of its reservation that passed while it had budget left and work waiting.",
    grabs: number = "Server grabs.",
    grabbed_ns: number = "Time for which it held the server grab.",
    inputs: number = "Input events delivered to it.",
} }

table! { "bursts" Bursts Burst "One row for each burst: from the moment a client has work until all of it is done." {
    session: text = "The session.",
    burst: number = "Number of the burst in its session, from 0.",
    client: number = "Number of the client.",
    program: text = "Name of its program.",
    uid: optional_number = "Its user; null if it is not local.",
    ended: time = "End of the burst.",
    response_ns: number = "Length of the burst.",
    served_ns: number = "Server time used in the burst.",
    waited_ns: number = "The rest of `response_ns`.",
} }

table! { "waits" Waits Wait "One row for each cause of a burst's wait." {
    session: text = "The session.",
    burst: number = "The burst that waited.",
    program: text = "Name of the program that waited.",
    uid: optional_number = "Its user; null if it is not local.",
    cause: text = "`client`: another client was served; `server`: no client was; `grab`: another client held the server \
                   grab; `kernel`: the server had no processor; `budget`: its own hard reservation was used up.",
    ns: number = "Time spent on this cause.",
    by_client: optional_number = "The client that was served or held the grab; null for other causes.",
    by_program: optional_text = "Name of its program.",
    by_uid: optional_number = "Its user.",
    request: optional_text = "With cause `client`: the most expensive request of its slices, or the last one where \
                              requests were not timed.",
    is_long: optional_flag = "With cause `client`: each of its slices was one request of a millisecond or more.",
} }

table! { "connections" Connections Connection "One row for each connection of a capture." {
    session: text = "The session.",
    connection: number = "Number of the connection in its session, from 1.",
    client: text = "Address of the client.",
    began: time = "Time at which it was opened.",
    span_ns: number = "Time from then to its end.",
    is_whole: flag = "The beginning of the connection was captured.",
    requests: number = "Requests sent.",
    round_trips: number = "Replies that the client waited for.",
    avoidable: number = "The avoidable ones of them.",
    reply_wait_ns: number = "Time for which it waited for replies.",
    network_delay_ns: number = "Time for which it waited for replies, or the network delayed its requests.",
    blocked_network_ns: number = "Time for which the network blocked either direction.",
    blocked_receiver_ns: number = "Time for which a receiver blocked either direction.",
    bytes: number = "Bytes of both directions.",
    missing_bytes: number = "Bytes that were not captured.",
} }

table! { "round_trips" RoundTrips RoundTrip "One row for each connection and kind of request that it waited for." {
    session: text = "The session.",
    connection: number = "Number of the connection.",
    request: text = "Name of the request.",
    round_trips: number = "Replies of this kind that the client waited for.",
    avoidable: number = "The avoidable ones of them.",
    wait_ns: number = "Time for which it waited for them.",
    reason: optional_text = "The reason why most of them are avoidable.",
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
