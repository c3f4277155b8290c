// SPDX-License-Identifier: MIT
//! xqos in real servers: Xvfb, Xephyr, Xtigervnc and Xorg as they come from the distribution, clients that speak the protocol
//! byte by byte and real ones.
//!
//! | file | what |
//! |---|---|
//! | `servers` | loading, settings, and leaving everybody else alone |
//! | `survival` | resets, grabs, vanishing clients, byte orders |
//! | `faults` | faults of ours, after which everybody is served as by a stock server |
//! | `recorder` | RECORD |
//! | `priorities` | SYNC priorities |
//! | `access` | the table of docs/access.md: what each kind of client may ask for |
//! | `extension` | the protocol of XQOS: requests, errors, rights, events |
//! | `below` | servers served by what they ask of libc: the control socket, long requests |
//! | `desks` | Xwayland under the compositors that are here |
//! | `desktop` | compositors and window managers: recognised, and served first |
//! | `contention` | when slices are decided, and when the server is left alone |
//! | `reservations` | shares, holds, and an idle server's wakeups |
//! | `exposing` | pacing of clients that uncover others, and the loan of a processor |
//! | `tracing` | traces: what they say, and readers that die |
//! | `input` | what comes to the server itself |
//! | `programs` | a terminal, toolkits, a player and a browser |
//! | `shared` | memory shared with the server, and descriptors passed both ways |
//! | `ends` | of streams, connections, generations and servers |
//! | `leaks` | many connections, many resets, many clients |
//! | `flood` | random input |
//! | `fixture`, `wire`, `busy`, `decisions` | servers, raw connections, clients that make load, what a trace says of slices |
//!
//! The module is that of XQOS_MODULE, else the one built with the tests, whose arithmetic is checked for overflow, else the
//! one in target/release. The tests of the command line and of libxqos load that one, as it is installed.

mod access;
mod below;
mod busy;
mod contention;
mod decisions;
mod desks;
mod desktop;
mod ends;
mod exposing;
mod extension;
mod faults;
mod fixture;
mod flood;
mod input;
mod leaks;
mod others;
mod priorities;
mod programs;
mod recorder;
mod reservations;
mod servers;
mod shared;
mod survival;
mod tracing;
mod wire;
