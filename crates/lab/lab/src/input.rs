// SPDX-License-Identifier: MIT
//! Programs that show a window, and their user's input: pointer and keys, injected through XTEST.

use crate::canvas::ScreenArea;
use crate::poll::poll;
use crate::process::Owned;
use crate::server::Server;
use anyhow::{Context, Result, anyhow};
use std::process::Command;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConfigureWindowAux, ConnectionExt as _, KEY_PRESS_EVENT,
    KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

/// Time limit for a program to show its window on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);

/// A program with its own window. The program ends when this is dropped.
#[derive(Debug)]
pub struct ProgramWindow {
    pub process: Owned,
    pub window: Window,
}

impl ProgramWindow {
    /// Starts the program and waits until its window, whose class or title begins with this text, is mapped.
    pub fn start(server: &Server, mut command: Command, called: (AtomEnum, &str)) -> Result<ProgramWindow> {
        command.env("DISPLAY", server.display());
        let process = Owned::start_silent(&mut command, GRACE)?;
        let connection = server.connect()?;
        let root = connection.setup().roots[0].root;
        let window = poll(PATIENCE, Duration::from_millis(20), || find(&connection, root, called))?;
        let window = window.with_context(|| format!("{} does not show its window", called.1))?;
        Ok(ProgramWindow { process, window })
    }

    /// Asks the window manager to change the window's place and size.
    pub fn put(&self, server: &Server, (x, y, width, height): ScreenArea) -> Result<()> {
        let place = ConfigureWindowAux::new().x(i32::from(x)).y(i32::from(y));
        let place = place.width(u32::from(width)).height(u32::from(height));
        Ok(server.connect()?.configure_window(self.window, &place)?.check()?)
    }

    pub fn corner(&self, server: &Server) -> Result<(i16, i16)> {
        let connection = server.connect()?;
        let root = connection.setup().roots[0].root;
        let corner = connection.translate_coordinates(self.window, root, 0, 0)?.reply()?;
        Ok((corner.dst_x, corner.dst_y))
    }
}

/// Finds the visible window whose class or title begins with this text. Toolkits also have invisible windows.
fn find(connection: &RustConnection, below: Window, called: (AtomEnum, &str)) -> Result<Option<Window>> {
    for child in connection.query_tree(below)?.reply()?.children {
        let property = connection.get_property(false, child, called.0, AtomEnum::STRING, 0, 64)?;
        // A window may be destroyed between the two queries.
        let Ok(property) = property.reply() else { continue };
        let is_mapped = || {
            let map = connection.get_window_attributes(child).ok().and_then(|cookie| cookie.reply().ok());
            map.is_some_and(|map| map.map_state == x11rb::protocol::xproto::MapState::VIEWABLE)
        };
        if property.value.starts_with(called.1.as_bytes()) && is_mapped() {
            return Ok(Some(child));
        }
        if let Some(found) = find(connection, child, called)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[derive(Debug)]
pub struct Input {
    connection: RustConnection,
    root: Window,
}

impl Input {
    pub fn of(server: &Server) -> Result<Input> {
        let connection = server.connect()?;
        let root = connection.setup().roots.first().ok_or_else(|| anyhow!("the server has no screen"))?.root;
        Ok(Input { connection, root })
    }

    pub fn type_into(&self, window: Window) -> Result<()> {
        let focus = x11rb::protocol::xproto::InputFocus::POINTER_ROOT;
        Ok(self.connection.set_input_focus(focus, window, x11rb::CURRENT_TIME)?.check()?)
    }

    pub fn key(&self, code: u8) -> Result<()> {
        self.key_down(code)?;
        self.key_up(code)
    }

    pub fn key_down(&self, code: u8) -> Result<()> {
        self.fake(KEY_PRESS_EVENT, code, (0, 0))
    }

    pub fn key_up(&self, code: u8) -> Result<()> {
        self.fake(KEY_RELEASE_EVENT, code, (0, 0))
    }

    pub fn keycode_of(&self, keysym: u32) -> Result<u8> {
        let (min, max) = (self.connection.setup().min_keycode, self.connection.setup().max_keycode);
        let map = self.connection.get_keyboard_mapping(min, max - min + 1)?.reply()?;
        let mut keys = map.keysyms.chunks(map.keysyms_per_keycode.into());
        let at = keys.position(|keysyms| keysyms.contains(&keysym));
        at.map(|at| min + at as u8).ok_or_else(|| anyhow!("no key of the keyboard has the keysym {keysym:#x}"))
    }

    /// Presses and releases a pointer button at this place. Buttons 4 and 5 are the wheel.
    pub fn click(&self, place: (i16, i16), button: u8) -> Result<()> {
        self.press(place, button)?;
        self.release(button)
    }

    pub fn press(&self, place: (i16, i16), button: u8) -> Result<()> {
        self.point(place)?;
        self.fake(BUTTON_PRESS_EVENT, button, (0, 0))
    }

    pub fn release(&self, button: u8) -> Result<()> {
        self.fake(BUTTON_RELEASE_EVENT, button, (0, 0))
    }

    pub fn point(&self, place: (i16, i16)) -> Result<()> {
        self.fake(MOTION_NOTIFY_EVENT, 0, place)
    }

    fn fake(&self, kind: u8, detail: u8, (x, y): (i16, i16)) -> Result<()> {
        self.connection.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, self.root, x, y, 0)?;
        Ok(self.connection.flush()?)
    }
}
