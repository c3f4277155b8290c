// SPDX-License-Identifier: MIT
//! Code that all programs of xqos share: quantities, tables, messages and man pages.
//!
//! | module | contents |
//! |---|---|
//! | [`quantity`] | times, reservations, weights and shares: parsing and printing |
//! | [`number`], [`time`] | numbers with a unit: parsing and printing |
//! | [`width`] | width of text in a terminal |
//! | [`nearest`] | suggestions for mistyped words |
//! | [`table`] | tables that fit the terminal |
//! | [`output`] | results on standard output, messages on standard error, files |
//! | [`manual`] | generates man pages from the command line's definition |
//! | [`program`] | shared parts of the main functions |
//! | [`sibling`] | commands that are separate programs |
//! | [`module_file`] | finds the module that X servers load |

#![forbid(unsafe_code)]

pub mod manual;
pub mod module_file;
pub mod nearest;
pub mod number;
pub mod output;
pub mod program;
pub mod quantity;
pub mod sibling;
pub mod table;
pub mod time;
pub mod width;
