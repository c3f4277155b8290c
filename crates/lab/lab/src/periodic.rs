// SPDX-License-Identifier: MIT
//! A client that repeatedly draws a turning wheel and pauses.
//!
//! | client | after each frame | pause |
//! |---|---|---|
//! | [`ANIMATION`] (Packard 7.2) | waits for nothing | 15 ms |
//! | [`OCBENCH`] (Manica et al. 2008, section 2) | waits until the server has drawn it | 10 ms |
//!
//! A frame ends with a property change. The PropertyNotify event shows when the server had drawn the frame, on our
//! clock and, as in Packard's paper, on the server's, which counts milliseconds.
//!
//! The kernel contributes to each period, as in [`crate::light`]: while the server or this client is runnable without a
//! processor, no scheduler in the server can help.

use crate::canvas::Canvas;
use crate::server::Server;
use crate::statistics::median;
use anyhow::{Result, anyhow};
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Arc, AtomEnum, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, PropMode, Rectangle,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use xqos_abi::{Setting, Subject};
use xqos_core::Reservation;
use xqos_sys::monotonic_ns;
use xqos_sys::proc::RunTimes;

#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// Side of the window at the upper right of the screen, in pixels.
    side: u16,
    /// Number of spokes, each drawn by its own request.
    spokes: usize,
    waits: bool,
    rest: Duration,
}

const REST: Duration = Duration::from_millis(15);
pub const ANIMATION: Habit = Habit { side: 300, spokes: 24, waits: false, rest: REST };
/// The window is so large that a frame takes [`REDRAW`] with fewer than [`MOST_SPOKES`] spokes.
pub const OCBENCH: Habit = Habit { side: 600, spokes: 50, waits: true, rest: Duration::from_millis(10) };

/// The animation of the papers' experiments. Its frames are so short that the scheduler of 1987, which executes 4 KB of
/// a client's requests per pass, keeps up with them while twelve plaids draw.
pub const ENGINE: Habit = Habit { spokes: 4, ..ANIMATION };
/// A player of 25 frames a second that queues frames without a limit, as the one of the QoS paper did.
pub const STREAM: Habit = Habit { rest: Duration::from_millis(40), ..ENGINE };

/// Time of a frame of ocbench on an idle server: `a` in the paper.
const REDRAW: Duration = Duration::from_millis(2);
/// Number of spokes that fit into the connection's buffer of 16 kB, so that a frame is one write.
const MOST_SPOKES: usize = 600;
/// Number of frames that are timed to choose the number of spokes, and how often this is repeated.
const CALIBRATED_BY: usize = 30;
const CALIBRATIONS: usize = 3;
/// A full turn in the protocol's unit, 1/64 degree, and the rotation from one frame to the next.
const TURN: i64 = 360 * 64;
const STEP: i64 = 5 * 64;

/// Measurements as columns. Values with the same index belong together.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// Times just before the frame's first request, and when the server had drawn it; on the clock of traces.
    pub at_ns: Vec<u64>,
    pub drawn_ns: Vec<u64>,
    /// On the server's clock.
    drawn_ms: Vec<u32>,
    /// For a client that waits: time in which the server or this client was runnable without a processor. The sum is an
    /// upper bound, since the two times may overlap.
    kernel_ns: Vec<u64>,
    /// Time in which this client was runnable without a processor after its pause, before the frame.
    wake_kernel_ns: Vec<u64>,
}

/// Beginning, end, and the time that the kernel contributed.
pub type Stretch = (u64, u64, u64);

