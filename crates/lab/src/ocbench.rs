// SPDX-License-Identifier: MIT
//! ocbench: a wheel that spins, the client of Manica et al. (2008, section 2).
//!
//! It reads the clock, draws the wheel anew in one burst of requests, waits until the server has drawn it, sleeps for
//! 10 ms, and begins again. Beside nobody its readings advance by a + 10 ms, where a is what a redraw takes; whatever it
//! has to wait for lengthens the period, and is not made up for.
//!
//! A redraw is to take 2 ms, as theirs did: the number of spokes, each a request of its own, is found once on an
//! idle server ([`Ocbench::calibrate`]) and is the same in all runs.
//!
//! The kernel has its part in each period, as in [`crate::light`]: while the server or this client is runnable and has no
//! processor, no scheduler of the server can help.

use crate::process::SchedStat;
use crate::server::Server;
use crate::statistics::median;
use anyhow::Result;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Arc, ConnectionExt as _, CreateGCAux, CreateWindowAux, Gcontext, Window, WindowClass};
use x11rb::rust_connection::RustConnection;
use xqos_client::Control;

/// Between the end of a redraw and the next, as in the paper.
const SLEEP: Duration = Duration::from_millis(10);
/// What a redraw is to take on an idle server: the paper's a.
const REDRAW: Duration = Duration::from_millis(2);
/// Of the window at the upper right of the screen, in pixels: beside x11perf's, and large enough that a burst of less
/// than [`MOST_SPOKES`] takes [`REDRAW`].
const SIDE: u16 = 600;
/// A full turn as the protocol counts angles: in 64ths of a degree.
const TURN: i64 = 360 * 64;
/// By so much the wheel turns from one redraw to the next.
const STEP: i64 = 5 * 64;
/// As many as fit into the connection's buffer of 16 kB: a burst is one write.
const MOST_SPOKES: usize = 600;
const FIRST_SPOKES: usize = 50;
/// Redraws that are timed to find the number of spokes, and how often that is done.
const CALIBRATED_BY: usize = 30;
const CALIBRATIONS: usize = 3;

/// What was measured, as columns: the i-th of each belong together. Times are from the start of the run.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    /// Right before the redraw.
    pub at_ns: Vec<u64>,
    /// From there until the server had drawn it: the X latency.
    pub latency_ns: Vec<u64>,
    /// Meanwhile the server, or this client, was runnable and had no processor; at most, for the two may overlap.
    pub latency_kernel_ns: Vec<u64>,
    /// The same of this client before the redraw, when its sleep was over.
    pub wake_kernel_ns: Vec<u64>,
}

/// From one activation to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The kernel's part of it.
    pub kernel_ns: u64,
}

impl Period {
    pub fn ms(&self) -> f64 {
        (self.to_ns - self.from_ns) as f64 / 1e6
    }

    pub fn without_kernel_ms(&self) -> f64 {
        (self.to_ns - self.from_ns).saturating_sub(self.kernel_ns) as f64 / 1e6
    }
}

impl Activations {
    pub fn periods(&self) -> impl Iterator<Item = Period> + '_ {
        let kernel = self.latency_kernel_ns.iter().zip(self.wake_kernel_ns.iter().skip(1));
        let kernel = kernel.map(|(latency, wake)| latency + wake);
        let pairs = self.at_ns.windows(2);
        pairs.zip(kernel).map(|(pair, kernel_ns)| Period { from_ns: pair[0], to_ns: pair[1], kernel_ns })
    }
}

/// The client; it lives as long as the connection.
#[derive(Debug)]
pub struct Ocbench<'a> {
    connection: &'a RustConnection,
    window: Window,
    context: Gcontext,
    spokes: usize,
    turn: i64,
}

impl<'a> Ocbench<'a> {
    pub fn new(control: &'a Control, spokes: usize) -> Result<Ocbench<'a>> {
        let connection = control.connection()?;
        let screen = &connection.setup().roots[control.screen()];
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let look = CreateWindowAux::new().background_pixel(screen.white_pixel).override_redirect(1);
        let (left, class) = ((screen.width_in_pixels - SIDE) as i16, WindowClass::INPUT_OUTPUT);
        connection.create_window(0, window, screen.root, left, 0, SIDE, SIDE, 0, class, 0, &look)?;
        connection.create_gc(context, window, &CreateGCAux::new().foreground(screen.black_pixel))?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Ocbench { connection, window, context, spokes, turn: 0 })
    }

