// SPDX-License-Identifier: MIT
//! The light client, which measures the response times that a user at the screen experiences.
//!
//! Every 10 ms it draws 200 lines, each in a separate request, followed by GetInputFocus, all in one write. The
//! response time is measured from just before that write until the answer arrives. It includes the passage through the
//! kernel in both directions, the wait for the server, and the drawing.
//!
//! The client must use little processor time, because a task that has just used up its share is preempted during the
//! measurement. The requests are therefore prepared once, and a turn consists of one write and one read. (x11rb polls
//! the socket before each of the 200 requests, which took three times as much processor time as everything else.)
//!
//! Turns start at fixed instants that do not drift with the answers. A turn whose instant passes while an earlier
//! answer is outstanding is skipped and counted as missed, like a late frame of an animation.
//!
//! The kernel contributes to every response: the server or this client may be runnable but have to wait for a
//! processor. The kernel counts this time for each task (run delay), and each sample records it, so the server's
//! scheduling and the kernel's can be separated.

use crate::canvas::Canvas;
use crate::server::Server;
use anyhow::{Result, bail};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    CreateGCAux, CreateWindowAux, Gcontext, GetInputFocusRequest, PolySegmentRequest, Segment, Window,
};
use x11rb::rust_connection::RustConnection;
use xqos_abi::{Setting, Subject};
use xqos_core::Reservation;
use xqos_sys::proc::RunTimes;

const LINES: usize = 200;
const PERIOD: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug)]
pub struct Light {
    /// Pauses for a period after each answer instead of keeping to fixed instants, so that no turn is skipped.
    pub rests: bool,
    pub period: Duration,
    /// Turns in this time are not recorded.
    pub warm_up: Duration,
    /// The client requests it on its own connection.
    pub reservation: Option<Reservation>,
}

impl Default for Light {
    fn default() -> Self {
        Light { rests: false, period: PERIOD, warm_up: Duration::from_millis(500), reservation: None }
    }
}

impl Light {
    /// Measures in the calling thread, with normal priority.
    pub fn measure(&self, server: &Server, duration: Duration) -> Result<Measured> {
        self.measure_with(server.connect()?, server, duration)
    }

    pub fn measure_with(&self, connection: RustConnection, server: &Server, duration: Duration) -> Result<Measured> {
        if let Some(wanted) = self.reservation {
            let own = Subject::Client(connection.setup().resource_id_base);
            server.control()?.set(own, Setting::Reservation(wanted))?;
        }
        Painter::new(connection)?.measure(self, server, duration)
    }
}

#[derive(Debug)]
pub struct Measured {
    pub series: Series,
    pub from: Instant,
    pub to: Instant,
}

/// Samples as columns. Values with the same index belong together.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Time of the write, since the start of the measurement.
    pub at_us: Vec<u64>,
    pub response_ns: Vec<u64>,
    /// Time in which the server was runnable without a processor while the answer was outstanding.
    pub server_delay_ns: Vec<u64>,
    /// Time in which this client was runnable without a processor while the answer was outstanding.
    pub own_delay_ns: Vec<u64>,
    pub missed_turns: u64,
}

impl Series {
    pub fn missed_part(&self) -> f64 {
        self.missed_turns as f64 / (self.missed_turns + self.response_ns.len() as u64).max(1) as f64
    }
}

struct Painter {
    /// Owns the window, which exists as long as the connection.
    _connection: RustConnection,
    /// The socket of the same connection, which is used directly once everything has been created.
    socket: UnixStream,
    /// The requests of a turn: the lines, and GetInputFocus.
    requests: Vec<u8>,
}

