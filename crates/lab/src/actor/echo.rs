// SPDX-License-Identifier: MIT
//! The smallest program that answers keys: it draws, and changes a property so that whoever looks on sees when.
//!
//! The property's number is the key's, so that an answer can be told from the one before.

use super::Stage;
use anyhow::Result;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{AtomEnum, ChangeGCAux, ConnectionExt as _, EventMask, PropMode, Rectangle};
use x11rb::wrapper::ConnectionExt as _;

/// On the screen, beside the exposed window.
const PLACE: super::Place = (1450, 150, 100, 100);

pub(super) fn perform() -> Result<()> {
    let stage = Stage::new(PLACE, 0, EventMask::KEY_PRESS)?;
    stage.say_ready()?;
    let Stage { connection, window, context } = &stage;
    let all = [Rectangle { x: 0, y: 0, width: PLACE.2, height: PLACE.3 }];
    loop {
        if let Event::KeyPress(key) = connection.wait_for_event()? {
            let number = u32::from(key.detail);
            connection.change_gc(*context, &ChangeGCAux::new().foreground(number * 0x0006_0402))?;
            connection.poly_fill_rectangle(*window, *context, &all)?;
            connection.change_property8(PropMode::REPLACE, *window, number, AtomEnum::STRING, b"")?;
            connection.flush()?;
        }
    }
}
