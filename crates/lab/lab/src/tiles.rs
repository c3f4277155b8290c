// SPDX-License-Identifier: MIT
//! Moves the windows of x11perf apart, as a window manager would. [`crate::load`] explains why.

use crate::poll::poll;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt, Window};
use x11rb::rust_connection::RustConnection;

/// Place and size of x11perf's window, and those of the line of text below it.
const PLACE: (i16, i16) = (2, 2);
const SIZE: (u16, u16) = (600, 600);
const TEXT_HEIGHT: u16 = 20;
const TEXT_BELOW: i32 = 603;

/// Space for one copy, including its border. The first cell is not at x11perf's default place.
const CELL: (i32, i32) = (606, 634);
const FIRST: (i32, i32) = (8, 6);

/// A screen for twelve copies and, in the last column, the light client.
pub const SCREEN: (u32, u32) = (3072, 1920);

/// Waits until `count` copies have created their windows, and moves each to a free cell of the screen. Copies without a
/// free cell stay where they are.
pub fn arrange(connection: &RustConnection, count: usize, timeout: Duration) -> Result<()> {
    let mut created = 0;
    let placed = poll(timeout, Duration::from_millis(5), || {
        let clients = windows_by_client(connection)?;
        let is_ready = |copy: &&Copy| copy.drawing.is_some_and(|(_, at)| at == PLACE) && copy.text.is_some();
        let waiting: Vec<&Copy> = clients.values().filter(is_ready).collect();
        created = waiting.len();
        (created >= count).then(|| place(connection, &waiting, &clients)).transpose()
    });
    placed?.with_context(|| format!("only {created} of {count} x11perf clients have created their windows"))
}

#[derive(Debug, Default)]
struct Copy {
    /// The drawing window and its place.
    drawing: Option<(Window, (i16, i16))>,
    text: Option<Window>,
}

fn windows_by_client(connection: &RustConnection) -> Result<BTreeMap<Window, Copy>> {
    let setup = connection.setup();
    let windows = connection.query_tree(setup.roots[0].root)?.reply()?.children;
    let mut clients: BTreeMap<Window, Copy> = BTreeMap::new();
    for window in windows {
        // If a window has disappeared meanwhile, its copy has ended.
        let Ok(geometry) = connection.get_geometry(window)?.reply() else { continue };
        let copy = clients.entry(window & !setup.resource_id_mask).or_default();
        if (geometry.width, geometry.height) == SIZE {
            copy.drawing = Some((window, (geometry.x, geometry.y)));
        } else if (geometry.width, geometry.height) == (SIZE.0, TEXT_HEIGHT) {
            copy.text = Some(window);
        }
    }
    Ok(clients)
}

fn place(connection: &RustConnection, waiting: &[&Copy], clients: &BTreeMap<Window, Copy>) -> Result<()> {
    let screen = &connection.setup().roots[0];
    let taken = clients.values().filter_map(|copy| copy.drawing.map(|(_, (x, y))| (i32::from(x), i32::from(y))));
    let taken: Vec<(i32, i32)> = taken.collect();
    let free = cells(i32::from(screen.width_in_pixels), i32::from(screen.height_in_pixels));
    let free = free.into_iter().filter(|cell| !taken.contains(cell));
    for (copy, (x, y)) in waiting.iter().zip(free) {
        let parts = [(copy.drawing.map(|(window, _)| window), y), (copy.text, y + TEXT_BELOW)];
        for (window, y) in parts.into_iter().filter_map(|(window, y)| Some((window?, y))) {
            connection.configure_window(window, &ConfigureWindowAux::new().x(x).y(y))?;
        }
    }
    connection.get_input_focus()?.reply()?;
    Ok(())
}

/// Cells column by column, so that the last column stays free as long as possible.
fn cells(width: i32, height: i32) -> Vec<(i32, i32)> {
    let count = |room: i32, first: i32, cell: i32| (room - first) / cell;
    let rows = count(height, FIRST.1, CELL.1);
    let columns = count(width, FIRST.0, CELL.0);
    let cell = |column, row| (FIRST.0 + column * CELL.0, FIRST.1 + row * CELL.1);
    (0..columns).flat_map(|column| (0..rows).map(move |row| cell(column, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_copies_and_the_light_client_fit_the_screen() {
        let cells = cells(SCREEN.0 as i32, SCREEN.1 as i32);
        assert!(cells.len() >= 12);
        let rightmost = cells[..12].iter().map(|(x, _)| x + CELL.0).max().unwrap();
        assert!(rightmost <= SCREEN.0 as i32 - 440, "{rightmost}");
        assert!(!cells.contains(&(i32::from(PLACE.0), i32::from(PLACE.1))));
        assert!(cells.iter().all(|(x, y)| x + CELL.0 <= 3072 && y + CELL.1 <= 1920));
    }
}
