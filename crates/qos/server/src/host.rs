// SPDX-License-Identifier: MIT
//! The hosts, which connect the mechanism to a server.
//!
//! The mechanism makes decisions and a host carries them out. The host reports events by calling
//! [`Engine`](crate::mechanism::engine::Engine) on the server's thread: `block` when a slice is over, `wakeup` and
//! `decide` when the next one is due, `connected`, `established` and `gone` for clients, and `grabbed`,
//! `input_or_expose` and `delivered` for grabs and events. It implements [`Host`](crate::mechanism::host::Host), which
//! identifies clients by their ids.
//!
//! | host | makes the server serve a client | ends a slice | holds a client back |
//! |---|---|---|---|
//! | [`dix`]: exported symbols | raises `ClientRec.priority` | sets `isItTimeToYield` | IgnoreClient |
//! | [`libc`](self::libc): interposed libc calls | reports only its data | answers EAGAIN | does not report its data |
//! | `mechanism/tests/mock`, in virtual time | serves it first | after the request | skips it |
//!
//! | file | shared by all hosts |
//! |---|---|
//! | `entry`, `startup` | how the server loads xqos, its start-up options, and which host serves it |
//! | `engine_cell` | the engine of this process; each call into it is a panic boundary |
//! | `control` | the control socket |
//! | `peer` | process, user and program of a client |
//! | `real_libc` | the real libc calls; which descriptors belong to clients and which to xqos |
//! | `watcher` | the thread that sees clients arrive while a slice runs, and ends the slice early |
//! | `kernel`, `cpu` | clocks, timers and threads; requests to the kernel's scheduler |

pub mod control;
pub mod cpu;
pub mod dix;
pub mod engine_cell;
pub mod entry;
pub mod kernel;
pub mod libc;
pub mod peer;
pub mod real_libc;
pub mod startup;
pub mod watcher;
