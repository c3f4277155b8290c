// SPDX-License-Identifier: MIT
//! What the programs of xqos have in common: quantities as users type them, tables, messages, man pages.
//!
//! | module | what |
//! |---|---|
//! | [`quantity`] | times, reservations, weights and shares, read and written |
//! | [`number`], [`time`] | numbers with a unit, as typed and as shown |
//! | [`width`] | text in columns of a terminal |
//! | [`nearest`] | the word that was probably meant |
//! | [`table`] | tables that fit the terminal |
//! | [`output`] | results on standard output, all else on standard error |
//! | [`manual`] | man pages from the definition of a command line |
//! | [`documents`] | the commands that documents show, for tests |
//! | [`program`] | what the main function of each does |
//! | [`sibling`] | commands that are programs of their own |
//! | [`module_file`] | where the module is that a server loads |

#![forbid(unsafe_code)]

pub mod documents;
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

pub use xqos_core::named;
