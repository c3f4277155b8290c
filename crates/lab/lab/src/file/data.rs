// SPDX-License-Identifier: MIT
//! Measurements by case and turn, and how expressions find them.

use super::format::{Definition, Setting};
use crate::papers;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples and values of a trial, by name.
pub(super) type Figures = (BTreeMap<String, Vec<f64>>, BTreeMap<String, f64>);

/// Samples or values with owned names.
pub(super) fn named<T>(all: impl IntoIterator<Item = (&'static str, T)>) -> BTreeMap<String, T> {
    all.into_iter().map(|(name, one)| (name.to_owned(), one)).collect()
}

/// The name of each axis and of one of its values.
pub(super) type Cell = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Trial {
    pub case: Cell,
    pub turn: u32,
    pub values: BTreeMap<String, f64>,
    pub samples: BTreeMap<String, Vec<f64>>,
}

#[derive(Clone, Debug)]
pub(super) struct AxisValues {
    pub name: String,
    pub values: Vec<(String, Setting)>,
}

#[derive(Debug)]
pub(super) struct Data {
    pub axes: Vec<AxisValues>,
    /// Figures of papers that apply to all cases.
    pub published: BTreeMap<String, String>,
    trials: BTreeMap<(Cell, u32), Trial>,
    turns: u32,
}

/// A place in the data: a value for each axis, and a turn.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    data: &'a Data,
    pub cell: Cell,
    turn: u32,
}

pub(super) fn axes(definition: &Definition) -> Vec<AxisValues> {
    let of = |(name, axis): (&String, &super::format::Axis)| AxisValues {
        name: name.clone(),
        values: axis.0.iter().map(|(value, setting)| (value.clone(), setting.clone())).collect(),
    };
    definition.axis.iter().map(of).collect()
}

/// All cells of these axes; the last axis changes fastest.
pub(super) fn cells(axes: &[&AxisValues]) -> Vec<Cell> {
    axes.iter().fold(vec![Cell::new()], |cells, axis| {
        let with = |cell: &Cell, value: &str| {
            let mut cell = cell.clone();
            cell.insert(axis.name.clone(), value.to_owned());
            cell
        };
        cells.iter().flat_map(|cell| axis.values.iter().map(|(value, _)| with(cell, value))).collect()
    })
}

/// Replaces each `{AXIS}` in the text with the name of this axis's value.
pub(super) fn filled(text: &str, cell: &Cell) -> String {
    replaced(text, cell, |_, value| value)
}

fn replaced<'a>(text: &str, cell: &'a Cell, show: impl Fn(&str, &'a str) -> &'a str) -> String {
    cell.iter().fold(text.to_owned(), |text, (axis, value)| text.replace(&format!("{{{axis}}}"), show(axis, value)))
}

impl AxisValues {
    pub fn title<'a>(&'a self, value: &'a str) -> &'a str {
        self.setting(value).and_then(|setting| setting.title.as_deref()).unwrap_or(value)
    }

    /// `None` if the axis has no such value.
    pub fn setting(&self, value: &str) -> Option<&Setting> {
        self.values.iter().find(|(name, _)| name == value).map(|(_, setting)| setting)
    }
}

impl Data {
    pub fn new(axes: Vec<AxisValues>, trials: impl IntoIterator<Item = Trial>) -> Data {
        let trials: BTreeMap<_, _> =
            trials.into_iter().map(|trial| ((trial.case.clone(), trial.turn), trial)).collect();
        let turns = trials.keys().map(|(_, turn)| turn + 1).max().unwrap_or(0);
        Data { axes, published: BTreeMap::new(), trials, turns }
    }

    /// Combines the turns of each case into one trial: all samples, and the mean of each value.
    pub fn pooled(&self) -> Data {
        let mut pooled: BTreeMap<Cell, Trial> = BTreeMap::new();
        for trial in self.trials.values() {
            let all = pooled
                .entry(trial.case.clone())
                .or_insert_with(|| Trial { case: trial.case.clone(), ..Trial::default() });
            for (name, samples) in &trial.samples {
                all.samples.entry(name.clone()).or_default().extend(samples);
            }
            let turns = self.trials.keys().filter(|(case, _)| *case == trial.case).count() as f64;
            for (name, value) in &trial.values {
                *all.values.entry(name.clone()).or_default() += value / turns;
            }
        }
        Data { published: self.published.clone(), ..Data::new(self.axes.clone(), pooled.into_values()) }
    }

