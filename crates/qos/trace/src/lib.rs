// SPDX-License-Identifier: MIT
//! Trace files of the X server, the model derived from their records, and exports.
//!
//! | file | content |
//! |---|---|
//! | `file` | records in a file that stays readable after a crash |
//! | `model` | derives clients from records: shares, response times, waits and their causes |
//! | `histogram` | durations in buckets that are at most 3 % wide |
//! | `kernel` | the kernel's switches, wake-ups and interrupts on the same time axis |
//! | `tracefs` | a private trace instance in the kernel's tracefs |
//! | `names` | names of requests |
//! | `why` | which client waited most, and the cause in plain words |
//! | `wire` | messages of a capture on the time axis of a trace |
//! | `show`, `export` | output as text, CSV, Parquet, Perfetto trace and HTML page |
//!
//! Live views and recorded files use the same model, so they always agree. Lost records are counted and reported.
//! Nothing here panics on any input, because a trace may come from an untrusted source.

#![forbid(unsafe_code)]

pub mod export;
pub mod file;
pub mod histogram;
pub mod kernel;
pub mod model;
pub mod names;
pub mod show;
pub mod tracefs;
pub mod why;
pub mod wire;
