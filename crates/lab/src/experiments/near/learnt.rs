// SPDX-License-Identifier: MIT
//! What a program asked at its last start, as `xqos near` keeps it: learnt in a start over a fast link, laid down in the
//! home folder of each cell.
//!
//! The second start is what is measured. A file has questions and no answers, so that it does not matter over which link
//! they were asked.

use super::start;
use crate::experiments::far::{Line, Program, Site};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;
use xqos_wire::link::Side;

const FAST: Line = Line { kbit_per_s: 100_000, delay_us: 100 };
const LIMIT: Duration = Duration::from_secs(60);
/// As the display that ssh forwards is called in all cells.
const THROUGH_SSH: &str = "localhost:10.0";

#[derive(Debug, Default)]
pub(super) struct Learnt(BTreeMap<Program, Vec<u8>>);

impl Learnt {
    /// Starts each of them once.
    pub fn of(programs: impl IntoIterator<Item = Program>, mut say: impl FnMut(Program)) -> Result<Learnt> {
        let mut all = BTreeMap::new();
        for program in programs {
            say(program);
            all.insert(program, learn(program).with_context(|| format!("the first start of {}", program.title()))?);
        }
        Ok(Learnt(all))
    }

    /// For programs of that site, whichever way they go.
    pub fn lay_down(&self, site: &Site, program: Program) -> Result<()> {
        let Some(bytes) = self.0.get(&program) else { return Ok(()) };
        for display in [&site.far_display(), &site.near_display(), THROUGH_SSH] {
            let path = file(site, display, program);
            DirBuilder::new().recursive(true).mode(0o700).create(path.parent().context("a file is in a folder")?)?;
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

fn file(site: &Site, display: &str, program: Program) -> PathBuf {
    site.path("home/.cache/xqos/near").join(display.replace(':', ".")).join(program.command()[0])
}

fn learn(program: Program) -> Result<Vec<u8>> {
    let site = Site::open(FAST, 0)?;
    let actor = site.capture(Side::Server, false, FAST.silence(), LIMIT)?;
    start::scripts(&site)?;
    let mut near = start::near(&site, Side::Client, program, &[])?;
    site.wait_until_quiet(actor, &mut near, LIMIT)?;
    start::let_end(&mut near);
    fs::read(file(&site, &site.far_display(), program)).with_context(|| format!("near: {}", site.complaint("program")))
}
