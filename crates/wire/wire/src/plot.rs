// SPDX-License-Identifier: MIT
//! Plots time against bytes, like Packard and Gettys' netplot (2003) and Shepard's xplot (1990).
//!
//! Each packet is a vertical bar at its time, from its first byte to its last. Two stair lines surround the bars:
//! below, the data that the receiver has acknowledged; above, the edge of its window. Each X message is drawn at the
//! time of the packet with its last byte, with its name, in the colour of the connection's state before that time.
//!
//! | file | purpose |
//! |---|---|
//! | [`model`] | an [`Observer`](crate::observe::Observer) that stores what will be drawn, in packed form |
//! | [`track`] | one direction of a connection in the model |
//! | [`rows`], [`texts`] | the packed representation |
//! | [`activity`] | a connection's state at each time: idle, waiting, blocked |
//! | [`page`] | an interactive page in one HTML file |
//! | [`detail`] | reduces the model to what a picture can show |
//! | [`svg`] | a picture of one connection |
//! | [`xpl`] | a file for xplot |
//!
//! A message takes about ten bytes of memory. Messages beyond [`model::MAX_MESSAGES`] are only counted.

pub mod activity;
pub mod detail;
pub mod model;
pub mod page;
pub mod rows;
pub mod svg;
pub mod texts;
pub mod track;
pub mod xpl;
