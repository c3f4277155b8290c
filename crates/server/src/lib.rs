//! Inside the X server: the Xorg module and the preload, one shared object.
//!
//! Mechanism without opinion: facts go from the server's callbacks to `xqos_core::Scheduler`, its decisions come back as
//! a raised `ClientRec.priority`, an early end of the slice, or IgnoreClient. Nothing here runs per request.
//!
//! | room | what |
//! |---|---|
//! | `mechanism` | from the server's calls to the scheduler and back |
//! | `host::dix` | a server that exports its symbols |
//!
//! Every symbol of the server is looked up by name, never linked: the object is inert in any other process, and a server
//! without a symbol is told so in a line of its log.

mod host;
mod mechanism;
