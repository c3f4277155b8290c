// SPDX-License-Identifier: MIT
//! Predicts a program's start-up time over a slow link, from one capture over a fast link.
//!
//! ```text
//! capture ──ScriptRecorder──▶ Script ──predict_start(Shape)──▶ StartPrediction
//!                             thinking times, waits,           seconds until quiet,
//!                             service times, bytes             total network delay
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | [`script`] | extracts from a capture what does not depend on the link |
//! | `run` | plays a script over a simulated link in virtual time |
//! | `stream`, `congestion` | the TCP model |
//! | [`grid`] | the links of the grid of Packard and Gettys (2003) |
//!
//! Predictions are deterministic: the same capture and link give the same figures. They do not cover random packet
//! loss, or programs that behave differently on a slow link (for example with fewer animation steps).

mod congestion;
pub mod grid;
mod run;
pub mod script;
mod stream;
#[cfg(test)]
mod tests;

use crate::analysis::spans::seconds;
use crate::link::shape::Shape;
use script::Script;
use serde::{Serialize, Serializer};
use std::num::NonZeroU64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StartPrediction {
    /// Time from the first packet to the last one before the program becomes quiet, at the program's end of the link.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub elapsed_ns: u64,
    /// Time in which the program waited for a reply, either direction of the link was busy, or TCP was blocked.
    #[serde(rename = "network_delay_s", serialize_with = "as_seconds")]
    pub delay_ns: u64,
    #[serde(rename = "reply_wait_s", serialize_with = "as_seconds")]
    pub wait_ns: u64,
    pub round_trips: u64,
    /// IP bytes that the program sent, and those sent to it. A report contains their sum.
    #[serde(serialize_with = "as_sum")]
    pub link_bytes: [u64; 2],
}

fn as_seconds<S: Serializer>(ns: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(seconds(*ns))
}

fn as_sum<S: Serializer>(both: &[u64; 2], out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(both.iter().sum())
}

/// Simulates a start over a link. `None` if the link drops so many packets that the start does not end. Jitter and
/// loss of `shape` are ignored.
pub fn predict_start(script: &Script, shape: &Shape) -> Option<StartPrediction> {
    run::play(script, &Shape { jitter_ns: 0, loss_ppm: 0, ..*shape })
}

/// Prediction over one link, as figures of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// null if unlimited.
    pub rate_bit_per_s: Option<u64>,
    /// One-way delay.
    pub delay_s: f64,
    #[serde(flatten)]
    pub start: StartPrediction,
    /// Prediction with the requested proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<StartPrediction>,
}

/// Predicts the start over each link, with and without a proxy. `None` if the start never ends on one of the links.
pub fn predictions(script: &Script, proxied: Option<&Script>, links: &[Shape]) -> Option<Vec<Prediction>> {
    let prediction = |shape: &Shape| {
        Some(Prediction {
            rate_bit_per_s: shape.rate.map(NonZeroU64::get),
            delay_s: seconds(shape.delay_ns),
            start: predict_start(script, shape)?,
            proxy: match proxied {
                Some(script) => Some(predict_start(script, shape)?),
                None => None,
            },
        })
    };
    links.iter().map(prediction).collect()
}
