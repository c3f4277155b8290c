//! Inside the X server: the Xorg module and the preload, one shared object.
//!
//! Mechanism without opinion: facts go from the server's callbacks to `xqos_core::Scheduler`, its decisions come back as
//! a raised `ClientRec.priority`, an early end of the slice, or IgnoreClient. Nothing here runs per request.
//!
//! | file | what |
//! |---|---|
//! | `entry` | how the server finds us: Xorg's module data, the preload's constructor |
//! | `host` | the server's functions and variables, found by name at run time |
//! | `client` | the server's client record, through the C shim |
//! | `hooks` | what the server calls; each a panic boundary |
//! | `engine` | from those calls to the scheduler and back |
//! | `ready` | the server's ring of ready clients |
//! | `watcher` | the thread that ends a slice early |
//! | `attention` | who has to answer an Expose, or input beside one |
//! | `cpu` | what we ask of the kernel's scheduler |
//! | `sync_priority` | what SYNC clients see of the priority field that we use |
//! | `recorded`, `tracer` | the scheduler with its trace, and the ring that carries it out |
//! | `longest` | a ranking of the longest requests |
//! | `ticks` | the processor's counter as a clock within a slice |
//! | `per_request` | counting and timing requests, only while the policy `classic` or a trace asks for it |
//! | `extension`, `access` | requests of XQOS, and who may make them |
//! | `fault` | stepping aside: unhook, log why, stock behaviour |
//!
//! Every symbol of the server is looked up by name, never linked: the object is inert in any other process, and a server
//! without a symbol is told so in a line of its log.

mod access;
mod attention;
mod client;
mod cpu;
mod engine;
mod entry;
mod extension;
mod fault;
mod hooks;
mod host;
mod longest;
mod per_request;
mod polled;
mod ready;
mod recorded;
mod roles;
mod settings;
mod sync_priority;
mod ticks;
mod tracer;
mod watcher;
