//! The servers that the mechanism works in.

pub mod dix;
