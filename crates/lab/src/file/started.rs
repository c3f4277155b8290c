// SPDX-License-Identifier: MIT
//! A running server of an experiment, with its desktop and the policy of a case.

use super::case::{Case, Desktop};
use super::onscreen::OnScreen;
use crate::server::{Server, Setup};
use anyhow::{Result, bail};
use xqos_abi::{Grouping, PolicyChange, Setting, Subject};
use xqos_client::Control;
use xqos_core::{Parameters, PolicyKind};

/// A paced client may continue at least once in this time, so it still reaches 20 frames a second.
const FLOOR_US: u32 = 50_000;
/// Blocking time that admission assumes for the reservation of a measured client.
const BLOCKING_US: u32 = 1000;

#[derive(Debug)]
pub(super) struct Started {
    // Drop order: the clients of the screen end before the server.
    pub screen: Option<OnScreen>,
    pub server: Server,
    pub control: Option<Control>,
}

impl Started {
    /// Fails if xqos has stepped aside, because xqos would then not be measured.
    pub fn new(setup: &Setup, desktop: Option<&Desktop>) -> Result<Started> {
        let server = setup.start()?;
        // Connect once, because the first client causes allocations that the server makes only once.
        drop(server.connect()?);
        let control = setup.module.as_ref().map(|_| server.armed()).transpose()?;
        if let Some(control) = &control {
            let is_below = setup.environment.iter().any(|(name, host)| name == "XQOS_HOST" && host == "libc");
            if is_below && control.is_served_through_libc() != Some(true) {
                bail!("{:?} is not served by libc:\n{}", setup.kind, server.log());
            }
        }
        let screen = desktop.map(|desktop| OnScreen::start(&server, control.as_ref(), desktop)).transpose()?;
        Ok(Started { screen, server, control })
    }

    /// Lets the server follow the case's policy and cut long requests, with the case's slices or the policy's own.
    pub fn follow(&self, case: &Case) -> Result<()> {
        let Some(control) = &self.control else { return Ok(()) };
        control.set_pacing(case.pacing.map_or(0, |limit| limit.as_micros() as u32), FLOOR_US)?;
        control.set(Subject::Server, Setting::Cut(case.cut_us))?;
        control.set(Subject::Server, Setting::Grouping(case.groups.unwrap_or(Grouping::Application)))?;
        let reserves = case.reserve.is_some() || case.loads.iter().any(|load| load.reserve.is_some());
        follow(control, case.policy.unwrap_or(PolicyKind::Fair), case.slices_us, reserves)
    }
}

/// Makes the server follow this policy, with these slices or the policy's own: the maximum, and the limit to which
/// `smart` lets slices grow if a client runs alone. `reserves` is true if a measured client has a reservation.
pub(super) fn follow(
    control: &Control,
    policy: PolicyKind,
    [slice_us, maximum_us]: [Option<u32>; 2],
    reserves: bool,
) -> Result<()> {
    let usual = Parameters::default();
    let us = |ns: u64| Some((ns / 1000) as u32);
    // Send a single request, because with slices of 5 ms a second one would wait for the server's own timer.
    Ok(control.set_policy(PolicyChange {
        policy: Some(policy),
        slice_us: slice_us.or(us(usual.slice_ns)),
        timer_interval_us: slice_us.or(us(usual.timer_interval_ns)),
        maximum_slice_us: maximum_us.or(us(usual.maximum_slice_ns)),
        // Otherwise admission might refuse the reservation because of a long request that another client has made.
        blocking_us: Some(if reserves { BLOCKING_US } else { 0 }),
        ..PolicyChange::default()
    })?)
}
