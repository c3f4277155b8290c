// SPDX-License-Identifier: MIT
//! Tables for queries over many sessions: traces and captures as a folder of Parquet files.
//!
//! | module | contents |
//! |---|---|
//! | [`tables`] | the only definition of tables and columns, with their meaning |
//! | [`column`] | kinds of columns, and the collection of rows into columns |
//! | [`file`] | writes one Parquet file |
//! | [`dataset`] | the folder, partitioned by host, display and day |
//! | [`message_line`] | messages of a capture as lines of JSON |
//!
//! Readers need nothing from xqos: names, types and units are in the files, and [`SCHEMA`] is the version of the
//! tables. Adding a column does not change the version. Files are named after their session, so exporting a trace again
//! replaces its files.

#![forbid(unsafe_code)]

pub mod column;
pub mod dataset;
mod error;
pub mod file;
pub mod message_line;
pub mod tables;

pub use error::Error;

/// Version of the tables, stored in each file as the metadata `xqos.schema`. It is increased when a column is removed
/// or changes its meaning.
pub const SCHEMA: u32 = 1;
