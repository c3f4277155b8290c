// SPDX-License-Identifier: MIT
//! Our own clients that never pause: threads that repeat one request as fast as the server accepts it.
//!
//! Other experiments use x11perf, where each client is a process with the requests of its test. Here a request has a
//! configurable length, or is that of plaid, the program with which the scheduler of 1987 became unusable (Packard,
//! sections 3 and 7). Hundreds of clients are cheap, since each is only a thread. A client writes until its socket is
//! full, so its requests are always pending in the server. KillClient ends the client, regardless of pending requests.
//! Only a client with [`Drawing::Part`] pauses: it keeps the server busy for a part of the time.

use crate::canvas::Canvas;
use crate::poll::poll;
use crate::server::Server;
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, GX, Rectangle, Screen, Window};
use x11rb::rust_connection::RustConnection;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawing {
    /// This many squares with this side.
    Squares(usize, u16),
    /// The drawing of plaid: ten inverting rectangles that grow and shrink around the middle of a window of 101 x 201.
    /// Such a request takes tens of microseconds on today's machines.
    Original,
    /// Twenty stripes of nearly the window's size per request, which take hundreds of microseconds. Executing a buffer
    /// of 4 KB from each client takes tens of milliseconds.
    Heavy,
    /// Ten stripes, as many rectangles as the original sends, in a window with this side. The side sets their length.
    Plaid(u16),
    /// This many rectangles every few milliseconds, ten per request, drawn into a pixmap, where no compositor sees
    /// them. The client waits until they are drawn.
    Part(usize),
}

/// Side of the window for squares, and side of a square, which is large enough that filling dominates the cost.
const ROOM: u16 = 600;
const SIDE: u16 = 250;
/// With this many squares, a request is long enough on every known machine.
const MOST_SQUARES: usize = 16_000;
/// Side of the window of [`Drawing::Heavy`]. The server that shows an Xephyr, or a viewer, must also update the window,
/// and no client scheduler can defer that work. The window is therefore small, but much is drawn in it.
const SMALL: u16 = 150;
const ORIGINAL: (u16, u16) = (101, 201);
/// Number of rectangles in a request of plaid, and the range of its window's sides.
const IN_PLAID: usize = 10;
const PLAID_SIDES: (f64, f64) = (16.0, 400.0);
/// Pixels by which half a side changes from one rectangle to the next.
const STEP: u16 = 2;
/// Interval at which [`Drawing::Part`] draws, and the duration of one measurement of the server's load.
const EVERY: Duration = Duration::from_millis(5);
const LOAD_TIME: Duration = Duration::from_millis(1500);
/// A client that has sent this many bytes must be waiting for the server, as its buffer and the socket's hold less.
const FILLED: u64 = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Clients that draw until this is dropped.
#[derive(Debug)]
pub struct Flood {
    windows: Vec<Window>,
    threads: Vec<JoinHandle<()>>,
    /// Connection that ends the others with KillClient. The server reads its requests in spite of the flood.
    killer: RustConnection,
}

impl Flood {
    /// Starts the clients. Returns when the server has received more than their connections can hold, or immediately
    /// for clients that pause.
    pub fn start(server: &Server, drawing: Drawing, count: usize) -> Result<Flood> {
        let mut flood = Flood { windows: Vec::new(), threads: Vec::new(), killer: server.connect()? };
        // All clients connect before the first one floods; otherwise the last one would wait a long time to connect.
        let clients = (0..count).map(|at| FloodClient::connect(server, drawing, at)).collect::<Result<Vec<_>>>()?;
        let sent = Arc::new(AtomicU64::new(0));
        for client in clients {
            flood.windows.push(client.canvas.window);
            let (sent, thread) = (Arc::clone(&sent), std::thread::Builder::new().stack_size(128 << 10));
            // The thread ends with an error when the server closes the connection.
            flood.threads.push(thread.spawn(move || drop(client.flood(&sent)))?);
        }
        let enough = if matches!(drawing, Drawing::Part(_)) { 0 } else { count as u64 * FILLED };
        poll(PATIENCE, Duration::from_millis(5), || Ok((sent.load(Ordering::Relaxed) >= enough).then_some(())))?;
        Ok(flood)
    }

