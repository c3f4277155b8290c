//! xqos in real servers.

mod busy;
mod extension;
mod fixture;
mod priorities;
mod reservations;
mod servers;
mod survival;
mod wire;
