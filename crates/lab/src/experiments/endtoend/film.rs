// SPDX-License-Identifier: MIT
//! A player beside burners, started with both reservations or with none, and the times between its frames.

use super::EXPOSE;
use crate::actor::{Actor, Role};
use crate::boost::Boost;
use crate::mpv::Playing;
use crate::periodic::FRAME;
use crate::program;
use crate::scheduler::Stage;
use crate::statistics::{Summary, deviation};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::time::Duration;

pub(super) const FRAME_MS: f64 = FRAME.as_millis() as f64;
/// An inter-frame time so far from [`FRAME_MS`] is as it should be.
pub(super) const TOLERANCE_MS: f64 = 3.0;
/// The window is made and shown in the first ones.
const FIRST_FRAMES: usize = 10;

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Player {
    /// Of ours, with one thread.
    Plain,
    Mpv,
}

impl Player {
    pub const ALL: [Player; 2] = [Player::Plain, Player::Mpv];

    pub fn title(self) -> &'static str {
        match self {
            Player::Plain => "a player of one thread",
            Player::Mpv => "mpv",
        }
    }

    /// Of a processor; of the server all have 3 ms in 10 ms.
    fn cpu(self) -> &'static str {
        match self {
            Player::Plain => "2ms/10ms",
            // It makes its picture itself.
            Player::Mpv => "4ms/10ms",
        }
    }

    /// `xqos run` with both reservations; refused, it does not play.
    fn launcher(self) -> Result<Command> {
        program::run_reserved("3ms/10ms", self.cpu())
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Film {
    pub turn: u32,
    pub player: Player,
    pub reserved: bool,
    /// Of each frame, when it was drawn.
    pub drawn_us: Vec<u64>,
}

/// In the order of the report.
pub(super) fn all() -> impl Iterator<Item = (Player, bool)> {
    Player::ALL.into_iter().flat_map(|player| [(player, false), (player, true)])
}

pub(super) fn title(player: Player, reserved: bool) -> String {
    format!("{}, {}", player.title(), if reserved { "both reservations" } else { "without" })
}

pub(super) fn show(stage: &Stage, player: Player, reserved: bool, time: Duration) -> Result<Film> {
    let frames = FIRST_FRAMES as u32 + (time.as_millis() / FRAME.as_millis()) as u32;
    let _boost = reserved.then(|| Boost::start(stage.server().display(), EXPOSE)).transpose()?;
    let launcher = reserved.then(|| player.launcher()).transpose()?;
    let drawn_ns: Vec<u64> = match player {
        Player::Plain => {
            let (display, role) = (stage.server().display(), Role::Player { frames });
            let mut actor = match launcher {
                Some(launcher) => Actor::start_under(launcher, display, role)?,
                None => Actor::start(display, role)?,
            };
            actor.hear()?
        }
        Player::Mpv => {
            let mut playing = Playing::start(launcher, stage.control(), stage.server().display(), false)?;
            playing.reach(frames as usize)?;
            let (drawn, ..) = playing.end()?;
            stage.control().stop_trace()?;
            drawn.iter().map(|drawn| drawn.drawn_ns).collect()
        }
    };
    let drawn_us = drawn_ns.into_iter().skip(FIRST_FRAMES).map(|ns| ns / 1000).collect();
    Ok(Film { turn: 0, player, reserved, drawn_us })
}

impl Film {
    pub fn intervals_ms(&self) -> Vec<f64> {
        self.drawn_us.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e3).collect()
    }

    pub fn summary(&self) -> Summary {
        Summary::of(self.intervals_ms())
    }

    pub fn deviation_ms(&self) -> f64 {
        deviation(&self.intervals_ms())
    }

    /// Part of the inter-frame times.
    pub fn regular(&self) -> f64 {
        let all = self.intervals_ms();
        let regular = all.iter().filter(|&ms| (ms - FRAME_MS).abs() <= TOLERANCE_MS).count();
        regular as f64 / all.len().max(1) as f64
    }

    /// Frames that would have fitted between the first and the last.
    pub fn left_out(&self) -> f64 {
        let all = self.intervals_ms();
        (all.iter().sum::<f64>() / FRAME_MS).round() - all.len() as f64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// With these times between its frames, in milliseconds.
    pub fn film(player: Player, reserved: bool, between_ms: &[u64]) -> Film {
        let mut drawn_us = vec![1_000_000];
        drawn_us.extend(between_ms.iter().scan(1_000_000, |at, ms| {
            *at += ms * 1000;
            Some(*at)
        }));
        Film { turn: 0, player, reserved, drawn_us }
    }

    #[test]
    fn a_late_frame_spoils_two_intervals_and_one_left_out_is_counted() {
        let film = film(Player::Plain, true, &[40, 46, 34, 40, 80, 42]);
        assert_eq!(film.regular(), 0.5);
        assert_eq!(film.left_out(), 1.0);
        assert_eq!(film.summary().worst, 80.0);
    }
}