    pub fn is_running(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    pub fn clients(&self) -> impl Iterator<Item = u32> {
        let of_client = !self.killer.setup().resource_id_mask;
        self.windows.iter().map(move |window| window & of_client)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        for &window in &self.windows {
            // If the server is gone, they have ended already.
            let _ = self.killer.kill_client(window);
        }
        let _ = self.killer.flush();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct FloodClient {
    connection: RustConnection,
    canvas: Canvas,
    drawing: Drawing,
}

impl FloodClient {
    /// Connects a client. Windows of plaids are placed side by side while the screen has room.
    fn connect(server: &Server, drawing: Drawing, index: usize) -> Result<FloodClient> {
        let connection = server.connect()?;
        let screen = &connection.setup().roots[0];
        let (width, height) = drawing.room();
        let index = if matches!(drawing, Drawing::Squares(..)) { 0 } else { index };
        if let Drawing::Part(_) = drawing {
            let (window, context) = (connection.generate_id()?, connection.generate_id()?);
            connection.create_pixmap(screen.root_depth, window, screen.root, width, height)?;
            connection.create_gc(context, window, &CreateGCAux::new())?.check()?;
            return Ok(FloodClient { connection, canvas: Canvas { window, context }, drawing });
        }
        let columns = usize::from((screen.width_in_pixels / width).max(1));
        let (x, y) = ((index % columns) as i16 * width as i16, (index / columns) as i16 * height as i16);
        let y = y.min(screen.height_in_pixels.saturating_sub(height) as i16);
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let canvas = Canvas::show(&connection, (x, y, width, height), look, &drawing.ink(screen))?;
        Ok(FloodClient { connection, canvas, drawing })
    }

    /// The time of one request of this drawing and of a round trip after it. `None`: of the round trip alone.
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

    /// Sends until the server closes the connection.
    fn flood(self, sent: &AtomicU64) -> Result<()> {
        let (mut next, mut rectangles) = (Instant::now(), self.drawing.rectangles(0));
        for turn in 1.. {
            if let Drawing::Part(batch) = self.drawing {
                (0..batch / rectangles.len()).try_for_each(|_| self.fill(&rectangles))?;
                self.connection.get_input_focus()?.reply()?;
                // Do not make up for missed intervals.
                next = (next + EVERY).max(Instant::now());
                std::thread::sleep(next - Instant::now());
            } else {
                self.fill(&rectangles)?;
                sent.fetch_add(12 + 8 * rectangles.len() as u64, Ordering::Relaxed);
            }
            if self.drawing.moves() {
                rectangles = self.drawing.rectangles(turn);
            }
        }
        Ok(())
    }
}

impl Drawing {
    /// Drawings that experiment files can use, with their names.
    pub const ALL: [(&'static str, Drawing); 2] = [("cheap", Drawing::Squares(1, 1)), ("original", Drawing::Original)];

    /// A request of squares, or of a plaid, that takes an otherwise idle server this long.
    pub fn of_length(server: &Server, length: Duration, is_plaid: bool) -> Result<Drawing> {
        const TRIED: usize = 200;
        let tried = if is_plaid { Drawing::Plaid(TRIED as u16) } else { Drawing::Squares(TRIED, SIDE) };
        let client = FloodClient::connect(server, tried, 0)?;
        // Use the shortest of several times, because the others include other work.
        let shortest = |drawing| -> Result<Duration> {
            let times: Result<Vec<Duration>> = (0..15).map(|_| client.time(drawing)).collect();
            times?.into_iter().min().ok_or_else(|| anyhow!("nothing was timed"))
        };
        let took = shortest(Some(tried))?.saturating_sub(shortest(None)?);
        let times = length.as_secs_f64() / took.as_secs_f64().max(1e-9);
        if is_plaid {
            let side = (TRIED as f64 * times.sqrt()).clamp(PLAID_SIDES.0, PLAID_SIDES.1);
            return Ok(Drawing::Plaid(side as u16));
        }
        let squares = (TRIED as f64 * times).round() as usize;
        Ok(Drawing::Squares(squares.clamp(1, MOST_SQUARES), SIDE))
    }

    /// The drawing with which the server, including its other work, is busy for this percentage of the time.
    pub fn of_part(server: &Server, percent: u32) -> Result<Drawing> {
        let busy = |batch: f64| -> Result<f64> {
            let _flood = Flood::start(server, Drawing::Part(batch as usize), 1)?;
            std::thread::sleep(EVERY * 10);
            let (began, before) = (Instant::now(), server.cpu_time()?);
            std::thread::sleep(LOAD_TIME);
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

    fn room(self) -> (u16, u16) {
        match self {
            Drawing::Squares(..) => (ROOM, ROOM),
            Drawing::Part(_) => (100, 100),
            Drawing::Original => ORIGINAL,
            Drawing::Heavy => (SMALL, SMALL),
            Drawing::Plaid(side) => (side, side),
        }
    }

    fn ink(self, screen: &Screen) -> CreateGCAux {
        let inverting = screen.white_pixel ^ screen.black_pixel;
        match self {
            Drawing::Squares(..) | Drawing::Part(_) => CreateGCAux::new().foreground(screen.white_pixel),
            Drawing::Original => CreateGCAux::new().function(GX::INVERT).plane_mask(inverting),
            Drawing::Heavy | Drawing::Plaid(_) => CreateGCAux::new().function(GX::XOR).foreground(0x0055_aa33),
        }
    }

    /// True if the rectangles change from turn to turn. Others are computed once, to save our processor time.
    fn moves(self) -> bool {
        matches!(self, Drawing::Original | Drawing::Heavy | Drawing::Plaid(_))
    }

    fn rectangles(self, turn: usize) -> Vec<Rectangle> {
        match self {
            Drawing::Squares(count, side) => (0..count).map(|index| square(index, side)).collect(),
            Drawing::Part(_) => vec![Rectangle { x: 0, y: 0, width: 100, height: 100 }; 10],
            Drawing::Original => (0..IN_PLAID).map(|index| around_the_middle(turn * IN_PLAID + index)).collect(),
            Drawing::Heavy => (0..20).map(|index| stripe(SMALL, turn, index)).collect(),
            Drawing::Plaid(side) => (0..IN_PLAID).map(|index| stripe(side, turn, index)).collect(),
        }
    }
}

fn square(index: usize, side: u16) -> Rectangle {
    let at = |step: usize| (index * step % usize::from(ROOM - side)) as i16;
    Rectangle { x: at(37), y: at(53), width: side, height: side }
}

/// Width and height each grow to that of the window and shrink again, at different rates.
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

/// Stripes cover three quarters of the window. They are horizontal in every other turn and vertical in between, and
/// move from turn to turn.
fn stripe(side: u16, turn: usize, index: usize) -> Rectangle {
    let thick = side - side / 4;
    let at = ((turn * 7 + index * 13) % usize::from(side - thick)) as i16;
    match turn % 2 {
        0 => Rectangle { x: 0, y: at, width: side, height: thick },
        _ => Rectangle { x: at, y: 0, width: thick, height: side },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rectangles_lie_in_the_window() {
        let others = [Drawing::Squares(500, SIDE), Drawing::Part(20), Drawing::Heavy];
        let plaids = [PLAID_SIDES.0, PLAID_SIDES.1].map(|side| Drawing::Plaid(side as u16));
        for drawing in Drawing::ALL.map(|(_, drawing)| drawing).into_iter().chain(others).chain(plaids) {
            let (width, height) = drawing.room();
            let sides = |one: Rectangle| (one.x, one.y, one.width, one.height);
            let [first, second] =
                [0, 1].map(|turn| drawing.rectangles(turn).into_iter().map(sides).collect::<Vec<_>>());
            assert_eq!(drawing.moves(), first != second, "{drawing:?}");
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
