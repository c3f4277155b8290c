// SPDX-License-Identifier: MIT
//! Predictions from one capture over the fastest line: the same program start over all other lines, and through proxies
//! that the grid does not run. The model is that of `xqos analyse --predict`.

use super::Line;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::path::Path;
use xqos_wire::analysis::Analysis;
use xqos_wire::analysis::proxied::Remedy;
use xqos_wire::observe::Observer;
use xqos_wire::predict::script::{Script, ScriptRecorder};
use xqos_wire::predict::{grid, predict_start};
use xqos_wire::session::{self, Session};

/// The prediction without a proxy, followed by those of [`Remedy::ALL`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct Predicted(pub Vec<Proxied>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct Proxied {
    pub waits: u64,
    pub starts: Vec<PredictedStart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::experiments) struct PredictedStart {
    pub line: Line,
    pub elapsed_s: f64,
    pub delay_s: f64,
}

impl Predicted {
    /// `None` if the capture is incomplete.
    pub fn from_capture(capture: &Path) -> Result<Option<Predicted>> {
        let remedies = || [None].into_iter().chain(Remedy::ALL.map(Some));
        let mut analyses: Vec<Analysis> = remedies().map(Analysis::with_remedy).collect();
        let mut recorders: Vec<ScriptRecorder> = remedies().map(ScriptRecorder::with_remedy).collect();
        let observers = analyses.iter_mut().map(|analysis| analysis as &mut dyn Observer);
        let observers = observers.chain(recorders.iter_mut().map(|recorder| recorder as &mut dyn Observer));
        session::read(capture, Session::new(observers.collect()))?;
        let proxied = analyses.into_iter().zip(recorders).map(|(analysis, recorder)| {
            let figures = analysis.report(0.0).session.figures;
            let waits = figures.proxy.map_or(figures.round_trips, |proxy| proxy.left);
            Some(Proxied { waits, starts: starts(&recorder.script()?)? })
        });
        Ok(proxied.collect::<Option<_>>().map(Predicted))
    }

    pub fn start(&self, proxy: usize, line: Line) -> Option<&PredictedStart> {
        self.0.get(proxy)?.starts.iter().find(|start| start.line == line)
    }
}

fn starts(script: &Script) -> Option<Vec<PredictedStart>> {
    let start = |line: Line| {
        let predicted = predict_start(script, &grid::link(line.kbit_per_s, line.delay_us))?;
        let [elapsed_s, delay_s] = [predicted.elapsed_ns, predicted.delay_ns].map(|ns| ns as f64 / 1e9);
        Some(PredictedStart { line, elapsed_s, delay_s })
    };
    Line::all().map(start).collect()
}
