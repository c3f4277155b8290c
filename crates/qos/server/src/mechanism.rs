// SPDX-License-Identifier: MIT
//! Translates the host's calls into facts for the scheduler and carries out its decisions. This module calls no server
//! function and reads no clock; the host provides both.
//!
//! | file | contents |
//! |---|---|
//! | `host`, `action` | the mechanism's queries to a server, and its actions |
//! | `engine` | slices, holds, clients, events, roles, the real-time priority loan |
//! | `early_end` | when to end the running slice early |
//! | `requests`, `access` | requests of the XQOS extension; the identity of a client, and what it may request |
//! | `traced_scheduler`, `tracer` | the scheduler with its trace, and the ring buffer that trace readers map |
//! | `groups`, `origins` | groups of clients; the origin of each setting, and which settings end with a connection |
//! | `owed_answers`, `roles` | clients with an unanswered Expose; compositors and window managers |
//! | `longest` | the longest requests |
//! | `departed` | usage of clients that have disconnected |
//! | `fault`, `settings` | why xqos stops scheduling; its start-up settings |

pub mod access;
pub mod action;
pub mod departed;
pub mod early_end;
pub mod engine;
pub mod fault;
pub mod groups;
pub mod host;
pub mod longest;
pub mod origins;
pub mod owed_answers;
pub mod requests;
pub mod roles;
pub mod settings;
pub mod traced_scheduler;
pub mod tracer;

#[cfg(test)]
mod tests;
