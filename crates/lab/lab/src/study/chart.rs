// SPDX-License-Identifier: MIT
//! Charts of a study, as data; the page draws them.
//!
//! The page carries the data, so a chart with many points is reduced to what a screen can show ([`Chart::reduce`]).

use serde::{Deserialize, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Chart {
    Scatter(Scatter),
    Ranges(Ranges),
    Lines(Lines),
    Lanes(Lanes),
}

/// Lines with at most this many points have marks with tooltips. The page's script uses the same number.
const MAX_MARKS: usize = 60;

/// A chart has fewer pixels than this in width and in height.
const PIXELS: f64 = 1000.0;

impl Chart {
    /// Rounds the points of scatters and of lines without marks to four significant digits, finer than a pixel. In such
    /// lines, points on a straight piece are removed.
    pub fn reduce(&mut self) {
        let round = |points: &mut Vec<[f64; 2]>| points.iter_mut().flatten().for_each(|value| *value = rounded(*value));
        match self {
            Chart::Scatter(scatter) => scatter.panels.iter_mut().for_each(|panel| round(&mut panel.points)),
            Chart::Lines(chart) => {
                let is_linear = !chart.log_x && !chart.log_y;
                let values = chart.lines.iter().flat_map(|line| &line.points).map(|point| point[1]);
                let tolerance = values.fold(0.0, f64::max) / PIXELS;
                for line in chart.lines.iter_mut().filter(|line| line.points.len() > MAX_MARKS) {
                    round(&mut line.points);
                    if is_linear && line.deviations.is_empty() {
                        line.points = bends(&line.points, tolerance);
                        line.unmarked = true;
                    }
                }
            }
            Chart::Ranges(_) | Chart::Lanes(_) => {}
        }
    }
}

fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The ends of straight pieces that are at most `tolerance` away from every point.
///
/// From the last end, each further point narrows the range of slopes that a piece can have. A piece ends before the
/// point that would leave no possible slope. Keeps every point whose x is less than that of the previous point.
fn bends(points: &[[f64; 2]], tolerance: f64) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = Vec::new();
    let mut slopes = (f64::NEG_INFINITY, f64::INFINITY);
    let mut before: Option<[f64; 2]> = None;
    for &point in points {
        let Some(last) = kept.last().copied() else {
            kept.push(point);
            continue;
        };
        let slopes_to = |from: [f64; 2]| {
            let (x, y) = (point[0] - from[0], point[1] - from[1]);
            (x > 0.0).then_some(((y - tolerance) / x, y / x, (y + tolerance) / x))
        };
        let is_on = slopes_to(last).is_some_and(|(_, slope, _)| (slopes.0..=slopes.1).contains(&slope));
        let from = if is_on { last } else { before.unwrap_or(last) };
        if !is_on {
            kept.extend(before);
            slopes = (f64::NEG_INFINITY, f64::INFINITY);
        }
        if let Some((low, _, high)) = slopes_to(from) {
            slopes = (slopes.0.max(low), slopes.1.min(high));
        }
        before = Some(point);
    }
    kept.extend(before);
    kept
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
    /// idle, reserved, or a scheduler's name; determines the colour.
    pub case: String,
    pub name: String,
    #[serde(serialize_with = "short")]
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
    /// Logarithmic y axis. Values of 0 and less are not drawn.
    pub log_y: bool,
    /// Logarithmic x axis, which then does not begin at 0.
    #[serde(default)]
    pub log_x: bool,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// idle, paper, or a scheduler's name; determines colour, dashes and marks.
    pub case: String,
    pub name: String,
    #[serde(serialize_with = "short")]
    pub points: Vec<[f64; 2]>,
    /// Standard deviations, drawn as bars; empty, or one for each point. Only results of earlier builds have them.
    pub deviations: Vec<f64>,
    /// True to draw no marks, because points were removed and a mark would look like a measurement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmarked: bool,
}

/// When each client was served, with one lane per client, as in the traces that the papers show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lanes {
    pub title: String,
    pub x_label: String,
    /// Length of the x axis, which begins at 0.
    pub length: f64,
    pub lanes: Vec<Lane>,
}

/// Times are positions on the x axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// A scheduler's name, or idle; determines the colour.
    pub case: String,
    pub name: String,
    pub slices: Vec<[f64; 2]>,
    pub arrivals: Vec<f64>,
    /// Instants at which its queue became empty.
    pub ends: Vec<f64>,
    pub deadlines: Vec<f64>,
}

/// Writes whole numbers without a decimal point.
fn short<S: Serializer>(points: &[[f64; 2]], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(points.iter().map(|point| point.map(Number)))
}

struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers up to this value are exact in floating point.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let Number(value) = *self;
        match value.fract() == 0.0 && value.abs() < EXACT {
            true => serializer.serialize_i64(value as i64),
            false => serializer.serialize_f64(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: usize) -> Chart {
        let line = Line { points: vec![[1234.0, 0.123_456]; count], ..Line::default() };
        Chart::Lines(Lines { lines: vec![line], ..Lines::default() })
    }

    #[test]
    fn only_lines_without_marks_are_rounded() {
        for (count, expected) in [(MAX_MARKS, "[1234,0.123456]"), (MAX_MARKS + 1, "[1234,0.1235]")] {
            let mut chart = line(count);
            chart.reduce();
            let text = serde_json::to_string(&chart).unwrap();
            assert!(text.contains(expected), "{count}: {text}");
            assert_eq!(serde_json::from_str::<Chart>(&text).unwrap(), chart);
        }
    }

    #[test]
    fn reduced_lines_stay_within_the_tolerance() {
        let straight: Vec<_> = (0..500).map(|x| [f64::from(x), 2.0 * f64::from(x)]).collect();
        assert_eq!(bends(&straight, 0.1), [straight[0], straight[499]]);
        let sawtooth: Vec<_> = (0..9).map(|x| [f64::from(x), f64::from(x % 2)]).collect();
        assert_eq!(bends(&sawtooth, 0.1), sawtooth);
        let curve: Vec<_> = (0..500).map(|x| [f64::from(x), f64::from(x * x) / 1e3]).collect();
        let kept = bends(&curve, 0.5);
        assert!(kept.len() < 60, "{}", kept.len());
        for point in &curve {
            let next = kept.iter().position(|end| end[0] >= point[0]).unwrap().max(1);
            let ([x0, y0], [x1, y1]) = (kept[next - 1], kept[next]);
            let drawn = y0 + (y1 - y0) * (point[0] - x0) / (x1 - x0);
            assert!((drawn - point[1]).abs() <= 0.5 + 1e-9, "{point:?} is drawn at {drawn}");
        }
    }

    #[test]
    fn the_page_draws_marks_up_to_the_same_number_of_points() {
        let script = include_str!("../page/lines.js");
        assert!(script.contains(&format!("const MAX_MARKS = {MAX_MARKS};")));
    }
}
