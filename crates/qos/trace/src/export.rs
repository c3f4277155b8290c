// SPDX-License-Identifier: MIT
//! Exports for other programs: CSV tables, Perfetto's format, Parquet datasets of many traces, and a stand-alone HTML
//! page.

pub mod csv;
pub mod page;
pub mod parquet;
pub mod perfetto;
