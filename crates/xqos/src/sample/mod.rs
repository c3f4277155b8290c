//! One look at the server: its own figures (ListClients), and response times from the trace in between.
//!
//! [`Sampler`] takes samples; the screen, the tables, the JSON and the metrics are made from a [`Sample`].

pub mod client;
mod sampler;
mod server;

pub use client::{Client, Reserved};
pub use sampler::Sampler;
use serde::Serialize;
pub use server::{Longest, Server};

#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub now_ms: f64,
    pub interval_ms: Option<f64>,
    pub server: Server,
    pub clients: Vec<Client>,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
