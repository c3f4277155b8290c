// SPDX-License-Identifier: MIT
//! Reads the texts of a case's settings: lengths of time, reservations, and names. An error says what to write instead.

use crate::desk::Managers;
use std::time::Duration;
use xqos_abi::Grouping;
use xqos_abi::trace::Level;
use xqos_core::{PolicyKind, Reservation, ReservationKind};
use xqos_text::quantity;

pub(super) fn managers(text: &str) -> Result<Option<Managers>, String> {
    if text == "none" { Ok(None) } else { one_of(Managers::ALL, text).map(Some) }
}

pub(super) fn one_of<T: Copy>(all: &[(&str, T)], text: &str) -> Result<T, String> {
    let known = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
    found.ok_or_else(|| format!("there is no '{text}' here: write {}", known()))
}

pub(super) fn whole(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number"))
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    text.parse().map(quantity::Micros::duration)
}

/// `3ms/10ms`, `3ms/10ms hard`, `3ms/10ms soft=paper`, or a fraction of a period: `1/6 of 30ms hard`.
pub(super) fn reservation(text: &str) -> Result<Reservation, String> {
    let (what, kind) = match text.rsplit_once(' ').map(|(what, kind)| (what, ReservationKind::from_name(kind))) {
        Some((what, Some(kind))) => (what, kind),
        _ => (text, ReservationKind::Soft),
    };
    if let Some((part, period)) = what.split_once(" of ") {
        let period: quantity::Micros = period.parse()?;
        let (over, under) =
            part.split_once('/').ok_or_else(|| format!("'{part}' is not a fraction: write one such as 1/6"))?;
        let (over, under) = (u64::from(whole(over)?), u64::from(whole(under)?.max(1)));
        let budget_us = (u64::from(period.0) * over / under) as u32;
        return Ok(xqos_abi::reservation(budget_us, period.0, kind));
    }
    let quantity::Reservation { budget, period } = what.parse()?;
    Ok(xqos_abi::reservation(budget.0, period.0, kind))
}

/// Nice values of the server and of the window manager: `-1/1`.
pub(super) fn nice(text: &str) -> Result<[i32; 2], String> {
    let both = text.split_once('/').and_then(|(server, manager)| Some([server.parse().ok()?, manager.parse().ok()?]));
    both.ok_or_else(|| format!("'{text}' is not two nice values: write those of the server and the manager, as -1/1"))
}

pub(super) fn processor(text: &str) -> Result<(Duration, Duration), String> {
    let quantity::Reservation { budget, period } = text.parse()?;
    Ok((budget.duration(), period.duration()))
}

pub(super) fn policy(text: &str) -> Result<PolicyKind, String> {
    PolicyKind::from_name(text)
        .ok_or_else(|| format!("there is no policy '{text}': write classic, smart, smart-strict, stock, fair or fixed"))
}

pub(super) fn groups(text: &str) -> Result<Grouping, String> {
    Grouping::from_name(text).ok_or_else(|| format!("there are no groups by '{text}': write none, app or user"))
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    one_of(&[("slices", Level::Slices), ("requests", Level::Requests)], text)
}
