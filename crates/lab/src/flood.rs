// SPDX-License-Identifier: MIT
//! Clients of our own that never pause: threads that send one request over and over, as fast as the server takes it.
//!
//! x11perf is what the other experiments use, and it is a process each with requests of its own choice. Here a request has the
//! length that is asked for, or is that of plaid, the program that made the scheduler of 1987 unusable (Packard, sections 3 and
//! 7); and hundreds of clients cost no more than a thread each. A client writes until its socket is full, so it always has
//! work waiting in the server; it is ended by KillClient, which the server obeys however much is waiting. One that is to keep
//! the server busy for a part of the time pauses, after all.

use crate::canvas::Canvas;
use crate::server::Server;
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, GX, Rectangle, Screen, Window};
use x11rb::rust_connection::RustConnection;

/// What a request fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawing {
    /// So many squares with this side.
    Squares(usize, u16),
    /// What plaid draws: ten inverting rectangles around the middle of a window of 101 x 201, growing and shrinking. Some
    /// hundredths of a millisecond a request on today's machines.
    Original,
    /// Stripes of nearly the size of the window, twenty in a request: tenths of a millisecond, and a pass over all buffers of
    /// 4 KB takes tens of milliseconds.
    Heavy,
    /// 160 of the same: a millisecond or more, so that under the scheduler of 1987 an echo takes what it took on the machine of
    /// 2000, 170 ms.
    Published,
    /// So many rectangles every few milliseconds, ten in a request, into a pixmap, where no compositor sees them; until these are
    /// drawn it waits.
    Part(usize),
}

/// Of the window of squares, and of one: large enough that filling it is the cost.
const ROOM: u16 = 600;
const SIDE: u16 = 250;
/// A request of one square takes longer than this on no machine that we know.
const MOST_SQUARES: usize = 16_000;
/// Of the window of a plaid. What they draw has to be shown, too, by the server around an Xephyr or to a viewer, which is work that
/// no scheduler of clients can put off: so the windows are small, and much is drawn in them.
const SMALL: u16 = 150;
const ORIGINAL: (u16, u16) = (101, 201);
/// Pixels by which half a side of a rectangle changes to the next one, and how thick a stripe is.
const STEP: u16 = 2;
const THICK: u16 = 110;
/// When [`Drawing::Part`] draws, and how long it is looked how busy the server is.
const EVERY: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_millis(1500);
/// Bytes that a client has sent when it must be waiting for the server: more than its buffer and the socket's hold.
const FILLED: u64 = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Clients that draw until this is dropped.
#[derive(Debug)]
pub struct Flood {
    windows: Vec<Window>,
    threads: Vec<JoinHandle<()>>,
    /// Ends the others; the server reads its requests although they flood it.
    killer: RustConnection,
}

impl Flood {
    /// Returns when the server has had more from them than their connections hold, unless they pause.
    pub fn start(server: &Server, drawing: Drawing, count: usize) -> Result<Flood> {
        let mut flood = Flood { windows: Vec::new(), threads: Vec::new(), killer: server.connect()? };
        // All connect before the first one floods, or the last would wait long for its connection.
        let clients = (0..count).map(|index| Client::connect(server, drawing, index)).collect::<Result<Vec<_>>>()?;
        let sent = Arc::new(AtomicU64::new(0));
        for client in clients {
            flood.windows.push(client.canvas.window);
            let (sent, thread) = (Arc::clone(&sent), std::thread::Builder::new().stack_size(128 << 10));
            // It ends with an error when the server closes the connection.
            flood.threads.push(thread.spawn(move || drop(client.flood(&sent)))?);
        }
        let enough = if matches!(drawing, Drawing::Part(_)) { 0 } else { count as u64 * FILLED };
        let limit = Instant::now() + PATIENCE;
        while sent.load(Ordering::Relaxed) < enough && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(flood)
    }

