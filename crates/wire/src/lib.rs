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
//! | [`observe`] | what is seen, as types: the door between those who read a capture and those who conclude from it |
//!
//! Whatever is missing (packets dropped, bytes cut off, a beginning that was not captured) is told to the observer and
//! counted; nothing is guessed over a gap.

#![forbid(unsafe_code)]

pub mod observe;
