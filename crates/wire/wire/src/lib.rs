// SPDX-License-Identifier: MIT
//! Captures and analyses X11 traffic: packets, TCP streams, X messages, round trips.
//!
//! A capture is processed in one pass over its packets, in order and with bounded memory:
//!
//! ```text
//! capture ──packets──▶ frame ──segments──▶ stream ──bytes──▶ x11 ──messages──▶
//!    pcap, pcapng,      Ethernet, cooked,    both directions     framing, names,   Observer: analysis, plot, oracle
//!    libpcap, relay     IPv4 and IPv6, TCP   in order, gaps      replies matched
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`capture`] | reads and writes captures; captures on interfaces |
//! | [`frame`] | decodes a packet up to its TCP segment |
//! | `copies` | detects duplicate packets |
//! | `stream` | reassembles both directions of a connection and finds gaps |
//! | [`x11`] | finds message boundaries, sequence numbers and names; matches replies to requests |
//! | [`session`] | follows all connections of a capture and notifies the observers |
//! | [`contents`] | totals of a capture, and the parts that could not be used |
//! | [`analysis`] | where time and bytes went, and which round trips could be avoided |
//! | [`answerable`] | which requests a proxy next to the program can answer, and under which condition |
//! | [`messages`] | logs each message as a line of text or JSON |
//! | [`recording`] | records a capture: from a start to a stop event, without confidential data |
//! | [`relay`] | captures local clients with a relay between them and their server |
//! | [`plot`] | plots time against bytes: zoomable page, SVG, and xplot's format |
//! | [`predict`] | predicts a program's start-up time over a simulated link |
//! | [`report`] | all figures of an analysis: sums, comparisons, limits, CSV, Parquet |
//! | [`observe`] | the interface between decoding and analysis |
//! | [`link`] | a network emulator between two namespaces, with a log |
//! | [`background`] | background threads for the relay, the link and the proxy |
//!
//! Gaps (dropped packets, truncated bytes, a start that was not captured) are reported to the observers and counted.
//! No conclusion is drawn across a gap.

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
pub mod link;
pub mod messages;
pub mod observe;
pub mod plot;
pub mod predict;
mod reassembly;
pub mod recording;
pub mod relay;
pub mod report;
pub mod session;
mod stream;
pub mod x11;
