// SPDX-License-Identifier: MIT
//! Clients of our own that never pause: threads that send one request over and over, as fast as the server takes it.
//!
//! x11perf is what the other experiments use, and it is a process each with requests of its own choice. Here a request
//! has the length that is asked for, and hundreds of clients cost no more than a thread each. A client writes until its
//! socket is full, so it always has work waiting in the server; it is ended by KillClient, which the server obeys however
//! much is waiting.

use crate::server::Server;
use anyhow::{Result, anyhow};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, Gcontext, Rectangle, Window, WindowClass};
use x11rb::rust_connection::RustConnection;

/// The rectangles that requests are made of: large enough that filling them is the cost.
const SIDE: u16 = 250;
/// A request of one rectangle takes longer than this on no machine that we know.
const MOST_RECTANGLES: usize = 16_000;

/// How many rectangles a request fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub rectangles: usize,
    pub side: u16,
}

impl Work {
    /// The least that draws.
    pub const CHEAP: Work = Work { rectangles: 1, side: 1 };

    /// A request that keeps an otherwise idle server busy for so long.
    pub fn of_length(server: &Server, length: Duration) -> Result<Work> {
        let client = Client::connect(server)?;
        let trial = Work { rectangles: 200, side: SIDE };
        // The shortest of several: the others held something else too.
        let shortest = |work: Option<Work>| -> Result<Duration> {
            let times: Result<Vec<Duration>> = (0..15).map(|_| client.time(work)).collect();
            times?.into_iter().min().ok_or_else(|| anyhow!("nothing was timed"))
        };
        let of_trial = shortest(Some(trial))?.saturating_sub(shortest(None)?);
        let of_one = (of_trial.as_secs_f64() / trial.rectangles as f64).max(1e-9);
        let rectangles = (length.as_secs_f64() / of_one).round() as usize;
        Ok(Work { rectangles: rectangles.clamp(1, MOST_RECTANGLES), side: SIDE })
    }
}

/// Clients that draw until this is dropped.
#[derive(Debug)]
pub struct Flood {
    windows: Vec<Window>,
    threads: Vec<JoinHandle<()>>,
    /// Ends the others; the server reads its requests although they flood it.
    killer: RustConnection,
}

impl Flood {
    /// Returns when all are connected and send.
    pub fn start(server: &Server, work: Work, count: usize) -> Result<Flood> {
        let mut flood = Flood { windows: Vec::new(), threads: Vec::new(), killer: server.connect()? };
        // All connect before the first one floods, or the last would wait long for its connection.
        let clients = (0..count).map(|_| Client::connect(server)).collect::<Result<Vec<_>>>()?;
        for client in clients {
            flood.windows.push(client.window);
            flood.threads.push(std::thread::Builder::new().stack_size(128 << 10).spawn(move || client.flood(work))?);
        }
        Ok(flood)
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
    window: Window,
    context: Gcontext,
}

impl Client {
    fn connect(server: &Server) -> Result<Client> {
        let connection = server.connect()?;
        let screen = &connection.setup().roots[0];
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let look = CreateWindowAux::new().override_redirect(1);
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, screen.root, 8, 8, 600, 600, 0, class, 0, &look)?;
        connection.create_gc(context, window, &CreateGCAux::new().foreground(screen.black_pixel))?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Client { connection, window, context })
    }

    fn rectangles(work: Work) -> Vec<Rectangle> {
        let room = 600 - work.side as usize;
        let at = |index: usize, step: usize| (index * step % room) as i16;
        (0..work.rectangles)
            .map(|index| Rectangle { x: at(index, 37), y: at(index, 53), width: work.side, height: work.side })
            .collect()
    }

    /// From before one such request until its answer; without one, of the round trip alone.
    fn time(&self, work: Option<Work>) -> Result<Duration> {
        let rectangles = work.map(Client::rectangles).unwrap_or_default();
        let began = Instant::now();
        if !rectangles.is_empty() {
            self.connection.poly_fill_rectangle(self.window, self.context, &rectangles)?;
        }
        self.connection.get_input_focus()?.reply()?;
        Ok(began.elapsed())
    }

    /// Until the server closes the connection.
    fn flood(self, work: Work) {
        let rectangles = Client::rectangles(work);
        while self.connection.poly_fill_rectangle(self.window, self.context, &rectangles).is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rectangles_lie_in_the_window() {
        for work in [Work::CHEAP, Work { rectangles: 500, side: SIDE }] {
            let rectangles = Client::rectangles(work);
            assert_eq!(rectangles.len(), work.rectangles);
            let inside = |from: i16, length: u16| from >= 0 && from as u16 + length <= 600;
            assert!(rectangles.iter().all(|one| inside(one.x, one.width) && inside(one.y, one.height)));
        }
    }
}
