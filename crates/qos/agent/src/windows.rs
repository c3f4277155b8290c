// SPDX-License-Identifier: MIT
//! The window tree: windows by WM_CLASS, and the client's window inside a window manager's frame.
//!
//! Windows may disappear during the search, so errors for missing windows are ignored. All requests for one level of
//! the tree are sent before the first reply is read. A desktop with thousands of windows thus costs a few round trips.

use crate::error::{Result, bail};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, GetPropertyReply, Window};

/// Longest WM_CLASS to read, in units of four bytes.
const CLASS_UNITS: u32 = 256;

/// All windows with `class` as the instance or the class in WM_CLASS.
pub fn of_class(connection: &impl Connection, class: &str) -> Result<Vec<Window>> {
    let mut level: Vec<Window> = connection.setup().roots.iter().map(|screen| screen.root).collect();
    let mut found = Vec::new();
    while !level.is_empty() {
        level = children(connection, &level)?;
        for (&window, property) in level.iter().zip(properties(connection, &level, AtomEnum::WM_CLASS.into())?) {
            if property.is_some_and(|property| class_matches(&property.value, class)) {
                found.push(window);
            }
        }
    }
    Ok(found)
}

/// The client's own window in a window manager's frame: the one with WM_STATE at or below `top`, or else `top`.
pub fn client_window(connection: &impl Connection, top: Window) -> Result<Window> {
    let wm_state = connection.intern_atom(false, b"WM_STATE")?.reply()?.atom;
    let mut level = vec![top];
    while !level.is_empty() {
        let states = properties(connection, &level, wm_state)?;
        let managed = |property: &Option<GetPropertyReply>| property.as_ref().is_some_and(|found| found.type_ != 0);
        if let Some(at) = states.iter().position(managed) {
            return Ok(level[at]);
        }
        level = children(connection, &level)?;
    }
    Ok(top)
}

/// Titles of the windows in the window manager's list, or else of the children of the root windows.
pub fn titles(connection: &impl Connection) -> Result<Vec<(Window, String)>> {
    let atom = |name: &str| -> Result<Atom> { Ok(connection.intern_atom(false, name.as_bytes())?.reply()?.atom) };
    let (client_list, net_wm_name) = (atom("_NET_CLIENT_LIST")?, atom("_NET_WM_NAME")?);
    let roots: Vec<Window> = connection.setup().roots.iter().map(|screen| screen.root).collect();
    let mut listed: Vec<Window> = Vec::new();
    for &root in &roots {
        let list = connection.get_property(false, root, client_list, AtomEnum::WINDOW, 0, u32::MAX / 4)?.reply()?;
        listed.extend(list.value32().into_iter().flatten());
    }
    if listed.is_empty() {
        listed = children(connection, &roots)?;
    }
    let modern = properties(connection, &listed, net_wm_name)?;
    let old = properties(connection, &listed, AtomEnum::WM_NAME.into())?;
    let text = |property: Option<GetPropertyReply>| {
        let text = property.map(|property| String::from_utf8_lossy(&property.value).into_owned());
        text.filter(|text| !text.is_empty())
    };
    let titles = modern.into_iter().zip(old).map(|(modern, old)| text(modern).or_else(|| text(old)));
    Ok(listed.into_iter().zip(titles).filter_map(|(window, title)| Some((window, title?))).collect())
}

/// Fails with an explanation if there is no such window.
pub fn exists(connection: &impl Connection, window: Window) -> Result<()> {
    match connection.get_geometry(window)?.reply() {
        Ok(_) => Ok(()),
        Err(ReplyError::X11Error(_)) => {
            bail!("there is no window {window:#x}: run `xwininfo` and click on a window to see its identifier")
        }
        Err(ReplyError::ConnectionError(error)) => Err(error.into()),
    }
}

pub fn children(connection: &impl Connection, windows: &[Window]) -> Result<Vec<Window>> {
    let cookies = windows.iter().map(|&window| connection.query_tree(window)).collect::<Result<Vec<_>, _>>()?;
    let mut children = Vec::new();
    for cookie in cookies {
        children.extend(present(cookie.reply())?.into_iter().flat_map(|tree| tree.children));
    }
    Ok(children)
}

pub fn properties(
    connection: &impl Connection,
    windows: &[Window],
    property: Atom,
) -> Result<Vec<Option<GetPropertyReply>>> {
    let cookies = windows
        .iter()
        .map(|&window| connection.get_property(false, window, property, AtomEnum::ANY, 0, CLASS_UNITS))
        .collect::<Result<Vec<_>, _>>()?;
    cookies.into_iter().map(|cookie| present(cookie.reply())).collect()
}

/// `None` for a window that no longer exists.
fn present<T>(reply: Result<T, ReplyError>) -> Result<Option<T>> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error.into()),
    }
}

/// Instance and class: WM_CLASS is two strings, each terminated by a zero byte.
pub fn classes(property: &[u8]) -> impl Iterator<Item = &[u8]> {
    property.split(|&byte| byte == 0).take(2).filter(|part| !part.is_empty())
}

fn class_matches(property: &[u8], class: &str) -> bool {
    classes(property).any(|part| part.eq_ignore_ascii_case(class.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_or_class_matches_in_any_case() {
        let property = b"gl\0mpv\0";
        for class in ["mpv", "MPV", "gl"] {
            assert!(class_matches(property, class), "{class}");
        }
        for class in ["", "mp", "gl\0mpv", "mpv2"] {
            assert!(!class_matches(property, class), "{class}");
        }
        assert!(class_matches(b"xterm", "xterm"), "without its zeros");
        assert!(!class_matches(b"", ""));
    }
}
