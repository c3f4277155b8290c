// SPDX-License-Identifier: MIT
//! A program whose redraws are costly, like the editor of the message of 2005: 25 ms of processor time for an Expose.
//!
//! It does what a toolkit does: it reads all Exposes that are there, works, draws once, and is idle. A message to its own
//! window says how many Exposes it had read before that redraw, and when that began, to whoever looks on; it comes behind
//! the drawing.

use super::Stage;
use crate::processor::{burn, now_ns};
use anyhow::Result;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{AtomEnum, ChangeGCAux, ClientMessageEvent, ConnectionExt, EventMask, Rectangle, Window};

/// On the screen: beneath the ways of all that moves.
pub(crate) const PLACE: super::Place = (200, 150, 1200, 800);
/// Rectangles of a redraw.
const LINES: i16 = 55;

pub(super) fn perform(work: Duration) -> Result<()> {
    let stage = Stage::new(PLACE, 0x00ff_ffff, EventMask::EXPOSURE)?;
    stage.say_ready()?;
    let mut exposes = 0;
    let is_expose = |event: &Event| matches!(event, Event::Expose(_));
    loop {
        let before = exposes;
        exposes += u32::from(is_expose(&stage.connection.wait_for_event()?));
        while let Some(event) = stage.connection.poll_for_event()? {
            exposes += u32::from(is_expose(&event));
        }
        if exposes > before {
            let began_ns = now_ns();
            burn(work);
            draw(&stage, exposes, began_ns)?;
        }
    }
}

fn draw(stage: &Stage, exposes: u32, began_ns: u64) -> Result<()> {
    let Stage { connection, window, context } = stage;
    // Another colour each time, so that old and new can be told apart.
    let ink = ChangeGCAux::new().foreground(exposes.wrapping_mul(0x0003_0507) & 0x007f_7f7f);
    connection.change_gc(*context, &ink)?;
    let line = |index| Rectangle { x: 10, y: 10 + index * 14, width: PLACE.2 - 20, height: 9 };
    connection.poly_fill_rectangle(*window, *context, &(0..LINES).map(line).collect::<Vec<_>>())?;
    tell(connection, *window, exposes, began_ns)?;
    Ok(connection.flush()?)
}

/// To those who selected changes of its properties, which nobody else does.
fn tell(connection: &impl Connection, window: Window, exposes: u32, began_ns: u64) -> Result<()> {
    let message = ClientMessageEvent::new(
        32,
        window,
        AtomEnum::INTEGER,
        [exposes, (began_ns >> 32) as u32, began_ns as u32, 0, 0],
    );
    connection.send_event(false, window, EventMask::PROPERTY_CHANGE, message)?;
    Ok(())
}
