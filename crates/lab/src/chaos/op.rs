// SPDX-License-Identifier: MIT
//! Operations on a server, as values: drawn by seeded dice and printed before they run.
//!
//! No operation may lock out other clients. Priorities for the policy `fixed` are therefore lower than that of a new
//! client, and a capped client can still get at least a tenth of the server.

use xqos_abi::Grouping;
use xqos_abi::trace::Level;
use xqos_core::PolicyKind;
use xqos_sim::Dice;

/// Maximum number of programs that run at the same time.
pub(super) const SLOTS: usize = 8;
/// Each program is x11perf with one of these tests.
pub(super) const TESTS: [&str; 7] =
    ["-noop", "-rect10", "-rect500", "-getimagexy100", "-putimage100", "-ellipse100", "-pointer"];

/// The target to which garbage is sent.
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

/// One operation. `slot` names a program. If that program is not running or not yet connected, nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Start {
        slot: usize,
        test: usize,
    },
    Stop {
        slot: usize,
    },
    Continue {
        slot: usize,
    },
    Kill {
        slot: usize,
    },
    End {
        slot: usize,
    },
    Reserve {
        slot: usize,
        budget_us: u32,
        period_us: u32,
        hard: bool,
    },
    Release {
        slot: usize,
    },
    Weight {
        slot: usize,
        weight: u32,
    },
    Priority {
        slot: usize,
        priority: i32,
    },
    Group {
        slot: usize,
        name: &'static str,
    },
    GroupWeight {
        slot: usize,
        weight: u32,
    },
    GroupCap {
        slot: usize,
        ppm: u32,
    },
    Groups {
        grouping: Grouping,
        user_limit_ppm: u32,
    },
    Policy {
        kind: PolicyKind,
        slice_us: Option<u32>,
    },
    Pacing {
        limit_us: u32,
        floor_us: u32,
    },
    Desktop {
        share_ppm: u32,
    },
    Trace {
        level: Level,
        capacity: u32,
    },
    ReadTrace,
    StopTrace,
    Lend {
        on: bool,
    },
    Rules {
        on: bool,
    },
    Grab {
        ms: u64,
    },
    Garbage {
        target: Target,
        seed: u64,
        bytes: usize,
    },
    Rest {
        ms: u64,
    },
    /// End all programs. The server resets when the last connection is closed.
    Reset,
}

/// Draws an operation. The ranges are probabilities in thousandths.
pub(super) fn draw(dice: &mut Dice) -> Op {
    let slot = dice.below(SLOTS as u64) as usize;
    match dice.below(1000) {
        0..180 => Op::Start { slot, test: dice.below(TESTS.len() as u64) as usize },
        180..230 => Op::Stop { slot },
        230..300 => Op::Continue { slot },
        300..360 => Op::Kill { slot },
        360..390 => Op::End { slot },
        390..480 => {
            let period_us = 1_000 + dice.below(100_000) as u32;
            let budget_us = dice.below(u64::from(period_us) / 2) as u32;
            Op::Reserve { slot, budget_us, period_us, hard: dice.below(2) == 0 }
        }
        480..510 => Op::Release { slot },
        510..550 => Op::Weight { slot, weight: dice.below(3_000) as u32 },
        550..580 => Op::Priority { slot, priority: -(dice.below(1_000) as i32) },
        580..610 => Op::Group { slot, name: ["", "one", "two"][dice.below(3) as usize] },
        610..630 => Op::GroupWeight { slot, weight: dice.below(3_000) as u32 },
        630..650 => Op::GroupCap { slot, ppm: 100_000 + dice.below(900_001) as u32 },
        _ => draw_of_server(dice),
    }
}

fn draw_of_server(dice: &mut Dice) -> Op {
    match dice.below(350) {
        0..20 => {
            let grouping = Grouping::ALL[dice.below(Grouping::ALL.len() as u64) as usize];
            Op::Groups { grouping, user_limit_ppm: 200_000 + dice.below(800_001) as u32 }
        }
        20..60 => {
            let kind = PolicyKind::ALL[dice.below(PolicyKind::ALL.len() as u64) as usize];
            Op::Policy { kind, slice_us: (dice.below(2) == 0).then(|| 100 + dice.below(20_000) as u32) }
        }
        60..80 => Op::Pacing { limit_us: dice.below(100_000) as u32, floor_us: dice.below(100_000) as u32 },
        80..90 => Op::Desktop { share_ppm: dice.below(1_000_000) as u32 },
        90..120 => {
            let level = if dice.below(2) == 0 { Level::Slices } else { Level::Requests };
            Op::Trace { level, capacity: 1 << dice.below(16) }
        }
        120..145 => Op::ReadTrace,
        145..160 => Op::StopTrace,
        160..180 => Op::Lend { on: dice.below(2) == 0 },
        180..195 => Op::Rules { on: dice.below(2) == 0 },
        195..215 => Op::Grab { ms: dice.below(100) },
        215..285 => {
            let targets = [Target::Setup, Target::Core, Target::Extension, Target::Control];
            let target = targets[dice.below(targets.len() as u64) as usize];
            Op::Garbage { target, seed: dice.below(u64::MAX), bytes: 1 + dice.below(20_000) as usize }
        }
        285..345 => Op::Rest { ms: dice.below(200) },
        _ => Op::Reset,
    }
}
