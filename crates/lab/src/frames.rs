// SPDX-License-Identifier: MIT
//! The animation: a picture every 15 ms, drawn without waiting for anything (Packard 7.2).
//!
//! It draws a frame, rests for 15 ms, and draws the next, however far behind the server is; a second thread reads the
//! PropertyNotify that ends each frame. **Drawing** is from before a frame's first request to that notification, by our
//! clock; **Frame** the time between the notifications of two frames, by the server's timestamps as in the paper, which
//! count milliseconds.

use crate::light::Reservation;
use crate::server::Server;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Arc, AtomEnum, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, Gcontext, PropMode, Rectangle, Window,
    WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use xqos_client::Control;

/// Between the end of a frame's drawing and the next frame.
pub const REST: Duration = Duration::from_millis(15);
const SIDE: u16 = 300;
/// Spokes of the wheel that turns, each a request of its own.
const SPOKES: i16 = 24;

/// What was measured: one entry for each frame, and one less for the times between.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Shown {
    pub drawing_ns: Vec<u64>,
    /// By the server's timestamps.
    pub frame_ms: Vec<u32>,
    /// Between the arrivals of the notifications, by our clock.
    pub frame_ns: Vec<u64>,
}

impl Shown {
    pub fn drawing_ms(&self) -> Vec<f64> {
        self.drawing_ns.iter().map(|&ns| ns as f64 / 1e6).collect()
    }

    pub fn frame_ms(&self) -> Vec<f64> {
        self.frame_ms.iter().map(|&ms| f64::from(ms)).collect()
    }

    fn of(began: &[Instant], notified: &[(Instant, u32)]) -> Shown {
        let drawing = began.iter().zip(notified).map(|(began, (at, _))| at.saturating_duration_since(*began));
        let pairs = || notified.windows(2);
        Shown {
            drawing_ns: drawing.map(|took| took.as_nanos() as u64).collect(),
            frame_ms: pairs().map(|pair| pair[1].1.wrapping_sub(pair[0].1)).collect(),
            frame_ns: pairs().map(|pair| pair[1].0.saturating_duration_since(pair[0].0).as_nanos() as u64).collect(),
        }
    }
}

/// Shows so many frames; the client has the reservation if one is given.
pub fn measure(server: &Server, reservation: Option<Reservation>, frames: usize) -> Result<Shown> {
    let control = server.control()?;
    if let Some(wanted) = reservation {
        control.reserve(0, wanted.budget_us, wanted.period_us, wanted.hard)?;
    }
    let wheel = Wheel::new(&control)?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| wheel.notifications(frames));
        let mut began = Vec::with_capacity(frames);
        for frame in 0..frames {
            began.push(Instant::now());
            wheel.draw(frame)?;
            std::thread::sleep(REST);
        }
        let notified = reader.join().map_err(|_| anyhow::anyhow!("the thread that reads events failed"))??;
        Ok(Shown::of(&began, &notified))
    })
}

struct Wheel<'a> {
    connection: &'a RustConnection,
    window: Window,
    context: Gcontext,
}

impl<'a> Wheel<'a> {
    /// At the upper right of the screen.
    fn new(control: &'a Control) -> Result<Wheel<'a>> {
        let connection = control.connection()?;
        let screen = &connection.setup().roots[control.screen()];
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let look = CreateWindowAux::new()
            .background_pixel(screen.white_pixel)
            .override_redirect(1)
            .event_mask(EventMask::PROPERTY_CHANGE);
        let (left, class) = ((screen.width_in_pixels - SIDE) as i16, WindowClass::INPUT_OUTPUT);
        connection.create_window(0, window, screen.root, left, 0, SIDE, SIDE, 0, class, 0, &look)?;
        connection.create_gc(context, window, &CreateGCAux::new().foreground(screen.black_pixel))?;
        connection.map_window(window)?;
        connection.get_input_focus()?.reply()?;
        Ok(Wheel { connection, window, context })
    }

    /// A turn of the wheel by some degrees, and the property whose change tells that it is there.
    fn draw(&self, frame: usize) -> Result<()> {
        self.connection.clear_area(false, self.window, 0, 0, 0, 0)?;
        for spoke in 0..SPOKES {
            // In 64ths of a degree.
            let angle1 = ((frame as i64 * 320 + i64::from(spoke) * 360 * 64 / i64::from(SPOKES)) % (360 * 64)) as i16;
            let arc = Arc { x: 20, y: 20, width: SIDE - 40, height: SIDE - 40, angle1, angle2: 320 };
            self.connection.poly_fill_arc(self.window, self.context, &[arc])?;
        }
        let hub = Rectangle { x: SIDE as i16 / 2 - 8, y: SIDE as i16 / 2 - 8, width: 16, height: 16 };
        self.connection.poly_fill_rectangle(self.window, self.context, &[hub])?;
        self.connection.change_property8(PropMode::APPEND, self.window, AtomEnum::WM_NAME, AtomEnum::STRING, b"")?;
        self.connection.flush()?;
        Ok(())
    }

    fn notifications(&self, count: usize) -> Result<Vec<(Instant, u32)>> {
        let mut notified = Vec::with_capacity(count);
        while notified.len() < count {
            if let Event::PropertyNotify(notification) = self.connection.wait_for_event()? {
                notified.push((Instant::now(), notification.time));
            }
        }
        Ok(notified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_queue_up_are_late_and_come_in_bursts() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let began = [after(0), after(15), after(30)];
        let shown = Shown::of(&began, &[(after(40), u32::MAX), (after(41), 0), (after(41), 0)]);
        assert_eq!(shown.drawing_ms(), [40.0, 26.0, 11.0]);
        assert_eq!(shown.frame_ms(), [1.0, 0.0], "the server's clock wraps");
        assert_eq!(shown.frame_ns, [1_000_000, 0]);
    }
}
