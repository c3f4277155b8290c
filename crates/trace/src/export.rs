// SPDX-License-Identifier: MIT
//! Traces for other programs: CSV for tables, Perfetto's format for its viewer, Parquet for many traces together, and a page of our own.

pub mod csv;
pub mod page;
pub mod parquet;
pub mod perfetto;
