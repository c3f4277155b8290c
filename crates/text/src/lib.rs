// SPDX-License-Identifier: MIT
//! How quantities and names are written and read as text, by all programs and pages alike.

#![forbid(unsafe_code)]

pub mod nearest;
pub mod number;
pub mod time;
pub mod width;
