// SPDX-License-Identifier: MIT
//! An onlooker: a client that draws nothing, and sees when windows move, are exposed, and have been answered for.
//!
//! Any client may ask for the events of another one's window, so this works with real programs on any server. When an
//! Expose has been answered is told by a message of the exposed program, if it is ours ([`crate::actor`]), and else by the
//! counter of its frames that a GTK program keeps for window managers (_NET_WM_SYNC_REQUEST_COUNTER): odd from when it
//! begins to paint, even when it has. Times are those of the arrival here, but for the
//! beginning of a redraw of ours: an exposed program that has the processor for itself gets its Expose before the server
//! has told anybody else.

use crate::processor::now_ns;
use crate::server::Server;
use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::Event;
use x11rb::protocol::sync::{self, ConnectionExt as _, CreateAlarmAux, Int64};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, EventMask, Window,
};
use x11rb::rust_connection::RustConnection;

/// In a message to the onlooker's own window: it is enough.
const STOP: u32 = 0x5354_4f50;

/// What was seen, each with the instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// The window that moves is somewhere else.
    Moved,
    /// A part of the exposed window.
    Exposed,
    /// A GTK program begins to paint.
    Painting,
    /// So many Exposes, counted from the first that was seen, were known when the redraw began that is done now.
    Answered { exposes: u32, began_ns: u64 },
    /// The key of this number.
    Echoed(u32),
}

/// How an exposed program tells that it has answered.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// An actor of ours.
    Told,
    /// A GTK program.
    Counted,
}

/// Whom to look at.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub moving: Window,
    pub exposed: Window,
    pub answers: Answers,
    pub echo: Window,
    /// To xqos, who gets an Expose and does not draw has not answered: there the server's trace tells of them.
    pub sees_exposes: bool,
}

/// Looks on from its start until it is dropped.
#[derive(Debug)]
pub struct Onlooker {
    seen: Arc<Mutex<Vec<(u64, Sight)>>>,
    thread: Option<JoinHandle<()>>,
    own: RustConnection,
    window: Window,
}

impl Onlooker {
    /// The windows are there, and those of actors are not mapped yet: both sides count Exposes from the first.
    pub fn start(server: &Server, scene: Scene) -> Result<Onlooker> {
        let (connection, own) = (server.connect()?, server.connect()?);
        let select = |window, events| {
            connection.change_window_attributes(window, &ChangeWindowAttributesAux::new().event_mask(events))
        };
        select(scene.moving, EventMask::STRUCTURE_NOTIFY)?;
        let exposures = if scene.sees_exposes { EventMask::EXPOSURE } else { EventMask::NO_EVENT };
        select(scene.exposed, exposures | EventMask::PROPERTY_CHANGE)?;
        select(scene.echo, EventMask::PROPERTY_CHANGE)?;
        if matches!(scene.answers, Answers::Counted) {
            watch_frames(&connection, scene.exposed)?;
        }
        let window = mailbox(&connection)?;
        connection.get_input_focus()?.reply()?;
        let seen = Arc::default();
        let written = Arc::clone(&seen);
        // A connection that the server closed ends the thread; the measurement then ends with an error of its own.
        let thread = std::thread::spawn(move || drop(look(&connection, scene, window, &written)));
        Ok(Onlooker { seen, thread: Some(thread), own, window })
    }

    /// From the start on.
    pub fn seen(&self) -> Vec<(u64, Sight)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        let message = ClientMessageEvent::new(32, self.window, STOP, [0; 5]);
        // A server that is gone has ended the thread already.
        let _ = self.own.send_event(false, self.window, EventMask::NO_EVENT, message);
        let _ = self.own.flush();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A message to a window with no mask goes to the client that made it.
fn mailbox(connection: &RustConnection) -> Result<Window> {
    let (window, root) = (connection.generate_id()?, connection.setup().roots[0].root);
    let class = x11rb::protocol::xproto::WindowClass::INPUT_ONLY;
    connection.create_window(0, window, root, 0, 0, 1, 1, 0, class, 0, &Default::default())?;
    Ok(window)
}

fn look(connection: &RustConnection, scene: Scene, mailbox: Window, seen: &Mutex<Vec<(u64, Sight)>>) -> Result<()> {
    let (mut exposes, mut painting) = (0, Sight::Answered { exposes: 0, began_ns: 0 });
    loop {
        let event = connection.wait_for_event()?;
        let at_ns = now_ns();
        let sight = match event {
            Event::ConfigureNotify(_) => Sight::Moved,
            Event::Expose(_) => {
                exposes += 1;
                Sight::Exposed
            }
            Event::PropertyNotify(change) if change.window == scene.echo => Sight::Echoed(change.atom),
            Event::ClientMessage(message) if message.window == mailbox => return Ok(()),
            Event::ClientMessage(message) => {
                let [exposes, high, low, ..] = message.data.as_data32();
                Sight::Answered { exposes, began_ns: (u64::from(high) << 32) | u64::from(low) }
            }
            Event::SyncAlarmNotify(alarm) if alarm.counter_value.lo % 2 == 1 => {
                painting = Sight::Answered { exposes, began_ns: at_ns };
                Sight::Painting
            }
            Event::SyncAlarmNotify(_) => painting,
            _ => continue,
        };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push((at_ns, sight));
    }
}

/// An alarm at each change of the counter, as a window manager would have it.
fn watch_frames(connection: &RustConnection, window: Window) -> Result<()> {
    connection.extension_information(sync::X11_EXTENSION_NAME)?.ok_or_else(|| anyhow!("the server has no SYNC"))?;
    connection.sync_initialize(3, 1)?.reply()?;
    let name = connection.intern_atom(false, b"_NET_WM_SYNC_REQUEST_COUNTER")?.reply()?.atom;
    let property = connection.get_property(false, window, name, AtomEnum::CARDINAL, 0, 2)?.reply()?;
    let counters: Vec<u32> = property.value32().context("the window has no counter of frames")?.collect();
    ensure!(counters.len() == 2, "the program does not count its frames");
    let value = connection.sync_query_counter(counters[1])?.reply()?.counter_value;
    let alarm = CreateAlarmAux::new()
        .counter(counters[1])
        .value_type(sync::VALUETYPE::ABSOLUTE)
        .value(Int64 { hi: value.hi, lo: value.lo + 1 })
        .test_type(sync::TESTTYPE::POSITIVE_COMPARISON)
        .delta(Int64 { hi: 0, lo: 1 })
        .events(1);
    connection.sync_create_alarm(connection.generate_id()?, &alarm)?.check()?;
    Ok(())
}
