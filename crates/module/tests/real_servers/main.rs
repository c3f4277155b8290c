//! xqos in real servers.

mod busy;
mod fixture;
mod servers;
mod survival;
mod tmpdbg;
mod wire;
