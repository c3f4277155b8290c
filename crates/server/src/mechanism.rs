// SPDX-License-Identifier: MIT
//! From the host's calls to the scheduler and back. Calls no symbol of the server and owns no clock: both are the host's.
//!
//! | file | what |
//! |---|---|
//! | `engine` | slices, holds, clients, events, roles, loans |
//! | `early_end` | when a slice ends before it would by itself |
//! | `requests`, `access` | requests of XQOS, and who may make them |
//! | `recorded`, `tracer` | the scheduler with its trace, and the ring that carries it out |
//! | `groups`, `origins` | which clients are one group; who made a setting, and what ends with whom |
//! | `attention`, `roles`, `longest` | who has to answer an Expose; who works for others; the longest requests |
//! | `departed` | what clients have used that are gone |
//! | `fault`, `settings` | why xqos steps aside; what it was started with |

pub mod access;
pub mod attention;
pub mod departed;
pub mod early_end;
pub mod engine;
pub mod fault;
pub mod groups;
pub mod longest;
pub mod origins;
pub mod recorded;
pub mod requests;
pub mod roles;
pub mod settings;
pub mod tracer;

#[cfg(test)]
mod tests;
