// SPDX-License-Identifier: MIT
//! Plaid: clients that send drawing requests without end and wait for nothing (Packard, sections 3 and 7).
//!
//! The program that made the scheduler of 1987 unusable sends one batch of rectangles after the other, as fast as its
//! connection takes them. These are threads of ours, each with a connection of its own: only what the server sees of
//! them matters, and that is either what the program of X11R4 sends, or requests as long as they were in the paper's time
//! ([`Pattern`]).

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConnectionExt, CreateGCAux, CreateWindowAux, GX, Gcontext, Rectangle, Screen, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// What a plaid draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// What the program draws: ten inverting rectangles around the middle of a window of 101 x 201, growing and shrinking.
    /// Some hundredths of a millisecond a request on today's machines.
    Original,
    /// Stripes of nearly the size of the window, twenty in a request: tenths of a millisecond, and a pass over all buffers of
    /// 4 KB takes tens of milliseconds.
    Heavy,
    /// 160 of the same: a millisecond or more, so that under the scheduler of 1987 an echo takes what it took on the machine of
    /// 2000, 170 ms.
    Published,
}

/// Of a window, in pixels. What they draw has to be shown, too, by the server around an Xephyr or to a viewer, which is
/// work that no scheduler of clients can put off: so the windows are small, and much is drawn in them.
const SIDE: u16 = 150;
/// Rectangles in a request of [`Pattern::Heavy`] and of [`Pattern::Published`], and how thick they are.
const BATCH: usize = 20;
const PUBLISHED_BATCH: usize = 160;
const THICK: u16 = 110;
/// The same of [`Pattern::Original`], with the pixels by which half a side changes from one rectangle to the next.
const ORIGINAL_SIZE: (u16, u16) = (101, 201);
const ORIGINAL_BATCH: usize = 10;
const STEP: u16 = 2;

/// Bytes that a plaid has sent when it must be waiting for the server: more than its buffer and the socket's hold.
const FILLED: u64 = 256 << 10;

/// Some plaids, until this is dropped.
#[derive(Debug)]
pub struct Plaids {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Plaids {
    /// Starts them and returns when the server has had more from each than its connection holds.
    pub fn start(display: &str, count: usize, pattern: Pattern) -> Result<Plaids> {
        let mut plaids = Plaids { stop: Arc::default(), sent: Arc::default(), threads: Vec::new() };
        for index in 0..count {
            let (stop, sent) = (Arc::clone(&plaids.stop), Arc::clone(&plaids.sent));
            let plaid = Plaid::new(display, index, pattern)?;
            // A connection that the server closed ends the thread; its measurement ends with an error of its own.
            plaids.threads.push(std::thread::spawn(move || drop(plaid.draw(&stop, &sent))));
        }
        plaids.wait_until_busy(count as u64 * FILLED / pattern.bytes());
        Ok(plaids)
    }

    /// Batches sent by all of them so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    fn wait_until_busy(&self, enough: u64) {
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
    pattern: Pattern,
}

impl Plaid {
    /// A window in its own place, as far as the screen has room.
    fn new(display: &str, index: usize, pattern: Pattern) -> Result<Plaid> {
        let (connection, screen) = xqos_client::connect(Some(display))?;
        let screen = &connection.setup().roots[screen];
        let (width, height) = pattern.size();
        let columns = usize::from((screen.width_in_pixels / width).max(1));
        let (x, y) = ((index % columns) as i16 * width as i16, (index / columns) as i16 * height as i16);
        let y = y.min(screen.height_in_pixels.saturating_sub(height) as i16);
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel).override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, screen.root, x, y, width, height, 0, class, 0, &look)?;
        connection.create_gc(context, window, &pattern.ink(screen))?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Plaid { connection, window, context, pattern })
    }

    fn draw(&self, stop: &AtomicBool, sent: &AtomicU64) -> Result<()> {
        for turn in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            self.connection.poly_fill_rectangle(self.window, self.context, &self.pattern.batch(turn))?;
            sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Pattern {
    /// Of a window.
    fn size(self) -> (u16, u16) {
        match self {
            Pattern::Original => ORIGINAL_SIZE,
            Pattern::Heavy | Pattern::Published => (SIDE, SIDE),
        }
    }

    /// In a request.
    fn rectangles(self) -> usize {
        match self {
            Pattern::Original => ORIGINAL_BATCH,
            Pattern::Heavy => BATCH,
            Pattern::Published => PUBLISHED_BATCH,
        }
    }

    /// Of a request.
    fn bytes(self) -> u64 {
        12 + 8 * self.rectangles() as u64
    }

    fn ink(self, screen: &Screen) -> CreateGCAux {
        let inverting = screen.white_pixel ^ screen.black_pixel;
        match self {
            Pattern::Original => CreateGCAux::new().function(GX::INVERT).plane_mask(inverting),
            Pattern::Heavy | Pattern::Published => CreateGCAux::new().function(GX::XOR).foreground(0x0055_aa33),
        }
    }

    fn batch(self, turn: usize) -> Vec<Rectangle> {
        let rectangle = |index| match self {
            Pattern::Original => around_the_middle(turn * ORIGINAL_BATCH + index),
            Pattern::Heavy | Pattern::Published => stripe(turn, index),
        };
        (0..self.rectangles()).map(rectangle).collect()
    }
}

/// Each side grows to the window's and shrinks again, in its own time.
fn around_the_middle(step: usize) -> Rectangle {
    let half = |side: u16| {
        let most = usize::from(side / 2 / STEP) - 1;
        let at = step % (2 * most);
        STEP * (1 + at.min(2 * most - at) as u16)
    };
    let (width, height) = (ORIGINAL_SIZE.0, ORIGINAL_SIZE.1);
    let (across, down) = (half(width), half(height));
    let (x, y) = ((width / 2 - across) as i16, (height / 2 - down) as i16);
    Rectangle { x, y, width: 2 * across, height: 2 * down }
}

/// It wanders over the window, across and down in turn.
fn stripe(turn: usize, index: usize) -> Rectangle {
    let at = (turn as i64 * 7 + index as i64 * 13).rem_euclid(i64::from(SIDE - THICK)) as i16;
    match turn % 2 {
        0 => Rectangle { x: 0, y: at, width: SIDE, height: THICK },
        _ => Rectangle { x: at, y: 0, width: THICK, height: SIDE },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rectangles_lie_in_the_window() {
        for pattern in [Pattern::Original, Pattern::Heavy, Pattern::Published] {
            let (width, height) = pattern.size();
            for one in (0..1000).flat_map(|turn| pattern.batch(turn)) {
                assert!(one.x >= 0 && one.x as u16 + one.width <= width, "{pattern:?} {one:?}");
                assert!(one.y >= 0 && one.y as u16 + one.height <= height, "{pattern:?} {one:?}");
            }
        }
    }

    #[test]
    fn the_programs_rectangles_grow_and_shrink() {
        let widths: Vec<u16> = (0..100).map(|step| around_the_middle(step).width).collect();
        assert_eq!((widths.iter().min(), widths.iter().max()), (Some(&4), Some(&100)));
        assert!(widths.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 4), "{widths:?}");
    }
}
