// SPDX-License-Identifier: MIT
//! A program that uses a given amount of processor time for each Expose and key press, and then draws. It stands for
//! the editor in Shatrov's message of 2005, or for a minimal program that echoes keys.
//!
//! Like a toolkit, it reads all pending events, works, draws once, and then waits for further events.

use super::say_ready;
use crate::canvas::{Canvas, ScreenArea};
use crate::processor::burn;
use anyhow::Result;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ChangeGCAux, ConnectionExt, CreateGCAux, CreateWindowAux, EventMask, Rectangle};

/// Height of a drawn line, and of the gap below it.
const LINE: [u16; 2] = [9, 5];

pub(super) fn perform(work: Duration, place: ScreenArea) -> Result<()> {
    let (connection, _) = xqos_client::connect(None)?;
    let events = EventMask::EXPOSURE | EventMask::KEY_PRESS;
    let look = CreateWindowAux::new().background_pixel(0x00ff_ffff).event_mask(events);
    let Canvas { window, context } = Canvas::show(&connection, place, look, &CreateGCAux::new())?;
    say_ready(window)?;
    let ((.., width, height), [thick, gap]) = (place, LINE);
    let line = |at: u16| Rectangle { x: 0, y: (at * (thick + gap)) as i16, width, height: thick };
    let lines: Vec<Rectangle> = (0..height / (thick + gap)).map(line).collect();
    let calls = |event: &Event| matches!(event, Event::Expose(_) | Event::KeyPress(_));
    let mut ink = 0_u32;
    loop {
        let mut is_called = calls(&connection.wait_for_event()?);
        while let Some(event) = connection.poll_for_event()? {
            is_called |= calls(&event);
        }
        if is_called {
            burn(work);
            // Change the colour each time, to distinguish new drawing from old.
            ink = ink.wrapping_add(0x0003_0507) & 0x007f_7f7f;
            connection.change_gc(context, &ChangeGCAux::new().foreground(ink))?;
            connection.poly_fill_rectangle(window, context, &lines)?;
            connection.flush()?;
        }
    }
}
