// SPDX-License-Identifier: MIT
//! The line client: a rubber-band line follows the pointer (Packard 7.1).
//!
//! For each motion it erases the old line, draws the new one, and changes a property of its window. The server's
//! PropertyNotify shows when the line was drawn. **Receipt** is the time from the motion until its event arrives here,
//! **Echo** the time until the PropertyNotify arrives. Both start when the motion is submitted, by our clock. As in the
//! paper, Echo is also computed in milliseconds from the server's timestamps of the two events.
//!
//! Motions are identified by their destination, because no two motions of a measurement lead to the same place.

use crate::canvas::Canvas;
use crate::pointer::Pointer;
use crate::server::Server;
use anyhow::Result;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, GX, MotionNotifyEvent,
    PropMode, Segment,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use xqos_abi::{Setting, Subject};
use xqos_client::Control;
use xqos_core::Reservation;

/// Side of the window at the lower right of the screen, in pixels.
const SIDE: u16 = 400;
/// A mouse reports about a hundred motions a second. Irregular steps do not synchronise with other periodic work.
const STEPS_MS: [u64; 5] = [8, 11, 9, 13, 10];
/// Delay after a viewer connects, because xqos checks only once a second which sockets the server itself polls.
const SETTLE: Duration = Duration::from_millis(1200);
const PATIENCE: Duration = Duration::from_secs(3);

/// Measurements of each motion. Values with the same index belong together.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    pub receipt_ms: Vec<f64>,
    pub echo_ms: Vec<f64>,
    /// From the server's timestamps.
    pub echo_server_ms: Vec<f64>,
    pub moved: u64,
}

/// Moves the pointer `moves` times over the window of a line client. The client first makes the given reservation.
pub fn measure(server: &Server, reservation: Option<Reservation>, moves: u32) -> Result<Echoes> {
    let control = server.control()?;
    reservation.map_or(Ok(()), |wanted| control.set(Subject::Client(0), Setting::Reservation(wanted)))?;
    let client = LineClient::new(&control)?;
    let (pointer, plan) = (Pointer::of(server)?, client.plan(moves));
    let (end, window) = (server.connect()?, client.canvas.window);
    let (done, all_seen) = mpsc::channel();
    std::thread::scope(|scope| {
        let mover = scope.spawn(move || {
            std::thread::sleep(SETTLE);
            let moved = move_along(&pointer, &plan);
            if all_seen.recv_timeout(PATIENCE).is_ok() {
                return moved;
            }
            // The client still waits for echoes. This message ends its wait.
            let message = ClientMessageEvent::new(32, window, AtomEnum::STRING, [0; 5]);
            end.send_event(false, window, EventMask::NO_EVENT, message)?;
            end.flush()?;
            moved
        });
        let seen = client.follow(moves as usize)?;
        // Ignore errors: the mover may have stopped waiting.
        let _ = done.send(());
        let moved = mover.join().map_err(|_| anyhow::anyhow!("the thread that moves the pointer failed"))??;
        Ok(echoes(&seen, &moved))
    })
}

type Moved = HashMap<(i16, i16), Instant>;

fn move_along(pointer: &Pointer, plan: &[(i16, i16)]) -> Result<Moved> {
    let mut moved = Moved::new();
    let mut next = Instant::now();
    for (turn, &(x, y)) in plan.iter().enumerate() {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        moved.insert((x, y), pointer.move_to(x, y)?);
        next += Duration::from_millis(STEPS_MS[turn % STEPS_MS.len()]);
    }
    Ok(moved)
}

struct LineClient<'a> {
    connection: &'a RustConnection,
    canvas: Canvas,
    corner: (i16, i16),
}

#[derive(Clone, Copy, Debug)]
struct Motion {
    place: (i16, i16),
    received: Instant,
    moved_ms: u32,
    echoed: Option<(Instant, u32)>,
}

