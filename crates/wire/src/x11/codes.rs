// SPDX-License-Identifier: MIT
//! How X11 divides opcodes, and the codes of events and errors, between the core protocol and its extensions.

/// Extensions' major opcodes are from here on.
pub const FIRST_EXTENSION: u8 = 128;
/// Extensions' events are from here on; one bit more says that a client sent the event.
pub const FIRST_EXTENSION_EVENT: u8 = 64;
pub const FIRST_EXTENSION_ERROR: u8 = 128;
pub const SENT_BY_CLIENT: u8 = 0x80;
pub const GENERIC_EVENT: u8 = 35;
/// XKB has one event, and its kind in the second byte.
pub const XKB: &str = "XKEYBOARD";
/// Lets requests be longer than 16 bits of words say.
pub const BIG_REQUESTS: &str = "BIG-REQUESTS";
