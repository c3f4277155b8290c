// SPDX-License-Identifier: MIT
//! A program far from its X server: one cell after the other, each with a link of its own between two network namespaces.
//!
//! This stays code: a file of lab/experiments has servers and loads on one machine, and no network between them. The
//! experiments `grid` and `near` are lists of cells, and what follows from them.

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

pub(super) use case::{Case, Line, Program, Watched, Way};
#[cfg(test)]
pub(super) use cell::Waits;
pub(super) use cell::{Cell, Start};
pub(super) use cells::{Cells, beside_the_paper, by_program};
#[cfg(test)]
pub(super) use predicted::Proxied;
pub(super) use predicted::{Predicted, PredictedStart};
pub(super) use run::measure;
use site::Site;