impl<'a> LineClient<'a> {
    fn new(control: &'a Control) -> Result<LineClient<'a>> {
        let connection = control.connection()?;
        let screen = &connection.setup().roots[control.screen()];
        let corner = ((screen.width_in_pixels - SIDE) as i16, (screen.height_in_pixels - SIDE) as i16);
        let events = EventMask::POINTER_MOTION | EventMask::PROPERTY_CHANGE;
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel).event_mask(events);
        let ink = CreateGCAux::new().function(GX::XOR).foreground(screen.white_pixel);
        let canvas = Canvas::show(connection, (corner.0, corner.1, SIDE, SIDE), look, &ink)?;
        Ok(LineClient { connection, canvas, corner })
    }

    /// A path over the window that never returns to the same place.
    fn plan(&self, moves: u32) -> Vec<(i16, i16)> {
        let side = u32::from(SIDE) - 20;
        (0..moves)
            .map(|turn| {
                let (x, y) = (turn * 7 % side, (turn * 7 / side * 11 + turn * 3) % side);
                (self.corner.0 + 10 + x as i16, self.corner.1 + 10 + y as i16)
            })
            .collect()
    }

    /// Draws until every motion has its echo, or a message ends the measurement.
    fn follow(&self, moves: usize) -> Result<Vec<Motion>> {
        let (mut motions, mut waiting, mut old) = (Vec::<Motion>::new(), VecDeque::new(), None);
        let mut echoed = 0;
        while echoed < moves {
            match self.connection.wait_for_event()? {
                Event::MotionNotify(motion) => {
                    let received = Instant::now();
                    old = Some(self.draw(old, &motion)?);
                    waiting.push_back(motions.len());
                    let place = (motion.root_x, motion.root_y);
                    motions.push(Motion { place, received, moved_ms: motion.time, echoed: None });
                }
                Event::PropertyNotify(notification) => {
                    if let Some(index) = waiting.pop_front() {
                        motions[index].echoed = Some((Instant::now(), notification.time));
                        echoed += 1;
                    }
                }
                Event::ClientMessage(_) => break,
                _ => {}
            }
        }
        Ok(motions)
    }

    fn draw(&self, old: Option<Segment>, motion: &MotionNotifyEvent) -> Result<Segment> {
        let line = Segment { x1: 0, y1: 0, x2: motion.event_x, y2: motion.event_y };
        let lines: Vec<Segment> = old.into_iter().chain([line]).collect();
        let Canvas { window, context } = self.canvas;
        self.connection.poly_segment(window, context, &lines)?;
        self.connection.change_property8(PropMode::APPEND, window, AtomEnum::WM_NAME, AtomEnum::STRING, b"")?;
        self.connection.flush()?;
        Ok(line)
    }
}

fn echoes(motions: &[Motion], moved: &Moved) -> Echoes {
    let ms = |from: Instant, to: Instant| to.saturating_duration_since(from).as_nanos() as f64 / 1e6;
    let mut echoes = Echoes { moved: moved.len() as u64, ..Echoes::default() };
    for motion in motions {
        let (Some(&at), Some((echoed, echoed_ms))) = (moved.get(&motion.place), motion.echoed) else { continue };
        echoes.receipt_ms.push(ms(at, motion.received));
        echoes.echo_ms.push(ms(at, echoed));
        echoes.echo_server_ms.push(echoed_ms.wrapping_sub(motion.moved_ms).into());
    }
    echoes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_belongs_to_the_motion_to_the_same_place() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let moved = Moved::from([((1, 1), after(0)), ((2, 2), after(10)), ((3, 3), after(20))]);
        let motion = |at, received, moved_ms, echoed| Motion {
            place: (at, at),
            received: after(received),
            moved_ms,
            echoed: Some((after(echoed), u32::MAX.wrapping_add(3))),
        };
        let lost = Motion { echoed: None, ..motion(3, 21, 9, 22) };
        let stray = motion(7, 1, 1, 1);
        let echoes = echoes(&[motion(2, 12, u32::MAX, 15), stray, motion(1, 1, 0, 4), lost], &moved);
        assert_eq!((echoes.moved, echoes.receipt_ms.len()), (3, 2));
        assert_eq!((echoes.receipt_ms, echoes.echo_ms), (vec![2.0, 1.0], vec![5.0, 4.0]));
        assert_eq!(echoes.echo_server_ms, [3.0, 2.0], "the server's clock wraps");
    }
}
