// SPDX-License-Identifier: MIT
//! A program far from its X server: one cell after the other, each with a link of its own between two network namespaces.
//!
//! This stays code: a file of lab/experiments has servers and loads on one machine, and no network between them. The
//! experiments `grid` and `near` are lists of cells, and what follows from them.
//!
//! | file | what |
//! |---|---|
//! | `case` | a program, a way that X goes, and a link: the name of a cell |
//! | `site` | the two ends of a link, with an X server at one of them |
//! | `start`, `ssh`, `nx` | how a program is started, each way |
//! | `cell` | a start, measured |
//! | `steady` | keys that are pressed after it |
//! | `predicted` | other starts, predicted from its capture |
//! | `run` | which cells are measured, and how many at once |
//! | `cells` | how studies look them up |

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
