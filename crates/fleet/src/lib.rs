// SPDX-License-Identifier: MIT
//! Many sessions in one question: the tables that traces and captures become, as a folder of Parquet files.
//!
//! | file | what |
//! |---|---|
//! | [`tables`] | each table, its columns, and what they mean: the one definition of them |
//! | [`column`] | kinds of columns, and rows becoming columns |
//! | [`file`] | one Parquet file |
//! | [`dataset`] | the folder, in parts by host, display and day |
//!
//! A program that asks needs no xqos: names, types and units are in the files, and [`SCHEMA`] says which version of the
//! tables they have. Within a version columns are only added. What is written twice, as when a trace is exported again,
//! replaces itself, since files are named after the session that they are of.

#![forbid(unsafe_code)]

pub mod column;
pub mod dataset;
mod error;
pub mod file;
pub mod tables;

pub use error::Error;

/// The version of the tables, in each file as the metadata `xqos.schema`. Counts up when a column changes its meaning or goes.
pub const SCHEMA: u32 = 1;