impl Frames {
    pub fn latencies(&self) -> impl Iterator<Item = Stretch> + '_ {
        self.at_ns.iter().zip(&self.drawn_ns).zip(&self.kernel_ns).map(|((&at, &drawn), &kernel)| (at, drawn, kernel))
    }

    pub fn periods(&self) -> impl Iterator<Item = Stretch> + '_ {
        let wakes = self.wake_kernel_ns.iter().skip(1);
        let kernel = self.kernel_ns.iter().zip(wakes).map(|(latency, wake)| latency + wake);
        self.at_ns.windows(2).zip(kernel).map(|(pair, kernel_ns)| (pair[0], pair[1], kernel_ns))
    }

    pub fn latency_ms(&self) -> Vec<f64> {
        self.latencies().map(|(at, drawn, _)| drawn.saturating_sub(at) as f64 / 1e6).collect()
    }

    pub fn interval_ms(&self) -> Vec<f64> {
        self.drawn_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e6).collect()
    }

    pub fn interval_by_server_ms(&self) -> Vec<f64> {
        self.drawn_ms.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]).into()).collect()
    }
}

/// The client, which lives as long as the connection.
#[derive(Debug)]
pub struct Periodic<'a> {
    connection: &'a RustConnection,
    canvas: Canvas,
    habit: Habit,
}

/// Draws this many frames. The client first makes the given reservation.
pub fn animate(server: &Server, habit: Habit, reservation: Option<Reservation>, frames: usize) -> Result<Frames> {
    let control = server.control()?;
    reservation.map_or(Ok(()), |wanted| control.set(Subject::Client(0), Setting::Reservation(wanted)))?;
    Periodic::new(control.connection()?, habit)?.run(None, frames, |_| {})
}

