// SPDX-License-Identifier: MIT
//! A program far from its X server, on a link of its own: what the experiments about slow links have in common.
//!
//! | file | what |
//! |---|---|
//! | `line` | a rate and a delay |
//! | `program` | who is started |
//! | `site` | the two ends of a link, with an X server at one of them |
//! | `cells` | what is to be measured, and what is kept |
//! | `crew` | who measures, and how many at once |
//! | `ssh`, `nx` | proxies that carry X over it |

mod cells;
mod crew;
mod line;
pub(super) mod nx;
mod program;
mod site;
pub(super) mod ssh;

pub(super) use cells::{Cells, Part};
pub(super) use crew::Job;
pub(super) use line::{Line, delay_title, rate_title};
pub(super) use program::Program;
pub(super) use site::Site;
