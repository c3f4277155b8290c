// SPDX-License-Identifier: MIT
//! Moves the pointer from outside the measured server.
//!
//! A client that injected motion into that server (XTEST) would be scheduled like the others, and the measurement would
//! include that client's own wait. Motion for an Xephyr is therefore injected into the server that shows it; motion for
//! Xtigervnc comes from a viewer, and motion for Xorg from an input device.

use crate::device::Device;
use crate::server::Server;
use crate::viewer::Viewer;
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::time::Instant;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{MOTION_NOTIFY_EVENT, Window};
use x11rb::protocol::xtest::ConnectionExt;
use x11rb::rust_connection::RustConnection;

#[derive(Debug)]
pub enum Pointer {
    Nested {
        host: Box<RustConnection>,
        root: Window,
    },
    Viewer(Viewer),
    /// An input device of an Xorg, with the size of the screen.
    Device(Arc<Device>, [u16; 2]),
}

impl Pointer {
    /// Returns the pointer of a server that gets its input from outside.
    pub fn of(server: &Server) -> Result<Pointer> {
        if let Some(socket) = server.viewer_socket() {
            return Ok(Pointer::Viewer(Viewer::connect(&socket)?));
        }
        if let Some(device) = server.pointer.clone() {
            let connection = server.connect()?;
            let screen = &connection.setup().roots[0];
            return Ok(Pointer::Device(device, [screen.width_in_pixels, screen.height_in_pixels]));
        }
        let host = server.host().ok_or_else(|| anyhow!("cannot move the pointer of {:?}", server.kind()))?;
        let (host, screen) = xqos_client::connect(Some(host.display()))?;
        let root = host.setup().roots[screen].root;
        Ok(Pointer::Nested { host: Box::new(host), root })
    }

    /// Moves the pointer, and returns the instant just before the motion was submitted.
    pub fn move_to(&self, x: i16, y: i16) -> Result<Instant> {
        match self {
            Pointer::Nested { host, root } => {
                host.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, x11rb::CURRENT_TIME, *root, x, y, 0)?;
                let at = Instant::now();
                host.flush()?;
                Ok(at)
            }
            Pointer::Viewer(viewer) => viewer.point(x as u16, y as u16),
            Pointer::Device(device, screen) => device.move_to([x, y], *screen),
        }
    }
}
