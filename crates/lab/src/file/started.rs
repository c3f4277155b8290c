// SPDX-License-Identifier: MIT
//! A server of an experiment that is up, with the desktop on it, and the policy that a case sets.

use super::case::{Case, Desktop};
use super::onscreen::OnScreen;
use crate::server::{Server, Setup};
use anyhow::{Result, bail};
use xqos_abi::{Grouping, PolicyChange};
use xqos_client::Control;
use xqos_core::{Parameters, PolicyKind};

/// What admission is told to reckon with where the measured client reserves: the longest request that others have made
/// may refuse the reservation, and is none of it.
const BLOCKING_US: u32 = 1000;

#[derive(Debug)]
pub(super) struct Started {
    // It ends before its server.
    pub screen: Option<OnScreen>,
    pub server: Server,
    pub control: Option<Control>,
}

impl Started {
    /// An error when xqos stepped aside, for then nothing of it would be measured.
    pub fn new(setup: &Setup, desktop: Option<&Desktop>) -> Result<Started> {
        let server = setup.start()?;
        // The first client makes a server touch what it needs once.
        drop(server.connect()?);
        let control = setup.module.as_ref().map(|_| server.control()).transpose()?;
        if let Some(control) = &control {
            let info = control.server_info()?;
            if !info.armed {
                bail!("xqos stepped aside: {}\n{}", info.reason, server.log());
            }
            let is_below = setup.environment.iter().any(|(name, host)| name == "XQOS_HOST" && host == "libc");
            if is_below && control.is_below() != Some(true) {
                bail!("{:?} is not served by libc:\n{}", setup.kind, server.log());
            }
        }
        let screen = desktop.map(|desktop| OnScreen::start(&server, control.as_ref(), desktop)).transpose()?;
        Ok(Started { screen, server, control })
    }

    /// From now on it follows the case's policy, with the intervals that it comes with.
    pub fn follow(&self, case: &Case) -> Result<()> {
        let Some(control) = &self.control else { return Ok(()) };
        let usual = Parameters::default();
        let us = |ns: u64| Some((ns / 1000) as u32);
        control.set_groups(case.groups.unwrap_or(Grouping::Application), 0)?;
        let reserves = case.reserve.is_some() || case.loads.iter().any(|load| load.reserve.is_some());
        Ok(control.set_policy(PolicyChange {
            policy: Some(case.policy.unwrap_or(PolicyKind::Fair)),
            slice_us: us(usual.slice_ns),
            timer_interval_us: us(usual.timer_interval_ns),
            maximum_slice_us: us(usual.maximum_slice_ns),
            blocking_us: Some(if reserves { BLOCKING_US } else { 0 }),
            ..PolicyChange::default()
        })?)
    }
}
