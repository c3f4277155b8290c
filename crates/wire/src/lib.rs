// SPDX-License-Identifier: MIT
//! What happened outside: X11 as it went over a wire.
//!
//! Everything is one pass over packets, in the order in which they were captured, in bounded memory:
//!
//! ```text
//! capture ──packets──▶ frame ──segments──▶ stream ──bytes──▶ x11 ──messages──▶
//!    pcap, pcapng,      Ethernet, cooked,    both directions     framing, names,   Observer: analysis, plot, oracle
//!    libpcap, relay     IPv4 and IPv6, TCP   in order, gaps      replies matched
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`capture`] | files of packets, read and written; packets of interfaces, and of a relay for local clients; what is left out |
//! | [`frame`] | from a packet to its TCP segment |
//! | `copies` | which packets a capture has twice |
//! | `stream` | both directions of a connection in order, and what is missing |
//! | [`x11`] | boundaries, numbers, names of messages, and what a reply answers |
//! | [`session`] | all connections of a capture, each given to the observers |
//! | [`contents`] | what was in a capture as a whole, and what could not be used |
//! | [`analysis`] | where time and bytes went, and which round trips could be avoided |
//! | [`answerable`] | which requests a proxy beside the program can answer, and on what condition |
//! | [`plot`] | time against bytes: a page to zoom in, SVG, and xplot's format |
//! | [`predict`] | how a program's start would go over a link that is not there |
//! | [`observe`] | what is seen, as types: the door between those who read a capture and those who conclude from it |
//! | [`link`] | a network emulator between two namespaces, with a log of what it did |
//! | [`background`] | the threads of a relay, a link and a proxy |
//!
//! Whatever is missing (packets dropped, bytes cut off, a beginning that was not captured) is told to the observer and
//! counted; nothing is guessed over a gap.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod answerable;
pub mod background;
pub mod capture;
pub mod contents;
mod copies;
mod descriptors;
mod flow;
pub mod frame;
mod half;
pub mod link;
pub mod observe;
pub mod plot;
pub mod predict;
pub mod session;
mod stream;
pub mod x11;