    pub fn at(&self, cell: &Cell) -> At<'_> {
        At { data: self, cell: cell.clone(), turn: 0 }
    }

    pub fn axis(&self, name: &str) -> Option<&AxisValues> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// The cells of these axes that match `only` and have measurements.
    pub fn measured(&self, axes: &[String], only: &BTreeMap<String, Vec<String>>, within: &Cell) -> Vec<Cell> {
        let axes: Vec<&AxisValues> = axes.iter().filter_map(|name| self.axis(name)).collect();
        let is_shown = |cell: &Cell| {
            axes.iter().all(|axis| match (only.get(&axis.name), cell.get(&axis.name)) {
                (Some(values), Some(value)) => values.contains(value),
                (_, value) => value.and_then(|value| axis.setting(value)).is_none_or(|it| it.hidden != Some(true)),
            })
        };
        let with = |cell: Cell| within.clone().into_iter().chain(cell).collect::<Cell>();
        cells(&axes).into_iter().filter(is_shown).map(with).filter(|cell| self.has(cell)).collect()
    }

    pub fn titled(&self, text: &str, cell: &Cell) -> String {
        replaced(text, cell, |axis, value| self.axis(axis).map_or(value, |axis| axis.title(value)))
    }

    /// True if a trial matches all axes of the cell.
    fn has(&self, cell: &Cell) -> bool {
        self.trials.keys().any(|(case, _)| cell.iter().all(|(axis, value)| case.get(axis) == Some(value)))
    }
}

impl<'a> At<'a> {
    fn trial(&self) -> Option<&'a Trial> {
        self.data.trials.get(&(self.cell.clone(), self.turn))
    }

    /// The value with this name: a value of the trial, the number of an axis value, or the mean of samples.
    pub fn value(&self, name: &str) -> Option<f64> {
        if let Some(value) = self.cell.get(name) {
            return number(value);
        }
        let trial = self.trial()?;
        let of_samples = || trial.samples.get(name).filter(|samples| !samples.is_empty());
        trial.values.get(name).copied().or_else(|| of_samples().map(|samples| crate::statistics::mean(samples)))
    }

    pub fn samples(&self, name: &str) -> Option<&'a [f64]> {
        self.trial()?.samples.get(name).map(Vec::as_slice)
    }

    /// The published figure to which an axis value or the file gives this name: `PAPER.FIGURE`, or `PAPER.FIGURE(AXIS,
    /// AXIS)` for a table cell, whose row and column are the positions of the two axes' values.
    pub fn published(&self, name: &str) -> Option<f64> {
        let of_axis =
            |axis: &AxisValues| axis.setting(self.cell.get(&axis.name)?)?.published.as_ref()?.get(name).cloned();
        let key = self.data.axes.iter().find_map(of_axis).or_else(|| self.data.published.get(name).cloned())?;
        let Some((figure, axes)) = key.strip_suffix(')').and_then(|key| key.split_once('(')) else {
            return papers::value(&key);
        };
        let (rows, columns) = axes.split_once(',')?;
        let place = |axis: &str| {
            let axis = self.data.axis(axis.trim())?;
            axis.values.iter().position(|(value, _)| Some(value) == self.cell.get(&axis.name))
        };
        papers::cell(figure, place(rows)?, place(columns)?)
    }

    pub fn turns(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let at = self.clone();
        (0..self.data.turns).map(move |turn| At { turn, ..at.clone() })
    }

    pub fn elsewhere(&self, places: &[(String, String)]) -> At<'a> {
        let mut at = self.clone();
        at.cell.extend(places.iter().cloned());
        at
    }
}

/// `0.3`, or a fraction such as `1/6`.
pub(super) fn number(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((over, under)) => Some(over.parse::<f64>().ok()? / under.parse::<f64>().ok()?),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
pub(super) mod tests;
