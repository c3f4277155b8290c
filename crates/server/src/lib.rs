// SPDX-License-Identifier: MIT
//! The part of xqos inside the X server: one shared object, loaded as an Xorg module or as a preload.
//!
//! It makes no decisions of its own. Facts from the host's calls go to `xqos_core::Scheduler`; its decisions come back
//! as the client to serve, an early end of the slice, or a client to hold back. No code runs per request unless the
//! policy `classic` or a trace needs it.
//!
//! | module | contents |
//! |---|---|
//! | `mechanism` | facts and decisions: slices, holds, requests of XQOS, events, the trace |
//! | `host` | the interface between the mechanism and a server |
//! | `host::dix` | the host for servers that export their symbols and have a known client record |
//! | `host::libc` | the host for all other servers, which interposes libc calls |
//!
//! Symbols of the server are looked up by name and never linked. The object therefore does nothing in other processes,
//! and if a server lacks a symbol, a line in its log says so.

mod host;
mod mechanism;
