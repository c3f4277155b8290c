// SPDX-License-Identifier: MIT
//! Inside the X server: the Xorg module and the preload, one shared object.
//!
//! Mechanism without opinion: facts go from the host's calls to `xqos_core::Scheduler`, its decisions come back as whom to
//! serve, an early end of the slice, or a client that is held back. Nothing here runs per request.
//!
//! | room | what |
//! |---|---|
//! | `mechanism` | from the host's calls to the scheduler and back: slices, holds, requests of XQOS, events, the trace |
//! | `host` | what the mechanism needs of a server |
//! | `host::dix` | a server that exports its symbols and whose client record we know |
//!
//! Every symbol of the server is looked up by name, never linked: the object is inert in any other process, and a server
//! without a symbol is told so in a line of its log.

mod host;
mod mechanism;
