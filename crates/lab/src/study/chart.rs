//! Charts of a study, as data: the page draws them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Chart {
    Scatter(Scatter),
    Ranges(Ranges),
    Lines(Lines),
    Lanes(Lanes),
}

/// Points of several cases side by side, with the same axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub panels: Vec<Panel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// idle, reserved, or a scheduler's name: it decides the colour.
    pub case: String,
    pub name: String,
    pub points: Vec<[f64; 2]>,
}

/// A line from the median to the 99th percentile for each case, with its mean and worst value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranges {
    pub title: String,
    pub x_label: String,
    pub groups: Vec<Group>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    pub ranges: Vec<Range>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range {
    pub case: String,
    pub p50: f64,
    pub mean: f64,
    pub p99: f64,
    pub worst: f64,
}

/// Lines over common axes: the figures of the papers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Logarithmic axis of y; values of 0 and less are not drawn.
    pub log_y: bool,
    /// The same of x; then the axis does not begin at 0.
    #[serde(default)]
    pub log_x: bool,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// idle, paper, or a scheduler's name: it decides colour, dashes and marks.
    pub case: String,
    pub name: String,
    pub points: Vec<[f64; 2]>,
    /// Standard deviations, as bars; empty, or one for each point.
    pub deviations: Vec<f64>,
}

/// Who was served when, a lane for each client: the traces of the papers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    pub title: String,
    pub x_label: String,
    /// Of the axis, which begins at 0.
    pub length: f64,
    /// What the key says of slices, arrivals and ends, where that is not what a server's trace shows.
    #[serde(default)]
    pub words: BTreeMap<String, String>,
    pub lanes: Vec<Lane>,
}

/// Times are places on the axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// A scheduler's name, or idle: it decides the colour.
    pub case: String,
    pub name: String,
    /// From and to.
    pub slices: Vec<[f64; 2]>,
    /// From and to: it could have run, and another one did.
    #[serde(default)]
    pub waiting: Vec<[f64; 2]>,
    pub arrivals: Vec<f64>,
    /// Nothing was left to serve.
    pub ends: Vec<f64>,
    /// Scheduling deadlines.
    pub deadlines: Vec<f64>,
}
