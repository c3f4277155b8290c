// SPDX-License-Identifier: MIT
//! Parses and prints quantities, times and tables. Depends on neither the command line nor the X server.
//!
//! | module | contents |
//! |---|---|
//! | [`quantity`] | times, reservations, weights and shares: parsing and printing |
//! | [`number`], [`time`] | numbers with a unit: parsing and printing |
//! | [`width`] | width of text in a terminal |
//! | [`escape`] | control characters and line breaks in text of other programs |
//! | [`mistake`] | errors in files that users write, with their lines |
//! | [`nearest`] | suggestions for mistyped words |
//! | [`table`] | tables that fit the terminal |

#![forbid(unsafe_code)]

pub mod escape;
pub mod mistake;
pub mod nearest;
pub mod number;
pub mod quantity;
pub mod table;
pub mod time;
pub mod width;