    /// The number of spokes whose redraw takes [`REDRAW`]; the server is to be idle.
    pub fn calibrate(server: &Server) -> Result<usize> {
        let control = server.control()?;
        let mut ocbench = Ocbench::new(&control, FIRST_SPOKES)?;
        for _ in 0..CALIBRATIONS {
            let activations = ocbench.activate(server, Instant::now(), CALIBRATED_BY, |_| {})?;
            // The median: the shortest is of a processor at its best, and a wheel of 2 ms by it usually takes all of 3 ms.
            let took_ns = median(activations.latency_ns.iter().map(|&ns| ns as f64)).max(1.0);
            let spokes = ocbench.spokes as f64 * REDRAW.as_nanos() as f64 / took_ns;
            ocbench.spokes = (spokes as usize).clamp(1, MOST_SPOKES);
        }
        Ok(ocbench.spokes)
    }

    /// Which of the server's clients this is: the first of its resources.
    pub fn base(&self) -> u32 {
        self.connection.setup().resource_id_base
    }

    /// So many activations; `before` is told the number of each, and must not take long.
    pub fn activate(
        &mut self,
        server: &Server,
        start: Instant,
        count: usize,
        mut before: impl FnMut(usize),
    ) -> Result<Activations> {
        let (server_stat, own_stat) = (server.schedstat(), SchedStat::of_this_thread());
        let delayed =
            |stat: &Option<SchedStat>| stat.as_ref().and_then(SchedStat::read).map_or(0, |got| got.delayed_ns);
        let mut activations = Activations::default();
        let mut asleep = delayed(&own_stat);
        for activation in 0..count {
            before(activation);
            let (server_before, own_before) = (delayed(&server_stat), delayed(&own_stat));
            let at = Instant::now();
            self.redraw()?;
            let latency = at.elapsed();
            let (server_after, own_after) = (delayed(&server_stat), delayed(&own_stat));
            let kernel_ns = server_after.saturating_sub(server_before) + own_after.saturating_sub(own_before);
            activations.at_ns.push(at.saturating_duration_since(start).as_nanos() as u64);
            activations.latency_ns.push(latency.as_nanos() as u64);
            activations.latency_kernel_ns.push(kernel_ns.min(latency.as_nanos() as u64));
            activations.wake_kernel_ns.push(own_before.saturating_sub(asleep));
            asleep = own_after;
            std::thread::sleep(SLEEP);
        }
        Ok(activations)
    }

    /// The answer to the last request comes when all have been executed.
    fn redraw(&mut self) -> Result<()> {
        self.connection.clear_area(false, self.window, 0, 0, 0, 0)?;
        for spoke in 0..self.spokes {
            let arc = spoke_of(self.spokes, spoke, self.turn);
            self.connection.poly_fill_arc(self.window, self.context, &[arc])?;
        }
        self.turn += STEP;
        self.connection.get_input_focus()?.reply()?;
        Ok(())
    }
}

/// As wide as the gap to the next.
fn spoke_of(spokes: usize, spoke: usize, turn: i64) -> Arc {
    let angle1 = (turn + spoke as i64 * TURN / spokes as i64) % TURN;
    let angle2 = (TURN / spokes as i64 / 2).max(1);
    Arc { x: 10, y: 10, width: SIDE - 20, height: SIDE - 20, angle1: angle1 as i16, angle2: angle2 as i16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_the_kernels_part_of_its_redraw_and_of_the_sleep_after_it() {
        let activations = Activations {
            at_ns: vec![1_000_000, 13_000_000, 28_000_000],
            latency_ns: vec![2_000_000; 3],
            latency_kernel_ns: vec![500_000, 0, 9],
            wake_kernel_ns: vec![7, 1_000_000, 3_000_000],
        };
        let periods: Vec<Period> = activations.periods().collect();
        assert_eq!((periods[0].ms(), periods[0].without_kernel_ms()), (12.0, 10.5));
        assert_eq!((periods[1].ms(), periods[1].without_kernel_ms()), (15.0, 12.0));
        assert_eq!(periods.len(), 2);
    }

    #[test]
    fn the_spokes_go_round_the_wheel_and_leave_gaps() {
        for spokes in [1, 50, MOST_SPOKES] {
            let last = spoke_of(spokes, spokes - 1, TURN * 1000);
            assert!(i64::from(last.angle1) + 2 * i64::from(last.angle2) <= TURN + 1, "{spokes}: {last:?}");
            assert!(last.angle2 >= 1);
        }
        assert_ne!(spoke_of(50, 0, 0).angle1, spoke_of(50, 0, STEP).angle1, "it turns");
    }
}
