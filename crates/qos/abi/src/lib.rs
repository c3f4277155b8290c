// SPDX-License-Identifier: MIT
//! Binary formats: the wire structures of the XQOS extension, and the trace in shared memory, for servers and clients.
//! The only unsafe code is the mapping in `ring`.
//!
//! `proto/xqosproto.md` explains the messages; `protocol` declares them and is generated from `proto/xqos.xml`. Bytes
//! are converted to types only here, so a [`Request`] always has a valid length and valid enumerations. Nothing panics
//! on any input; the fuzz target `request` and the tests below verify this.

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
mod values;

pub use bytes::Malformed;
pub use label::Label;
pub use protocol::*;
pub use reply::{cut, flag_of};
pub use values::{NO_RESERVATION, PolicyChange, Subject, reservation};
pub use xqos_core::ReservationKind;
pub use xqos_x11::ByteOrder;

/// Converts to microseconds, the unit of intervals on the wire; saturates at the largest number.
pub fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// The extension's name for QueryExtension.
pub const EXTENSION_NAME: &str = "XQOS";
/// The version of the protocol: (major, minor).
pub const VERSION: (u32, u32) = (1, 0);
/// The number of events of the extension.
pub const EVENTS: u8 = 1;
/// The number of errors of the extension.
pub const ERRORS: u8 = 1;
/// The offset of the error `Admission` from the extension's first error.
pub const ADMISSION_ERROR: u8 = 0;
