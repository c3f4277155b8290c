// SPDX-License-Identifier: MIT
//! What is foretold, as figures of a report.

use super::script::Script;
use super::{Foretold, foretell};
use crate::analysis::spans::seconds;
use crate::link::shape::Shape;
use serde::Serialize;

/// A start over one link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// null: without limit.
    pub rate_bit_per_s: Option<u64>,
    /// One way.
    pub delay_s: f64,
    #[serde(flatten)]
    pub start: Foretold,
    /// Behind the proxy that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Foretold>,
}

/// As it was captured, and as it would be behind a proxy, over each of these links. `None`: one of them loses so much that
/// there is no end.
pub fn predictions(script: &Script, proxied: Option<&Script>, links: &[Shape]) -> Option<Vec<Prediction>> {
    let prediction = |shape: &Shape| {
        Some(Prediction {
            rate_bit_per_s: shape.rate.map(std::num::NonZeroU64::get),
            delay_s: seconds(shape.delay_ns),
            start: foretell(script, shape)?,
            proxy: match proxied {
                Some(script) => Some(foretell(script, shape)?),
                None => None,
            },
        })
    };
    links.iter().map(prediction).collect()
}
