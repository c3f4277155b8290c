// SPDX-License-Identifier: MIT
//! Selects a window with the pointer, like xwininfo and xprop.
//!
//! The pointer is grabbed with a crosshair until a click; Escape and the right button cancel. The pointer and keyboard
//! grabs end when our connection closes, if not earlier.

use crate::error::{Result, bail, refused};
use crate::windows;
use x11rb::NONE;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{ConnectionExt, EventMask, GrabMode, GrabStatus, Keycode, Window};
use xqos_cli::output::note;

/// `XC_crosshair` of X11/cursorfont.h.
const CROSSHAIR: u16 = 34;
/// `XK_Escape` of X11/keysymdef.h.
const ESCAPE: u32 = 0xff1b;
/// Button 3 is the right one.
const CANCEL_BUTTON: u8 = 3;

/// The client window that the user clicks on.
pub fn window(connection: &impl Connection) -> Result<Window> {
    let root = grab(connection)?;
    note("click on a window; Escape or the right button cancels");
    let clicked = wait_for_click(connection);
    connection.ungrab_pointer(x11rb::CURRENT_TIME)?;
    connection.ungrab_keyboard(x11rb::CURRENT_TIME)?;
    connection.flush()?;
    match clicked? {
        None => bail!("cancelled: nothing was changed"),
        Some(NONE) => Ok(root),
        Some(top) => Ok(windows::client_window(connection, top)?),
    }
}

/// Grabs pointer and keyboard; returns the root window of the screen that the pointer is on.
fn grab(connection: &impl Connection) -> Result<Window> {
    let first = connection.setup().roots.first().ok_or_else(|| refused!("the X server has no screen"))?.root;
    let root = connection.query_pointer(first)?.reply()?.root;
    let font = connection.generate_id()?;
    connection.open_font(font, b"cursor")?;
    let cursor = connection.generate_id()?;
    let glyph = (CROSSHAIR, CROSSHAIR + 1);
    connection.create_glyph_cursor(cursor, font, font, glyph.0, glyph.1, 0, 0, 0, 0xffff, 0xffff, 0xffff)?;
    let mask = EventMask::BUTTON_PRESS | EventMask::BUTTON_RELEASE;
    let (asynchronous, now) = (GrabMode::ASYNC, x11rb::CURRENT_TIME);
    let pointer = connection.grab_pointer(false, root, mask, asynchronous, asynchronous, NONE, cursor, now)?.reply()?;
    connection.free_cursor(cursor)?;
    connection.close_font(font)?;
    if pointer.status != GrabStatus::SUCCESS {
        bail!("another program holds the pointer, such as an open menu: close it, or select with --class or --pid");
    }
    // Only Escape needs the keyboard. Without the keyboard grab, the right button still cancels.
    let _ = connection.grab_keyboard(false, root, now, asynchronous, asynchronous)?.reply();
    Ok(root)
}

/// The top-level window that was clicked (`NONE` for the background); `None` if cancelled.
fn wait_for_click(connection: &impl Connection) -> Result<Option<Window>> {
    let escape = keycodes_of(connection, ESCAPE)?;
    let mut chosen = None;
    loop {
        match connection.wait_for_event()? {
            Event::ButtonPress(press) if press.detail == CANCEL_BUTTON => return Ok(None),
            // Higher buttons belong to the wheel.
            Event::ButtonPress(press) if press.detail < CANCEL_BUTTON && chosen.is_none() => chosen = Some(press.child),
            // Wait for the release, which would otherwise reach the window below.
            Event::ButtonRelease(_) if chosen.is_some() => return Ok(chosen),
            Event::KeyPress(press) if escape.contains(&press.detail) => return Ok(None),
            _ => {}
        }
    }
}

fn keycodes_of(connection: &impl Connection, keysym: u32) -> Result<Vec<Keycode>> {
    let (first, last) = (connection.setup().min_keycode, connection.setup().max_keycode);
    let mapping = connection.get_keyboard_mapping(first, last - first + 1)?.reply()?;
    let per_key = usize::from(mapping.keysyms_per_keycode).max(1);
    let keys = mapping.keysyms.chunks(per_key).zip(first..=last);
    Ok(keys.filter(|(keysyms, _)| keysyms.contains(&keysym)).map(|(_, keycode)| keycode).collect())
}
