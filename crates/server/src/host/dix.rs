//! An X server that exports its functions and variables, and whose client record we know.

pub mod client;
pub mod cpu;
pub mod entry;
pub mod hooks;
pub mod per_request;
pub mod polled;
pub mod ready;
pub mod symbols;
pub mod sync_priority;
pub mod ticks;
pub mod watcher;
