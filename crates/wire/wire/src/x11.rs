// SPDX-License-Identifier: MIT
//! Decodes X messages from bytes: their boundaries, their names, and the requests that replies answer.

pub mod checkpoint;
pub(crate) mod connection;
mod decode;
pub mod fields;
pub mod framing;
pub mod greeting;
pub mod message_name;
pub mod names;
mod pending;
mod plausible;
mod search;
mod sequence;

/// Opcodes of the core protocol by name.
pub use x11rb_protocol::protocol::xproto;
