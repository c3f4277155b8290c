// SPDX-License-Identifier: MIT
//! Measures programs that are far from their X server. Each measurement is a cell with its own link between two network
//! namespaces.
//!
//! This is code because a file of lab/experiments describes servers and loads on one machine, without a network. The
//! experiments `grid` and `near` each list their cells and evaluate them.

mod case;
mod cell;
mod cells;
mod nx;
mod predicted;
mod run;
mod site;
mod ssh;
mod start;
mod steady;

pub(super) use case::{Capture, Case, Line, Program, Route};
#[cfg(test)]
pub(super) use cell::Trips;
pub(super) use cell::{Cell, RequestCounts, Start};
pub(super) use cells::{Cells, by_program, comparison_table};
#[cfg(test)]
pub(super) use predicted::Proxied;
pub(super) use predicted::{Predicted, PredictedStart};
pub(super) use run::measure;
use site::Site;
