// SPDX-License-Identifier: MIT
//! Operations on a server, as values: drawn by seeded dice and printed before they run.
//!
//! No operation may lock out other clients. Priorities for the policy `fixed` are therefore lower than that of a new
//! client, and a capped client can still get at least a tenth of the server.

use xqos_abi::trace::Level;
use xqos_abi::{Grouping, Label, Setting, Subject};
use xqos_core::PolicyKind;
use xqos_sim::Dice;

pub(super) const SLOTS: usize = 8;
/// Each program is x11perf with one of these tests.
pub(super) const TESTS: [&str; 7] =
    ["-noop", "-rect10", "-rect500", "-getimagexy100", "-putimage100", "-ellipse100", "-pointer"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Bytes in place of a client's connection setup.
    Setup,
    /// Core protocol requests with random content and length.
    Core,
    /// XQOS requests with random content and length.
    Extension,
    Control,
}

/// One operation. A slot names a program; if that program is not running or not yet connected, nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Start(usize, usize),
    Stop(usize),
    Continue(usize),
    Kill(usize),
    End(usize),
    /// Set a property; the subject is a slot or the server.
    Set(Subject, Setting),
    Release(usize),
    Policy(PolicyKind, Option<u32>),
    Trace(Level, u32),
    ReadTrace,
    StopTrace,
    Lend(bool),
    Rules(bool),
    Grab(u64),
    /// Send this many bytes of garbage, with this seed of their values.
    Garbage(Target, usize, u64),
    Rest(u64),
    /// End all programs. The server resets when the last connection is closed.
    Reset,
}

/// Draws an operation. The ranges are probabilities in thousandths.
pub(super) fn draw(dice: &mut Dice) -> Op {
    let slot = dice.below(SLOTS as u64) as usize;
    let (client, group) = (Subject::Client(slot as u32), Subject::Group(slot as u32));
    match dice.below(1000) {
        0..180 => Op::Start(slot, dice.below(TESTS.len() as u64) as usize),
        180..230 => Op::Stop(slot),
        230..300 => Op::Continue(slot),
        300..360 => Op::Kill(slot),
        360..390 => Op::End(slot),
        390..480 => {
            let period_us = 1_000 + dice.below(100_000) as u32;
            let budget_us = dice.below(u64::from(period_us) / 2) as u32;
            Op::Set(client, Setting::reservation(budget_us, period_us, dice.below(2) == 0))
        }
        480..510 => Op::Release(slot),
        510..550 => Op::Set(client, Setting::Weight(dice.below(3_000) as u32)),
        550..580 => Op::Set(client, Setting::Priority(-(dice.below(1_000) as i32))),
        580..610 => Op::Set(client, Setting::Group(Label::new(["", "one", "two"][dice.below(3) as usize]))),
        610..630 => Op::Set(group, Setting::Weight(dice.below(3_000) as u32)),
        630..650 => Op::Set(group, Setting::Cap(100_000 + dice.below(900_001) as u32)),
        _ => draw_of_server(dice),
    }
}

fn draw_of_server(dice: &mut Dice) -> Op {
    let set = |setting| Op::Set(Subject::Server, setting);
    match dice.below(350) {
        0..10 => set(Setting::Grouping(Grouping::ALL[dice.below(Grouping::ALL.len() as u64) as usize])),
        10..20 => set(Setting::UserLimit(200_000 + dice.below(800_001) as u32)),
        20..60 => {
            let kind = PolicyKind::ALL[dice.below(PolicyKind::ALL.len() as u64) as usize];
            Op::Policy(kind, (dice.below(2) == 0).then(|| 100 + dice.below(20_000) as u32))
        }
        60..80 => set(Setting::pacing(dice.below(100_000) as u32, dice.below(100_000) as u32)),
        80..90 => set(Setting::Desktop(dice.below(1_000_000) as u32)),
        90..120 => {
            let level = if dice.below(2) == 0 { Level::Slices } else { Level::Requests };
            Op::Trace(level, 1 << dice.below(16))
        }
        120..145 => Op::ReadTrace,
        145..160 => Op::StopTrace,
        160..180 => Op::Lend(dice.below(2) == 0),
        180..195 => Op::Rules(dice.below(2) == 0),
        195..215 => Op::Grab(dice.below(100)),
        215..285 => {
            let targets = [Target::Setup, Target::Core, Target::Extension, Target::Control];
            let target = targets[dice.below(targets.len() as u64) as usize];
            let seed = dice.below(u64::MAX);
            Op::Garbage(target, 1 + dice.below(20_000) as usize, seed)
        }
        285..345 => Op::Rest(dice.below(200)),
        _ => Op::Reset,
    }
}
