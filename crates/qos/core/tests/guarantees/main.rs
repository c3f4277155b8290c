// SPDX-License-Identifier: MIT
//! The guarantees of xqos, checked on a simulated server with seeded random loads.
//!
//! The guarantees are inequalities. Each test states its bound with the reason for it, and a failure prints the seed,
//! the setup and the excess. All times are virtual, so results are the same on every machine.

mod best_effort;
mod changes;
mod desktop;
mod fairness;
mod group_reservations;
mod order;
mod reservations;
mod server;
mod watching;
