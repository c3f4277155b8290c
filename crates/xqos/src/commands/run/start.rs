// SPDX-License-Identifier: MIT
//! Starts the program, unless its reservation would be refused.

use super::Arguments;
use crate::kind::Amount;
use anyhow::{Context, Result, bail};
use std::process::Command;
use xqos_abi::Subject;
use xqos_agent::session::Session;
use xqos_agent::{admission, processor};
use xqos_sys as sys;
use xqos_text::quantity::Reservation;

impl Arguments {
    /// Detects a refusal before the program is started.
    pub(super) fn check_first(&self, session: &Session, wanted: Reservation) -> Result<()> {
        let report = session.control.check_admission(Subject::Client(0), wanted.budget.0, wanted.period.0)?;
        if !report.admitted {
            let why = admission::explain(&report, report.failing_client, &[]);
            bail!("{} was not started, {wanted} is refused: {why}", self.shown());
        }
        Ok(())
    }

    pub(super) fn start(&self, display: Option<&str>) -> Result<i32> {
        let (program, arguments) = self.program.split_first().context("no program is given: add -- PROGRAM")?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(display) = display {
            command.env("DISPLAY", display);
        }
        sys::unblock_signals_in(&mut command);
        if let Some(cpu) = self.fixed_cpu() {
            sys::schedule(&mut command, processor::attributes(cpu));
        }
        let otherwise = || format!("cannot start {}: check its name after --", self.shown());
        let child = command.spawn().map_err(|error| processor::not_started(self.fixed_cpu(), error, otherwise()))?;
        Ok(child.id() as i32)
    }

    pub(super) fn fixed_cpu(&self) -> Option<Reservation> {
        self.cpu.and_then(Amount::fixed)
    }
}
