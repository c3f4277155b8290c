// SPDX-License-Identifier: MIT
//! The options of `xqos run`, the checks before the program starts, and its start.

use crate::amount::{Amount, CPU_NEEDS_AUTO, KindOptions};
use crate::error::{Result, bail, refused};
use crate::session::{Session, out_of_limits};
use crate::{admission, processor};
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::process::Command;
use xqos_abi::{ServerInfo, Subject};
use xqos_rules::values::Weight;
use xqos_sys as sys;
use xqos_text::quantity::Reservation;

/// Starts a program with a reservation, a weight or processor time
///
/// Each X connection of the program gets these settings as soon as it is made, even if the program is started through a
/// shell, env, nice or a launcher that forks and exits. Programs that it starts itself get no settings: a reservation
/// for a panel or a terminal is not meant for the programs started from it. All settings end with the connections.
///
/// With --reserve auto, xqos measures the program: a connection with a steady rhythm, such as that of a video player,
/// gets what it needs, and its reservation follows later changes.
///
/// If a reservation is refused because too much is reserved already, the connection is served like any other. The
/// program keeps running unless --strict is given.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_args(|arg| if ["hard", "soft"].contains(&arg.get_id().as_str()) { arg.requires("reserve") } else { arg }))]
#[command(group = ArgGroup::new("wish").args(["reserve", "weight", "cpu"]).required(true).multiple(true))]
pub struct RunOptions {
    /// Server time and period, such as 3ms/10ms; auto measures the need
    #[arg(long, value_name = "BUDGET/PERIOD|auto")]
    pub(super) reserve: Option<Amount>,
    #[command(flatten)]
    pub(super) kind: KindOptions,
    /// Share of server time relative to other clients, 0.01 to 100; 1 is the default (policy fair)
    #[arg(long, value_name = "W")]
    pub(super) weight: Option<Weight>,
    /// Processor time and period for the program's main thread, such as 2ms/10ms; with --reserve auto, auto measures
    /// the need (SCHED_DEADLINE; other threads get nice value -15; needs CAP_SYS_NICE)
    #[arg(long, value_name = "BUDGET/PERIOD|auto")]
    pub(super) cpu: Option<Amount>,
    /// Stop the program if its reservation is refused, instead of running it without one
    #[arg(long, requires = "reserve")]
    pub(super) strict: bool,
    /// Print nothing on success
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(super) program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos run --reserve 3ms/10ms -- mpv film.mkv
  xqos run --reserve auto -- mpv film.mkv
  xqos run --reserve 2ms/8ms --hard -- sh -c 'cd game && ./start'
  xqos run --weight 0.5 --quiet -- firefox
  sudo -E xqos run --reserve 3ms/10ms --cpu 2ms/10ms -- ./player
  sudo -E xqos run --reserve auto --cpu auto -- ./player

Times need a unit: us, ms or s. To undo it while the program runs, use
xqos release --pid N or xqos weight --pid N 1.

Exit status: that of the program, or 128 + n if signal n ended it; 1 if it could
not be started, or was refused with --strict. INT, TERM and HUP are passed on to
it.";

impl RunOptions {
    /// Refuses impossible options before the program is started.
    pub(super) fn check(&self, session: &Session, info: &ServerInfo) -> Result<()> {
        if self.strict && self.reserve == Some(Amount::Auto) {
            bail!("auto can reserve only when the program runs: leave out --strict");
        }
        if let Some(wanted) = self.reserve.and_then(Amount::fixed) {
            if let Some(why) = out_of_limits(wanted, info) {
                bail!("{wanted} is refused: {why}");
            }
            if self.strict {
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
            bail!("{} was not started, because {wanted} is refused: {why}", self.shown());
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
