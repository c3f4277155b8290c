// SPDX-License-Identifier: MIT
//! Each table, its columns, and what they mean. This is their one definition: rows, files and the document follow from it.
//!
//! Rows say again who they are of (session, program, user), so that most questions need no join; a column that says the same
//! a thousand times costs some bytes for each of them.

use crate::column::{Cells, Column, Field, Instant};

/// A kind of rows.
pub trait Table {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const COLUMNS: &'static [Column];
    type Row<'a>;

    /// Adds each field to its column; there are as many cells as columns.
    fn add(row: &Self::Row<'_>, cells: &mut [Cells]);
}

/// A table, described.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    pub name: &'static str,
    pub about: &'static str,
    pub columns: &'static [Column],
}

impl Described {
    const fn of<T: Table>() -> Described {
        Described { name: T::NAME, about: T::ABOUT, columns: T::COLUMNS }
    }
}

/// All of them; the first four are of traces, the others of captures.
pub const ALL: [Described; 6] = [
    Described::of::<Sessions>(),
    Described::of::<Clients>(),
    Described::of::<Bursts>(),
    Described::of::<Waits>(),
    Described::of::<Connections>(),
    Described::of::<RoundTrips>(),
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

table! { "sessions" Sessions Session "A trace: one row for each." {
    session: text = "Its name; the same in all tables.",
    began: time = "Its first record.",
    span_ns: number = "From the first record to the last.",
    level: text = "`slices` or `requests`.",
    policy: optional_text = "The last one; null where the trace does not tell.",
    has_kernel: flag = "Recorded with `--kernel`: waits for a processor are told apart from those for the server.",
    records: number = "Records in it.",
    lost_records: number = "Records that are missing: figures are too low by what was in them.",
    decisions: number = "How often the server's next client was chosen.",
    early_ends: number = "Slices that ended because somebody better had arrived.",
} }

table! { "clients" Clients Client "What a client did and suffered in a session, on one day." {
    session: text = "The session.",
    client: number = "Number of the client in its session, from 0 on.",
    program: text = "Name of its program; empty where it is not known.",
    pid: optional_number = "Its process; null where it is not local.",
    uid: optional_number = "Its user; null where it is not local.",
    server_time_ns: number = "For how long it was served.",
    reserved_time_ns: number = "How much of that was by its reservation.",
    requests: number = "Requests executed.",
    slices: number = "Times it was served.",
    bursts: number = "Times it had work and all of it was done.",
    waited_ns: number = "For how long it had work and was not served.",
    longest_wait_ns: number = "The longest of these at a stretch.",
    longest_request_ns: optional_number = "Its longest request, where one was seen alone.",
    longest_request: optional_text = "Name of that request.",
    misses: number = "Deadlines of its reservation that passed while it had budget and work.",
    grabs: number = "Times it grabbed the server.",
    grabbed_ns: number = "For how long it held the grab.",
    inputs: number = "Input events delivered to it.",
} }

table! { "bursts" Bursts Burst "From the moment a client has work until all of it is done." {
    session: text = "The session.",
    burst: number = "Number of the burst in its session, from 0 on.",
    client: number = "Number of the client.",
    program: text = "Name of its program.",
    uid: optional_number = "Its user; null where it is not local.",
    ended: time = "When all was done.",
    response_ns: number = "From the beginning to the end.",
    served_ns: number = "For how long it was served meanwhile.",
    waited_ns: number = "The rest of the response.",
} }

table! { "waits" Waits Wait "What the wait of a burst was spent on: a row for each cause." {
    session: text = "The session.",
    burst: number = "The burst that waited.",
    program: text = "Name of the program that waited.",
    uid: optional_number = "Its user; null where it is not local.",
    cause: text = "`client`: another client was served; `server`: nobody was; `grab`: another client held the server grab; `kernel`: the server had no processor; \
                   `budget`: its own hard reservation was used up.",
    ns: number = "How long.",
    by_client: optional_number = "The client that was served; null for the other causes.",
    by_program: optional_text = "Name of its program.",
    by_uid: optional_number = "Its user.",
    request: optional_text = "The request that its slices ended with, or the one that took most.",
    is_long: optional_flag = "Each of its slices was one request of a millisecond or more.",
} }

table! { "connections" Connections Connection "A connection of a capture." {
    session: text = "The session.",
    connection: number = "Its number in the session, from 1 on.",
    client: text = "Address of the client.",
    began: time = "When it was opened.",
    span_ns: number = "From then to its end.",
    is_whole: flag = "Its beginning was captured.",
    requests: number = "Requests.",
    round_trips: number = "Replies that the client waited for.",
    avoidable: number = "How many of them it could do without.",
    reply_wait_ns: number = "For how long it waited for replies.",
    network_delay_ns: number = "For how long it did, or had requests that the network held up.",
    blocked_network_ns: number = "For how long the network held up either direction.",
    blocked_receiver_ns: number = "For how long a receiver did.",
    bytes: number = "Bytes of both directions.",
    missing_bytes: number = "Bytes that were not captured.",
} }

table! { "round_trips" RoundTrips RoundTrip "Replies that a client waited for, by the request's name." {
    session: text = "The session.",
    connection: number = "Number of the connection.",
    request: text = "Name of the request.",
    round_trips: number = "How many.",
    avoidable: number = "How many of them it could do without.",
    wait_ns: number = "How long it waited for them.",
    reason: optional_text = "Why most of the avoidable ones are.",
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_everything_is_described() {
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
