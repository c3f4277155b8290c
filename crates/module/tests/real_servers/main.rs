//! xqos in real servers.

mod fixture;
mod servers;
mod survival;
mod wire;
