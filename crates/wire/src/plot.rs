// SPDX-License-Identifier: MIT
//! Time against bytes: what Packard and Gettys (2003) called netplot, after Shepard's xplot (1990).
//!
//! Each packet is a vertical bar at its time, from its first byte to its last. Around the bars go two staircases: what the
//! receiver has acknowledged, below, and how far its window lets the sender go, above. Each message of X stands at the time
//! of the packet with its last byte, with its name, in the colour of what the connection was doing until then.
//!
//! | file | what |
//! |---|---|
//! | [`model`] | an [`Observer`](crate::observe::Observer) that keeps what is drawn, packed, of some connections and some time |
//! | [`track`] | one direction of a connection in it |
//! | [`rows`], [`texts`] | how it is packed |
//! | [`doing`] | what a connection was doing at a time: idle, waiting, blocked |
//! | [`page`] | one HTML file to look around in |
//! | [`detail`] | no more of it than a picture can show |
//! | [`svg`] | a picture of one connection |
//! | [`xpl`] | for xplot |
//!
//! Memory is some ten bytes for a message; from [`model::MAX_MESSAGES`] on messages are counted and left out.

pub mod detail;
pub mod doing;
pub mod model;
pub mod page;
pub mod rows;
pub mod svg;
pub mod texts;
pub mod track;
pub mod xpl;
