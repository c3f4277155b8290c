// SPDX-License-Identifier: MIT
//! Rules: settings for X clients, chosen by facts about the client.
//!
//! The code that applies settings and the code that explains them share one evaluation in [`decide`].
//!
//! | module | contents |
//! |---|---|
//! | [`facts`] | facts about a client |
//! | [`pattern`] | globs with a bounded cost |
//! | [`values`] | values of settings as text: weights, priorities, slices, shares |
//! | [`setting`] | settings of a rule |
//! | [`rule`] | a rule and its location in a file |
//! | [`read`] | parses a file into rules or mistakes |
//! | [`decide`] | evaluates rules: which settings apply, from which rule, and why other rules do not match |
//! | [`expect`] | test files: facts and the expected settings |
//! | [`files`] | loads rule files from their folders; the only module that does I/O |

#![forbid(unsafe_code)]

pub mod decide;
pub mod expect;
pub mod facts;
pub mod files;
pub mod pattern;
pub mod read;
pub mod rule;
pub mod setting;
pub mod values;

pub use xqos_text::mistake::Mistake;
