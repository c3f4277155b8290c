// SPDX-License-Identifier: MIT
//! An override-redirect window of one of our clients, with its graphics context.

use anyhow::Result;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, Gcontext, Window, WindowClass};

/// Left, top, width and height on the screen.
pub type ScreenArea = (i16, i16, u16, u16);

#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    pub window: Window,
    pub context: Gcontext,
}

impl Canvas {
    /// Creates the window. It is on the screen when this function returns.
    pub fn show(
        connection: &impl Connection,
        place: ScreenArea,
        look: CreateWindowAux,
        ink: &CreateGCAux,
    ) -> Result<Canvas> {
        let (root, class) = (connection.setup().roots[0].root, WindowClass::INPUT_OUTPUT);
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let ((x, y, width, height), look) = (place, look.override_redirect(1));
        connection.create_window(0, window, root, x, y, width, height, 0, class, 0, &look)?;
        connection.create_gc(context, window, ink)?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Canvas { window, context })
    }
}
