// SPDX-License-Identifier: MIT
//! What happened inside the server: trace files, the model derived from records, and exports.
//!
//! | file | what |
//! |---|---|
//! | `file` | records in a file that can be read after a crash |
//! | `model` | from records to clients: shares, responses, waits and who caused them |
//! | `histogram` | response times, a percent apart |
//! | `kernel` | the kernel's scheduler on the same time axis |
//! | `tracefs` | the kernel's trace files: a trace of our own in them |
//! | `names` | of requests |
//! | `show`, `export` | as text, CSV, Parquet, Perfetto, and a page |
//!
//! A live view and a recorded file go through the same model, so they cannot disagree. Whatever was lost on the way is
//! counted and told. Nothing here panics on any input: a trace may come from anywhere.

#![forbid(unsafe_code)]

pub mod export;
pub mod file;
pub mod histogram;
pub mod kernel;
pub mod model;
pub mod names;
pub mod show;
pub mod tracefs;
