//! xqos in real servers: Xvfb, Xephyr, Xtigervnc and Xorg as they come from the distribution, the module as it is
//! installed, clients that speak the protocol byte by byte and real ones.
//!
//! | file | what |
//! |---|---|
//! | `servers` | loading, settings, and leaving everybody else alone |
//! | `survival` | resets, grabs, vanishing clients, RECORD, byte orders, faults of ours |
//! | `priorities` | SYNC priorities |
//! | `extension` | the protocol of XQOS: requests, errors, rights, events |
//! | `reservations` | shares, holds, and an idle server's wakeups |
//! | `tracing` | traces: what they say, and readers that die |
//! | `input` | what comes to the server itself |
//! | `leaks` | many connections, many resets, many clients |
//! | `flood` | random input |
//! | `fixture`, `wire`, `busy` | servers, raw connections, clients that make load |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod busy;
mod extension;
mod fixture;
mod flood;
mod input;
mod leaks;
mod priorities;
mod reservations;
mod servers;
mod survival;
mod tracing;
mod wire;
