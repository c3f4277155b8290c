//! Traces for other programs: CSV for tables, Perfetto's format for its viewer, and a page of our own.

pub mod csv;
pub mod page;
pub mod perfetto;
