// SPDX-License-Identifier: MIT
//! Predictions as figures of a report.

use super::script::Script;
use super::{StartPrediction, predict_start};
use crate::analysis::spans::seconds;
use crate::link::shape::Shape;
use serde::Serialize;

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
            rate_bit_per_s: shape.rate.map(std::num::NonZeroU64::get),
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