    pub fn is_running(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Resource bases.
    pub fn clients(&self) -> impl Iterator<Item = u32> {
        let of_client = !self.killer.setup().resource_id_mask;
        self.windows.iter().map(move |window| window & of_client)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        for &window in &self.windows {
            // A server that is gone has ended them already.
            let _ = self.killer.kill_client(window);
        }
        let _ = self.killer.flush();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Client {
    connection: RustConnection,
    canvas: Canvas,
    drawing: Drawing,
}

impl Client {
    /// Plaids have their windows side by side, as far as the screen has room.
    fn connect(server: &Server, drawing: Drawing, index: usize) -> Result<Client> {
        let connection = server.connect()?;
        let screen = &connection.setup().roots[0];
        let (width, height) = drawing.room();
        let index = if matches!(drawing, Drawing::Squares(..)) { 0 } else { index };
        if let Drawing::Part(_) = drawing {
            let (window, context) = (connection.generate_id()?, connection.generate_id()?);
            connection.create_pixmap(screen.root_depth, window, screen.root, width, height)?;
            connection.create_gc(context, window, &CreateGCAux::new())?.check()?;
            return Ok(Client { connection, canvas: Canvas { window, context }, drawing });
        }
        let columns = usize::from((screen.width_in_pixels / width).max(1));
        let (x, y) = ((index % columns) as i16 * width as i16, (index / columns) as i16 * height as i16);
        let y = y.min(screen.height_in_pixels.saturating_sub(height) as i16);
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let canvas = Canvas::show(&connection, (x, y, width, height), look, &drawing.ink(screen))?;
        Ok(Client { connection, canvas, drawing })
    }

    /// From before one such request until its answer; without one, of the round trip alone.
    fn time(&self, drawing: Option<Drawing>) -> Result<Duration> {
        let rectangles = drawing.map(|drawing| drawing.rectangles(0)).unwrap_or_default();
        let began = Instant::now();
        if !rectangles.is_empty() {
            self.fill(&rectangles)?;
        }
        self.connection.get_input_focus()?.reply()?;
        Ok(began.elapsed())
    }

    fn fill(&self, rectangles: &[Rectangle]) -> Result<()> {
        self.connection.poly_fill_rectangle(self.canvas.window, self.canvas.context, rectangles)?;
        Ok(())
    }

    /// Until the server closes the connection.
    fn flood(self, sent: &AtomicU64) -> Result<()> {
        let mut next = Instant::now();
        for turn in 0.. {
            let rectangles = self.drawing.rectangles(turn);
            if let Drawing::Part(batch) = self.drawing {
                (0..batch / rectangles.len()).try_for_each(|_| self.fill(&rectangles))?;
                self.connection.get_input_focus()?.reply()?;
                // What is late is not made up for.
                next = (next + EVERY).max(Instant::now());
                std::thread::sleep(next - Instant::now());
            } else {
                self.fill(&rectangles)?;
                sent.fetch_add(12 + 8 * rectangles.len() as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Drawing {
    /// The least that draws.
    pub const CHEAP: Drawing = Drawing::Squares(1, 1);
    /// With its word in the file of an experiment.
    pub const ALL: [(&'static str, Drawing); 4] = [
        ("cheap", Drawing::CHEAP),
        ("original", Drawing::Original),
        ("heavy", Drawing::Heavy),
        ("published", Drawing::Published),
    ];

    /// A request that keeps an otherwise idle server busy for so long.
    pub fn of_length(server: &Server, length: Duration) -> Result<Drawing> {
        const TRIED: usize = 200;
        let client = Client::connect(server, Drawing::CHEAP, 0)?;
        // The shortest of several: the others held something else too.
        let shortest = |drawing| -> Result<Duration> {
            let times: Result<Vec<Duration>> = (0..15).map(|_| client.time(drawing)).collect();
            times?.into_iter().min().ok_or_else(|| anyhow!("nothing was timed"))
        };
        let of_all = shortest(Some(Drawing::Squares(TRIED, SIDE)))?.saturating_sub(shortest(None)?);
        let of_one = (of_all.as_secs_f64() / TRIED as f64).max(1e-9);
        let squares = (length.as_secs_f64() / of_one).round() as usize;
        Ok(Drawing::Squares(squares.clamp(1, MOST_SQUARES), SIDE))
    }

    /// What makes the server busy for this part of the time, with what else it has to do.
    pub fn of_part(server: &Server, percent: u32) -> Result<Drawing> {
        let busy = |batch: f64| -> Result<f64> {
            let _flood = Flood::start(server, Drawing::Part(batch as usize), 1)?;
            std::thread::sleep(EVERY * 10);
            let (began, before) = (Instant::now(), server.cpu_time()?);
            std::thread::sleep(LOOK);
            Ok((server.cpu_time()? - before).as_secs_f64() / began.elapsed().as_secs_f64())
        };
        let (alone, mut batch) = (busy(0.0)?, 100.0);
        let wanted = (f64::from(percent) / 100.0 - alone).max(0.0);
        for _ in 0..3 {
            let of_one = (busy(batch)? - alone).max(0.001) / batch;
            batch = wanted / of_one;
            if batch < 1.0 {
                return Ok(Drawing::Part(0));
            }
        }
        Ok(Drawing::Part(batch as usize))
    }

    /// Of a window, or a pixmap.
    fn room(self) -> (u16, u16) {
        match self {
            Drawing::Squares(..) => (ROOM, ROOM),
            Drawing::Part(_) => (100, 100),
            Drawing::Original => ORIGINAL,
            Drawing::Heavy | Drawing::Published => (SMALL, SMALL),
        }
    }

    fn ink(self, screen: &Screen) -> CreateGCAux {
        let inverting = screen.white_pixel ^ screen.black_pixel;
        match self {
            Drawing::Squares(..) | Drawing::Part(_) => CreateGCAux::new().foreground(screen.white_pixel),
            Drawing::Original => CreateGCAux::new().function(GX::INVERT).plane_mask(inverting),
            Drawing::Heavy | Drawing::Published => CreateGCAux::new().function(GX::XOR).foreground(0x0055_aa33),
        }
    }

    /// Of one request.
    fn rectangles(self, turn: usize) -> Vec<Rectangle> {
        match self {
            Drawing::Squares(count, side) => (0..count).map(|index| square(index, side)).collect(),
            Drawing::Part(_) => vec![Rectangle { x: 0, y: 0, width: 100, height: 100 }; 10],
            Drawing::Original => (0..10).map(|index| around_the_middle(turn * 10 + index)).collect(),
            Drawing::Heavy => (0..20).map(|index| stripe(turn, index)).collect(),
            Drawing::Published => (0..160).map(|index| stripe(turn, index)).collect(),
        }
    }
}

fn square(index: usize, side: u16) -> Rectangle {
    let at = |step: usize| (index * step % usize::from(ROOM - side)) as i16;
    Rectangle { x: at(37), y: at(53), width: side, height: side }
}

/// Each side grows to the window's and shrinks again, in its own time.
fn around_the_middle(step: usize) -> Rectangle {
    let half = |side: u16| {
        let most = usize::from(side / 2 / STEP) - 1;
        let at = step % (2 * most);
        STEP * (1 + at.min(2 * most - at) as u16)
    };
    let (width, height) = ORIGINAL;
    let (across, down) = (half(width), half(height));
    let (x, y) = ((width / 2 - across) as i16, (height / 2 - down) as i16);
    Rectangle { x, y, width: 2 * across, height: 2 * down }
}

/// It wanders over the window, across and down in turn.
fn stripe(turn: usize, index: usize) -> Rectangle {
    let at = (turn as i64 * 7 + index as i64 * 13).rem_euclid(i64::from(SMALL - THICK)) as i16;
    match turn % 2 {
        0 => Rectangle { x: 0, y: at, width: SMALL, height: THICK },
        _ => Rectangle { x: at, y: 0, width: THICK, height: SMALL },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rectangles_lie_in_the_window() {
        for (_, drawing) in Drawing::ALL.into_iter().chain([("", Drawing::Squares(500, SIDE)), ("", Drawing::Part(20))])
        {
            let (width, height) = drawing.room();
            for one in (0..1000).flat_map(|turn| drawing.rectangles(turn)) {
                assert!(one.x >= 0 && one.x as u16 + one.width <= width, "{drawing:?} {one:?}");
                assert!(one.y >= 0 && one.y as u16 + one.height <= height, "{drawing:?} {one:?}");
            }
        }
    }

    #[test]
    fn the_rectangles_of_plaid_grow_and_shrink() {
        let widths: Vec<u16> = (0..100).map(|step| around_the_middle(step).width).collect();
        assert_eq!((widths.iter().min(), widths.iter().max()), (Some(&4), Some(&100)));
        assert!(widths.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 4), "{widths:?}");
    }
}
