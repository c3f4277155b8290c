// SPDX-License-Identifier: MIT
//! Tests of xqos in real servers: the distribution's Xvfb, Xephyr, Xtigervnc and Xorg, with raw connections and real
//! programs as clients.
//!
//! | file | contents |
//! |---|---|
//! | `servers` | loading, settings, and processes in which xqos must do nothing |
//! | `survival` | resets, grabs, vanishing clients, byte orders |
//! | `faults` | deliberate faults in xqos, after which clients are served as by a stock server |
//! | `recorder` | RECORD |
//! | `priorities` | SYNC priorities |
//! | `access` | the table of docs/access.md: which requests each kind of client may make |
//! | `extension` | the XQOS protocol: requests, errors, rights, events |
//! | `libc_host` | servers served through libc: the control socket, long requests |
//! | `unknown_servers` | servers of an unknown release, and servers that lack a symbol |
//! | `xwayland` | Xwayland under the installed compositors |
//! | `desktop` | compositors and window managers, which are recognised and served first |
//! | `cut` | requests that are cut have the effects of whole requests |
//! | `upstream_fault` | a fault of stock servers that xqos has to allow for |
//! | `contention` | when xqos decides slices, and when the server chooses |
//! | `reservations` | shares, holds, and an idle server's wakeups |
//! | `exposing` | pacing of clients that uncover windows of others, and the processor loan |
//! | `tracing` | the contents of traces, and readers that die |
//! | `input` | the server's own input |
//! | `programs` | a terminal, toolkits, a player and a browser |
//! | `shared` | memory shared with the server, and descriptors passed both ways |
//! | `ends` | the end of streams, connections, generations and servers |
//! | `leaks` | many connections, many resets, many clients |
//! | `flood` | random input |
//! | `with_libc` | the list of the tests that also run with the libc host |
//! | `fixture`, `wire`, `busy`, `decisions` | servers, raw connections, load, decisions read from a trace |
//!
//! The tests load the module named by XQOS_MODULE, else the one built with the tests (with overflow checks), else the
//! one in target/release. The tests of the command line and of libxqos always load the one in target/release, because
//! that module is installed.

mod access;
mod busy;
mod contention;
mod cut;
mod decisions;
mod desktop;
mod ends;
mod exposing;
mod extension;
mod faults;
mod fixture;
mod flood;
mod input;
mod leaks;
mod libc_host;
mod priorities;
mod programs;
mod recorder;
mod reservations;
mod servers;
mod shared;
mod survival;
mod tracing;
mod unknown_servers;
mod upstream_fault;
mod wire;
mod with_libc;
mod xwayland;
