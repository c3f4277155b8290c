//! The X servers of a host, for Prometheus.

mod account;
mod authority;
