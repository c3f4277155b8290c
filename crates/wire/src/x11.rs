// SPDX-License-Identifier: MIT
//! From bytes to messages of X: where each begins, what it is called, what it answers.

pub mod bytes;
pub mod codes;
pub(crate) mod connection;
mod decode;
pub mod fields;
pub mod framing;
pub mod greeting;
pub(crate) mod library;
pub mod names;
mod pending;
mod plausible;
mod search;
mod sequence;

/// The core protocol's opcodes, by their names.
pub use x11rb_protocol::protocol::xproto;
