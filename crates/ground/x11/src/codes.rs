// SPDX-License-Identifier: MIT
//! How X11 divides opcodes, event codes and error codes between the core protocol and extensions.

/// Lowest major opcode of an extension.
pub const FIRST_EXTENSION: u8 = 128;
/// Lowest event code of an extension. [`SENT_BY_CLIENT`] is a separate bit.
pub const FIRST_EXTENSION_EVENT: u8 = 64;
pub const FIRST_EXTENSION_ERROR: u8 = 128;
/// First bytes of errors and replies; other messages from a server are events.
pub const ERROR: u8 = 0;
pub const REPLY: u8 = 1;
pub const GENERIC_EVENT: u8 = 35;
pub const SENT_BY_CLIENT: u8 = 0x80;
/// Core errors.
pub const BAD_VALUE: u8 = 2;
pub const BAD_ACCESS: u8 = 10;
pub const BAD_IMPLEMENTATION: u8 = 17;
/// XKB has only one event code; the event's second byte is the type.
pub const XKB: &str = "XKEYBOARD";
/// Extension for requests whose length does not fit in 16 bits.
pub const BIG_REQUESTS: &str = "BIG-REQUESTS";
