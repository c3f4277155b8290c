// SPDX-License-Identifier: MIT
//! Rules: settings for X clients, chosen by what a client is.
//!
//! Whoever applies the settings asks [`decide`], and so does whoever explains them: both are one evaluation.
//!
//! | module | what |
//! |---|---|
//! | [`facts`] | what is known about a client |
//! | [`pattern`] | globs that cannot explode |
//! | [`setting`] | what a rule sets |
//! | [`rule`] | a rule, with the place that it stands at |
//! | [`read`] | the text of a file, as rules or as mistakes |
//! | [`decide`] | rules and facts: what is set, by whom, and why not |
//! | [`expect`] | files of facts and the settings that are expected of them |
//! | [`files`] | the folders that rules are read from; the only one that does I/O |
//! | [`mistake`] | what is wrong with a file, and where |

#![forbid(unsafe_code)]

pub mod decide;
pub mod expect;
pub mod facts;
pub mod files;
pub mod mistake;
pub mod pattern;
pub mod read;
pub mod rule;
pub mod setting;

pub use mistake::Mistake;
