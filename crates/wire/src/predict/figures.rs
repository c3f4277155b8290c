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
    pub start: StartFigures,
    /// Behind the proxy that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<StartFigures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StartFigures {
    /// From the first packet to the last one before the program is quiet.
    pub seconds: f64,
    pub network_delay_s: f64,
    pub reply_wait_s: f64,
    pub round_trips: u64,
    /// Whole IP packets, both ways.
    pub link_bytes: u64,
}

impl StartFigures {
    fn of(foretold: &Foretold) -> StartFigures {
        StartFigures {
            seconds: seconds(foretold.elapsed_ns),
            network_delay_s: seconds(foretold.delay_ns),
            reply_wait_s: seconds(foretold.wait_ns),
            round_trips: foretold.round_trips,
            link_bytes: foretold.link_bytes.iter().sum(),
        }
    }
}

/// As it was captured, and as it would be behind a proxy, over each of these links. `None`: one of them loses so much that
/// there is no end.
pub fn predictions(script: &Script, proxied: Option<&Script>, links: &[Shape]) -> Option<Vec<Prediction>> {
    let figures = |script: &Script, shape: &Shape| Some(StartFigures::of(&foretell(script, shape)?));
    let prediction = |shape: &Shape| {
        Some(Prediction {
            rate_bit_per_s: shape.rate.map(std::num::NonZeroU64::get),
            delay_s: seconds(shape.delay_ns),
            start: figures(script, shape)?,
            proxy: match proxied {
                Some(script) => Some(figures(script, shape)?),
                None => None,
            },
        })
    };
    links.iter().map(prediction).collect()
}
