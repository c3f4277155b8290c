// SPDX-License-Identifier: MIT
//! Starts the program, unless its reservation would be refused.

use super::Wish;
use crate::amount::{Amount, CPU_NEEDS_AUTO};
use crate::error::{Result, bail, refused};
use crate::session::{Session, out_of_limits};
use crate::{admission, processor};
use std::process::Command;
use xqos_abi::{ServerInfo, Subject};
use xqos_sys as sys;
use xqos_text::quantity::Reservation;

impl Wish {
    /// Refuses what is known to be impossible before the program is started.
    pub(super) fn check(&self, session: &Session, info: &ServerInfo) -> Result<()> {
        if self.is_strict && self.reserve == Some(Amount::Auto) {
            bail!("auto can reserve only when the program runs: leave out --strict");
        }
        if let Some(wanted) = self.reserve.and_then(Amount::fixed) {
            if let Some(why) = out_of_limits(wanted, info) {
                bail!("{wanted} is refused: {why}");
            }
            if self.is_strict {
                self.check_admission(session, wanted)?;
            }
        }
        if let Some(cpu) = self.fixed_cpu() {
            processor::check(cpu)?;
        }
        if self.cpu == Some(Amount::Auto) && self.reserve != Some(Amount::Auto) {
            bail!("{CPU_NEEDS_AUTO}: add --reserve auto");
        }
        Ok(())
    }

    fn check_admission(&self, session: &Session, wanted: Reservation) -> Result<()> {
        let report = session.control.check_admission(Subject::Client(0), wanted.budget.0, wanted.period.0)?;
        if !report.admitted {
            let why = admission::explain(&report, report.failing_client, &[]);
            bail!("{} was not started, {wanted} is refused: {why}", self.shown());
        }
        Ok(())
    }

    pub(super) fn shown(&self) -> String {
        self.program.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(super) fn start(&self, display: Option<&str>) -> Result<i32> {
        let (program, arguments) =
            self.program.split_first().ok_or_else(|| refused!("no program is given: add -- PROGRAM"))?;
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
