// SPDX-License-Identifier: MIT
//! The basics of X11 that both ends and every observer of a connection need.
//!
//! Bytes come from other programs, so every access is checked, and nothing panics on any input.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod byte_order;
pub mod codes;
pub mod display;
pub mod length;
pub mod names;

pub use byte_order::ByteOrder;
