// SPDX-License-Identifier: MIT
//! What xqos promises, checked on a simulated server with seeded random loads.
//!
//! The promises are inequalities, so each test states its bound beside the reason for it, and a failure prints the
//! seed, the setup and by how much the bound was passed. All times are virtual: the same result on every machine.

mod best_effort;
mod changes;
mod desktop;
mod fairness;
mod group_reservations;
mod order;
mod reservations;
mod server;
mod watching;
