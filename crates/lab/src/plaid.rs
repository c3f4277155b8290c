//! Plaid: clients that send drawing requests without end and wait for nothing (Packard, sections 3 and 7).
//!
//! The program that made the scheduler of 1987 unusable sends one batch of rectangles after the other, as fast as its
//! connection takes them. These are threads of ours, each with a connection of its own: only what the server sees of
//! them matters. A batch costs the server some tenths of a millisecond, and many of them fit in a buffer of 4 KB.

use crate::control;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConnectionExt, CreateGCAux, CreateWindowAux, GX, Gcontext, Rectangle, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// Of a window, in pixels. What they draw has to be shown, too, by the server around an Xephyr or to a viewer, which is
/// work that no scheduler of clients can put off: so the windows are small, and much is drawn in them.
const SIDE: u16 = 150;
/// Rectangles in a request, and how thick they are: a request takes some tenths of a millisecond and a buffer of 4 KB holds
/// two dozen, so that a pass over all buffers takes tens of milliseconds, as the paper's figures show of its plaids.
const BATCH: i16 = 20;
const THICK: u16 = 110;

/// Some plaids, until this is dropped.
#[derive(Debug)]
pub struct Plaids {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Plaids {
    /// Starts them and returns when the server has had more from each than its connection holds.
    pub fn start(display: &str, count: usize) -> Result<Plaids> {
        let mut plaids = Plaids { stop: Arc::default(), sent: Arc::default(), threads: Vec::new() };
        for index in 0..count {
            let (stop, sent) = (Arc::clone(&plaids.stop), Arc::clone(&plaids.sent));
            let plaid = Plaid::new(display, index)?;
            // A connection that the server closed ends the thread; its measurement ends with an error of its own.
            plaids.threads.push(std::thread::spawn(move || drop(plaid.draw(&stop, &sent))));
        }
        plaids.wait_until_busy(count);
        Ok(plaids)
    }

    /// Batches sent by all of them so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn wait_until_busy(&self, count: usize) {
        // More than the socket's and the connection's buffers hold together.
        let enough = 4_000 * count as u64;
        let limit = Instant::now() + Duration::from_secs(10);
        while self.sent() < enough && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Plaids {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic in it would have been printed.
            let _ = thread.join();
        }
    }
}

struct Plaid {
    connection: RustConnection,
    window: Window,
    context: Gcontext,
}

impl Plaid {
    /// A window in its own place, as far as the screen has room.
    fn new(display: &str, index: usize) -> Result<Plaid> {
        let (connection, screen) = control::connect(Some(display))?;
        let screen = &connection.setup().roots[screen];
        let columns = usize::from((screen.width_in_pixels / SIDE).max(1));
        let (x, y) = ((index % columns) as i16 * SIDE as i16, (index / columns) as i16 * SIDE as i16);
        let y = y.min(screen.height_in_pixels.saturating_sub(SIDE) as i16);
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel).override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, screen.root, x, y, SIDE, SIDE, 0, class, 0, &look)?;
        let ink = CreateGCAux::new().function(GX::XOR).foreground(0x0055_aa33);
        connection.create_gc(context, window, &ink)?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Plaid { connection, window, context })
    }

    fn draw(&self, stop: &AtomicBool, sent: &AtomicU64) -> Result<()> {
        for turn in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            self.connection.poly_fill_rectangle(self.window, self.context, &batch(turn))?;
            sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Stripes that wander over the window, across and down in turn.
fn batch(turn: usize) -> Vec<Rectangle> {
    (0..BATCH)
        .map(|index| {
            let at = (turn as i64 * 7 + i64::from(index) * 13).rem_euclid(i64::from(SIDE - THICK)) as i16;
            let (long, thick) = (SIDE, THICK);
            match turn % 2 {
                0 => Rectangle { x: 0, y: at, width: long, height: thick },
                _ => Rectangle { x: at, y: 0, width: thick, height: long },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stripes_lie_in_the_window() {
        for stripe in (0..1000).flat_map(batch) {
            assert!(stripe.x >= 0 && stripe.x as u16 + stripe.width <= SIDE, "{stripe:?}");
            assert!(stripe.y >= 0 && stripe.y as u16 + stripe.height <= SIDE, "{stripe:?}");
        }
    }
}
