//! From the server's calls to the scheduler and back: mechanism without opinion.

pub mod access;
pub mod attention;
pub mod engine;
pub mod extension;
pub mod fault;
pub mod longest;
pub mod recorded;
pub mod roles;
pub mod settings;
pub mod tracer;
