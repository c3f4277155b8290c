// SPDX-License-Identifier: MIT
//! A client that keeps the server busy for a part of the time. Every few milliseconds it draws rectangles into a
//! pixmap, where no compositor sees them, and waits until they are drawn.

use crate::server::Server;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateGCAux, Gcontext, Pixmap, Rectangle};
use x11rb::rust_connection::RustConnection;

const EVERY: Duration = Duration::from_millis(5);
const SIZE: u16 = 100;
/// Rectangles in one request.
const RECTANGLES: u32 = 10;
/// Time for one measurement of the server's load.
const LOOK: Duration = Duration::from_millis(1500);

/// Draws until this is dropped.
#[derive(Debug)]
pub struct Filler {
    batch: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Filler {
    /// Starts the client with zero rectangles.
    pub fn start(display: &str) -> Result<Filler> {
        let (connection, screen) = x11rb::connect(Some(display))?;
        let root = connection.setup().roots[screen].root;
        let (pixmap, context) = (connection.generate_id()?, connection.generate_id()?);
        connection.create_pixmap(connection.setup().roots[screen].root_depth, pixmap, root, SIZE, SIZE)?;
        connection.create_gc(context, pixmap, &CreateGCAux::new())?.check()?;
        let (batch, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (batch, stop) = (Arc::clone(&batch), Arc::clone(&stop));
            move || draw(&connection, (pixmap, context), &batch, &stop)
        });
        Ok(Filler { batch, stop, thread: Some(thread) })
    }

    /// Sets the number of rectangles per interval.
    pub fn set(&self, batch: u32) {
        self.batch.store(batch, Ordering::Relaxed);
    }

    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Number of rectangles at which the server, with its other work, is busy for this percentage of the time.
    pub fn calibrate(&self, server: &Server, percent: u32) -> Result<u32> {
        let busy = |batch| -> Result<f64> {
            self.set(batch);
            std::thread::sleep(EVERY * 10);
            let (began, before) = (Instant::now(), server.cpu_time()?);
            std::thread::sleep(LOOK);
            Ok((server.cpu_time()? - before).as_secs_f64() / began.elapsed().as_secs_f64())
        };
        let wanted = f64::from(percent) / 100.0;
        let alone = busy(0)?;
        let (mut batch, mut cost) = (0.0, None);
        for _ in 0..3 {
            let tried = if batch > 0.0 { batch } else { 100.0 };
            cost = Some((busy(tried as u32)? - alone).max(0.001) / tried).or(cost);
            batch = cost.map_or(0.0, |cost| (wanted - alone).max(0.0) / cost);
            if batch < 1.0 {
                return Ok(0);
            }
        }
        Ok(batch as u32)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn draw(
    connection: &RustConnection,
    (pixmap, context): (Pixmap, Gcontext),
    batch: &AtomicU32,
    stop: &AtomicBool,
) -> Result<()> {
    let rectangles = [Rectangle { x: 0, y: 0, width: SIZE, height: SIZE }; RECTANGLES as usize];
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..batch.load(Ordering::Relaxed) / RECTANGLES {
            connection.poly_fill_rectangle(pixmap, context, &rectangles)?;
        }
        connection.get_input_focus()?.reply()?;
        // Missed intervals are not made up for.
        next = (next + EVERY).max(Instant::now());
        std::thread::sleep(next - Instant::now());
    }
    Ok(())
}