impl Painter {
    /// A window at the right edge, outside the windows of x11perf.
    fn new(connection: RustConnection) -> Result<Painter> {
        let screen = &connection.setup().roots[0];
        let look = CreateWindowAux::new().background_pixel(screen.white_pixel);
        let place = (screen.width_in_pixels.saturating_sub(430) as i16, 40, 400, 400);
        let ink = CreateGCAux::new().foreground(screen.black_pixel);
        let Canvas { window, context } = Canvas::show(&connection, place, look, &ink)?;
        let socket = UnixStream::from(connection.stream().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(false)?;
        Ok(Painter { _connection: connection, socket, requests: requests(window, context) })
    }

    fn measure(&mut self, light: &Light, server: &Server, duration: Duration) -> Result<Measured> {
        let stats = [server.schedstat(), RunTimes::of_this_thread()];
        let delayed = || stats.each_ref().map(|times| times.as_ref().map_or(0, RunTimes::delayed_ns));
        let mut series = Series::default();
        let from = Instant::now() + light.warm_up;
        let to = from + duration;
        let mut turn = Instant::now();
        loop {
            std::thread::sleep(turn.saturating_duration_since(Instant::now()));
            if Instant::now() >= to {
                break;
            }
            let before = delayed();
            let began = Instant::now();
            self.draw_and_wait()?;
            let response = began.elapsed();
            let after = delayed();
            if light.rests {
                turn = Instant::now();
            }
            let missed = next_turn(&mut turn, light.period, Instant::now());
            if began >= from {
                series.at_us.push(began.duration_since(from).as_micros() as u64);
                series.response_ns.push(response.as_nanos() as u64);
                series.server_delay_ns.push(after[0].saturating_sub(before[0]));
                series.own_delay_ns.push(after[1].saturating_sub(before[1]));
                series.missed_turns += missed;
            }
        }
        Ok(Measured { series, from, to })
    }

    fn draw_and_wait(&mut self) -> Result<()> {
        self.socket.write_all(&self.requests)?;
        let mut answer = [0; 32];
        loop {
            self.socket.read_exact(&mut answer)?;
            match answer[0] {
                0 => bail!("the light client's request was refused with error {}", answer[1]),
                1 => return Ok(()),
                _ => {}
            }
        }
    }
}

fn requests(drawable: Window, gc: Gcontext) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in (0..LINES).map(line) {
        let request = PolySegmentRequest { drawable, gc, segments: vec![segment].into() };
        bytes.extend(request.serialize().0.concat());
    }
    bytes.extend(GetInputFocusRequest.serialize().0.concat());
    bytes
}

/// Advances to the first turn that is not over yet; returns the number of skipped turns.
fn next_turn(turn: &mut Instant, period: Duration, now: Instant) -> u64 {
    *turn += period;
    let late = now.saturating_duration_since(*turn);
    let missed = late.as_nanos().div_ceil(period.as_nanos()) as u64;
    *turn += period * missed as u32;
    missed
}

/// Lines of about a hundred pixels, spread over the window.
fn line(index: usize) -> Segment {
    let (x, y) = ((index * 37 % 300) as i16, (index * 53 % 300) as i16);
    Segment { x1: x, y1: y, x2: x + 60 + (index % 40) as i16, y2: y + 90 - (index % 50) as i16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_keep_to_their_instants_and_late_ones_are_counted() {
        let start = Instant::now();
        let period = Duration::from_millis(10);
        let at = |ms| start + Duration::from_millis(ms);
        let mut turn = start;
        assert_eq!((next_turn(&mut turn, period, at(3)), turn), (0, at(10)));
        assert_eq!((next_turn(&mut turn, period, at(20)), turn), (0, at(20)));
        assert_eq!((next_turn(&mut turn, period, at(31)), turn), (1, at(40)));
        assert_eq!((next_turn(&mut turn, period, at(75)), turn), (3, at(80)));
    }

    #[test]
    fn all_lines_lie_in_the_window() {
        for line in (0..LINES).map(line) {
            for value in [line.x1, line.y1, line.x2, line.y2] {
                assert!((0..400).contains(&value), "{line:?}");
            }
        }
    }
}
