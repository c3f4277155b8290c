// SPDX-License-Identifier: MIT
//! A program far from its X server, on a link of its own: what the experiments about slow links have in common.
//!
//! | file | what |
//! |---|---|
//! | `line` | a rate and a delay |
//! | `program` | who is started |
//! | `site` | the two ends of a link, with an X server at one of them |
//! | `crew` | who measures, and how many at once |
//! | `ssh`, `nx` | proxies that carry X over it |

pub(super) mod crew;
mod line;
pub(super) mod nx;
mod program;
mod site;
pub(super) mod ssh;

use anyhow::{Result, bail};
use std::env;

pub(super) use line::{Line, delay_title, rate_title};
pub(super) use program::Program;
pub(super) use site::Site;

/// Keeps the cases that have in their titles what the environment variable says, if it is set.
pub(super) fn keep_named<C>(variable: &str, cases: &mut Vec<C>, title: impl Fn(&C) -> String) -> Result<()> {
    let part = env::var(variable).unwrap_or_default();
    let example = cases.first().map(&title).unwrap_or_default();
    cases.retain(|case| title(case).contains(&part));
    if cases.is_empty() {
        bail!("{variable}={part} names no cell: write a part of a title such as '{example}'");
    }
    Ok(())
}
