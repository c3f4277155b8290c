// SPDX-License-Identifier: MIT
//! The part of xqos inside the X server: one shared object, loaded as an Xorg module or as a preload.
//!
//! This crate makes no decisions. It passes facts from the host's calls to `xqos_core::Scheduler`, which decides which
//! client to serve, when to end a slice early, and which clients to hold back. No code runs per request unless the
//! policy `classic` or a trace needs it, or the request may be long enough to be cut.
//!
//! | module | contents |
//! |---|---|
//! | `mechanism` | facts and decisions: slices, holds, XQOS requests, events, the trace |
//! | `host` | the interface between the mechanism and a server |
//! | `host::dix` | the host for servers that export their symbols and have a known client record |
//! | `parts` | which long requests can be executed in parts, and those parts |
//! | `host::libc` | the host for all other servers, which interposes libc calls |
//!
//! Symbols of the server are looked up by name and never linked. The object therefore does nothing in other processes.
//! If a server lacks a symbol, xqos names the symbol in the server's log.

mod host;
mod mechanism;
pub mod parts;
