// SPDX-License-Identifier: MIT
//! The commands of `xqos`. Each has a file with the arguments that clap parses, and the action.

pub mod doctor;
pub mod explain;
pub mod exporter;
pub mod list;
pub mod policy;
pub mod replay;
pub mod reserve;
pub mod rules;
pub mod server;
pub mod suggest;
pub mod top;
pub mod trace;
pub mod weight;
pub mod why;
pub mod xwayland;
