// SPDX-License-Identifier: MIT
//! Code that all programs of xqos share: messages, man pages and commands of other programs.
//!
//! | module | contents |
//! |---|---|
//! | [`output`] | results on standard output, messages on standard error, files |
//! | [`manual`] | generates man pages from the command line's definition |
//! | [`program`] | shared parts of the main functions |
//! | [`sibling`] | commands that are separate programs |
//! | [`module_file`] | finds the module that X servers load |

#![forbid(unsafe_code)]

pub mod manual;
pub mod module_file;
pub mod output;
pub mod program;
pub mod sibling;
