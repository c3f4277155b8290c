//! The proof: real servers, loads, measuring clients and experiments against them.

pub mod control;