impl<'a> Periodic<'a> {
    pub fn new(connection: &'a RustConnection, habit: Habit) -> Result<Periodic<'a>> {
        let screen = &connection.setup().roots[0];
        let look = CreateWindowAux::new().background_pixel(screen.white_pixel).event_mask(EventMask::PROPERTY_CHANGE);
        let place = ((screen.width_in_pixels - habit.side) as i16, 0, habit.side, habit.side);
        let canvas = Canvas::show(connection, place, look, &CreateGCAux::new().foreground(screen.black_pixel))?;
        Ok(Periodic { connection, canvas, habit })
    }

    /// Returns ocbench with the number of spokes for which a frame takes [`REDRAW`]. The server must be idle.
    pub fn calibrate(server: &Server) -> Result<Habit> {
        let connection = server.connect()?;
        let mut client = Periodic::new(&connection, OCBENCH)?;
        for _ in 0..CALIBRATIONS {
            // Use the median: the shortest time is reached when the processor runs at its highest speed, and a wheel
            // calibrated with it usually takes 3 ms.
            let took_ms = median(client.run(None, CALIBRATED_BY, |_| {})?.latency_ms()).max(1e-6);
            let spokes = client.habit.spokes as f64 * REDRAW.as_secs_f64() * 1e3 / took_ms;
            client.habit.spokes = (spokes as usize).clamp(1, MOST_SPOKES);
        }
        Ok(client.habit)
    }

    pub fn base(&self) -> u32 {
        self.connection.setup().resource_id_base
    }

    /// Draws this many frames. `before` is called with each frame's number and must be quick. `server`: the kernel's
    /// scheduler figures of the server.
    pub fn run(&self, server: Option<RunTimes>, count: usize, mut before: impl FnMut(usize)) -> Result<Frames> {
        let own = RunTimes::of_this_thread();
        let delayed = |times: &Option<RunTimes>| times.as_ref().map_or(0, RunTimes::delayed_ns);
        let (mut frames, mut drawn) = (Frames::default(), Vec::new());
        std::thread::scope(|scope| {
            let all_drawn = || (0..count).map(|_| self.drawn()).collect::<Result<Vec<_>>>();
            let reader = (!self.habit.waits).then(|| scope.spawn(all_drawn));
            let mut asleep = delayed(&own);
            for frame in 0..count {
                before(frame);
                let (server_before, own_before, at_ns) = (delayed(&server), delayed(&own), monotonic_ns());
                self.draw(frame)?;
                if self.habit.waits {
                    drawn.push(self.drawn()?);
                }
                let latency_ns = drawn.last().map_or(0, |drawn| drawn.0 - at_ns);
                let (server_after, own_after) = (delayed(&server), delayed(&own));
                let kernel_ns = server_after.saturating_sub(server_before) + own_after.saturating_sub(own_before);
                frames.at_ns.push(at_ns);
                frames.kernel_ns.push(kernel_ns.min(latency_ns));
                frames.wake_kernel_ns.push(own_before.saturating_sub(asleep));
                asleep = own_after;
                std::thread::sleep(self.habit.rest);
            }
            if let Some(reader) = reader {
                drawn = reader.join().map_err(|_| anyhow!("the thread that reads events failed"))??;
            }
            (frames.drawn_ns, frames.drawn_ms) = drawn.into_iter().unzip();
            Ok(frames)
        })
    }

    fn draw(&self, frame: usize) -> Result<()> {
        let (connection, middle, Canvas { window, context }) =
            (self.connection, self.habit.side as i16 / 2, self.canvas);
        connection.clear_area(false, window, 0, 0, 0, 0)?;
        for spoke in 0..self.habit.spokes {
            connection.poly_fill_arc(window, context, &[self.habit.spoke(spoke, frame)])?;
        }
        let hub = Rectangle { x: middle - 8, y: middle - 8, width: 16, height: 16 };
        connection.poly_fill_rectangle(window, context, &[hub])?;
        connection.change_property8(PropMode::APPEND, window, AtomEnum::WM_NAME, AtomEnum::STRING, b"")?;
        Ok(connection.flush()?)
    }

    /// Waits until the next frame is drawn. Returns the time on our clock and on the server's.
    fn drawn(&self) -> Result<(u64, u32)> {
        loop {
            if let Event::PropertyNotify(changed) = self.connection.wait_for_event()? {
                return Ok((monotonic_ns(), changed.time));
            }
        }
    }
}

impl Habit {
    /// A spoke, a third as wide as the distance to the next one.
    fn spoke(self, spoke: usize, frame: usize) -> Arc {
        let apart = TURN / self.spokes as i64;
        let angle1 = ((frame as i64 * STEP + spoke as i64 * TURN / self.spokes as i64) % TURN) as i16;
        let side = self.side - 40;
        Arc { x: 20, y: 20, width: side, height: side, angle1, angle2: (apart / 3).max(1) as i16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_period_includes_the_kernels_part_of_frame_and_pause() {
        let frames = Frames {
            at_ns: vec![MS, 13 * MS, 28 * MS],
            kernel_ns: vec![500_000, 0, 9],
            wake_kernel_ns: vec![7, MS, 3 * MS],
            ..Frames::default()
        };
        let periods: Vec<Stretch> = frames.periods().collect();
        assert_eq!(periods, [(MS, 13 * MS, 1_500_000), (13 * MS, 28 * MS, 3 * MS)]);
    }

    #[test]
    fn frames_that_queue_up_are_late_and_come_in_bursts() {
        let frames = Frames {
            at_ns: vec![0, 15 * MS, 30 * MS],
            drawn_ns: vec![40 * MS, 41 * MS, 41 * MS],
            drawn_ms: vec![u32::MAX, 0, 0],
            kernel_ns: vec![0; 3],
            ..Frames::default()
        };
        assert_eq!(frames.latency_ms(), [40.0, 26.0, 11.0]);
        assert_eq!(frames.interval_ms(), [1.0, 0.0]);
        assert_eq!(frames.interval_by_server_ms(), [1.0, 0.0], "the server's clock wraps");
    }

    #[test]
    fn the_spokes_go_round_the_wheel_and_leave_gaps() {
        for spokes in [1, 24, MOST_SPOKES] {
            let last = Habit { spokes, ..OCBENCH }.spoke(spokes - 1, 999);
            assert!((0..TURN).contains(&last.angle1.into()) && last.angle2 >= 1, "{last:?}");
            assert!(i64::from(last.angle2) * spokes as i64 <= TURN, "{last:?}");
        }
        assert_ne!(ANIMATION.spoke(0, 0).angle1, ANIMATION.spoke(0, 1).angle1, "the wheel turns");
    }
}
