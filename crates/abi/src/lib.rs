// SPDX-License-Identifier: MIT
//! What crosses a border: the wire structures of the XQOS extension, and the trace in shared memory, for the server's
//! side and for a client's. The only unsafe code is the mapping in `ring`.
//!
//! `proto/xqosproto.md` explains the messages, and `protocol` declares them, made from `proto/xqos.xml`. Bytes become types
//! once, here: whoever holds a [`Request`] knows that its length and its enumerations were checked. Nothing here panics
//! on any input; the fuzz target `request` and the tests below hold that.

#![deny(unsafe_code)]

mod bytes;
pub mod control;
mod label;
#[macro_use]
mod wire;
mod protocol;
mod reply;
mod request;
pub mod ring;
pub mod snapshot;
pub mod trace;

pub use bytes::{Order, Short};
pub use label::Label;
pub use protocol::*;
pub use reply::{cut, flag_of};
pub use request::{Mistake, NO_RESERVATION, PolicyChange, Subject, reservation};
pub use xqos_core::ReservationKind;

/// Microseconds, in which intervals cross the border; the greatest number where they are more.
pub fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// The extension's name, as QueryExtension knows it.
pub const EXTENSION_NAME: &str = "XQOS";
/// Version of the protocol: (major, minor).
pub const VERSION: (u32, u32) = (1, 0);
/// Events that the extension defines.
pub const EVENTS: u8 = 1;
/// Errors that the extension defines.
pub const ERRORS: u8 = 1;
/// Offset of the error `Admission` from the extension's first error.
pub const ADMISSION_ERROR: u8 = 0;
