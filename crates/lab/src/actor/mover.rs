// SPDX-License-Identifier: MIT
//! A window that moves to and fro over another one: the window manager of the message of 2005 without its input.

use super::Stage;
use crate::processor::burn;
use anyhow::Result;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt, EventMask};

/// It rests after each move, for these times in turn.
pub const STEPS_MS: [u64; 5] = [1, 4, 2, 5, 3];
/// Within the exposed window, and how far it goes each time.
const PLACE: super::Place = (250, 250, 600, 450);
const WAY: i32 = 480;
const STRIDE: i32 = 6;

pub(super) fn perform(work: Duration, waits: bool) -> Result<()> {
    let stage = Stage::new(PLACE, 0x0020_60a0, EventMask::NO_EVENT)?;
    stage.connection.map_window(stage.window)?;
    stage.say_ready()?;
    for turn in 0.. {
        burn(work);
        let x = i32::from(PLACE.0) + along(turn);
        stage.connection.configure_window(stage.window, &ConfigureWindowAux::new().x(x))?;
        stage.connection.flush()?;
        if waits {
            stage.connection.get_input_focus()?.reply()?;
        }
        std::thread::sleep(Duration::from_millis(STEPS_MS[turn as usize % STEPS_MS.len()]));
    }
    Ok(())
}

/// To the end of the way and back.
fn along(turn: i32) -> i32 {
    let at = turn * STRIDE % (2 * WAY);
    at.min(2 * WAY - at)
}

#[cfg(test)]
mod tests {
    use super::super::exposed;
    use super::*;

    #[test]
    fn it_stays_over_the_exposed_window() {
        let (left, _, width, _) = exposed::PLACE;
        for turn in 0..1000 {
            let x = i32::from(PLACE.0) + along(turn);
            assert!(
                x >= i32::from(left) && x + i32::from(PLACE.2) <= i32::from(left) + i32::from(width),
                "{turn}: {x}"
            );
        }
    }
}
