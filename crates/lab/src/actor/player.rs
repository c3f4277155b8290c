// SPDX-License-Identifier: MIT
//! A player of one thread: a frame every 40 ms at fixed instants, each a picture that has to be made first.
//!
//! A frame is drawn when the server has answered a request behind it. A frame whose instant passes while the one before
//! is under way is not made up for: the next is at the next instant.

use super::{Stage, say};
use crate::processor::{burn, now_ns};
use anyhow::Result;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, EventMask, ImageFormat};

/// 25 a second.
pub const FRAME: Duration = Duration::from_millis(40);
/// What decoding takes, by and large, of the processor.
const DECODING: Duration = Duration::from_millis(2);
const PLACE: super::Place = (2432, 40, 320, 180);

pub(super) fn perform(frames: usize) -> Result<()> {
    let stage = Stage::new(PLACE, 0, EventMask::NO_EVENT)?;
    let Stage { connection, window, context } = &stage;
    connection.map_window(*window)?;
    connection.get_input_focus()?.reply()?;
    stage.say_ready()?;
    let mut drawn_ns = Vec::with_capacity(frames);
    let mut picture = vec![0; usize::from(PLACE.2) * usize::from(PLACE.3) * 4];
    let mut next_ns = now_ns();
    for frame in 0..frames {
        std::thread::sleep(Duration::from_nanos(next_ns.saturating_sub(now_ns())));
        burn(DECODING);
        picture.fill(frame as u8);
        let depth = connection.setup().roots[0].root_depth;
        connection.put_image(ImageFormat::Z_PIXMAP, *window, *context, PLACE.2, PLACE.3, 0, 0, 0, depth, &picture)?;
        connection.get_input_focus()?.reply()?;
        drawn_ns.push(now_ns());
        next_ns = after(next_ns, now_ns());
    }
    say(&drawn_ns)
}

/// The next instant that is not over yet.
fn after(instant_ns: u64, now_ns: u64) -> u64 {
    let frame_ns = FRAME.as_nanos() as u64;
    instant_ns + frame_ns * (now_ns.saturating_sub(instant_ns) / frame_ns + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_to_their_instants() {
        const MS: u64 = 1_000_000;
        assert_eq!(after(100 * MS, 103 * MS), 140 * MS);
        assert_eq!(after(100 * MS, 185 * MS), 220 * MS, "what is over is left out");
    }
}
