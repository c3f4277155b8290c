// SPDX-License-Identifier: MIT
//! Changes on the screen, and when they appear: a client reads the root window, as a screenshot does.
//!
//! A drawing is not visible until the compositing manager has painted it. The observer reads one pixel or one line of
//! text once a millisecond, with a round trip each time. The first read also waits a millisecond: the server may serve
//! a read before a drawing that is sent with it, and this order can stay the same for a whole turn.

use crate::canvas::Canvas;
use crate::input::{Input, ProgramWindow};
use crate::server::{Server, ServerKind};
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::composite::ConnectionExt as _;
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeGCAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, Gcontext, ImageFormat, Rectangle, Window,
};
use x11rb::rust_connection::RustConnection;

/// A change that does not appear within this time counts as taking this time.
pub const LIMIT: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Damage events within this time belong to one frame.
const OF_ONE_FRAME: Duration = Duration::from_millis(2);
/// Time for a window manager to set the keyboard focus after a click.
const AFTER_CLICK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);
const NAME: &str = "typed-into";

/// A window with changing contents, and a client that reads them from the screen.
#[derive(Debug)]
pub struct Painter {
    connection: RustConnection,
    eye: RustConnection,
    /// The window that is read, and the pixel in it.
    looked_at: (Window, (i16, i16)),
    window: Window,
    context: Gcontext,
    colour: u32,
}

impl Painter {
    const SIZE: u16 = 60;

    /// Creates an override-redirect window, which no window manager moves or delays.
    pub fn start(server: &Server, at: (i16, i16)) -> Result<Painter> {
        let (connection, eye) = (server.connect()?, server.connect()?);
        let root = connection.setup().roots[0].root;
        let (place, ink) = ((at.0, at.1, Self::SIZE, Self::SIZE), CreateGCAux::new());
        let Canvas { window, context } = Canvas::show(&connection, place, CreateWindowAux::new(), &ink)?;
        let half = Self::SIZE as i16 / 2;
        // Under Wayland the screen belongs to the compositor and cannot be read.
        let looked_at = match server.kind() {
            ServerKind::Xwayland(_) => (window, (half, half)),
            _ => (root, (at.0 + half, at.1 + half)),
        };
        Ok(Painter { connection, eye, looked_at, window, context, colour: 0x10_20_30 })
    }

    /// Time from sending a rectangle until it is on the screen; `None` if this exceeds the limit.
    pub fn paint(&mut self) -> Result<Option<Duration>> {
        self.colour = (self.colour + 0x01_01_01) & 0xff_ff_ff;
        self.connection.change_gc(self.context, &ChangeGCAux::new().foreground(self.colour))?;
        let whole = Rectangle { x: 0, y: 0, width: Self::SIZE, height: Self::SIZE };
        self.connection.poly_fill_rectangle(self.window, self.context, &[whole])?;
        let painted = Instant::now();
        self.connection.flush()?;
        let (drawable, middle) = self.looked_at;
        changed(painted, || {
            let seen = look(&self.eye, drawable, middle, (1, 1))?;
            Ok(u32::from_ne_bytes(seen[..4].try_into()?) & 0xff_ff_ff == self.colour)
        })
    }
}

/// Time since `began` until the change is seen; `None` if this exceeds the limit.
fn changed(began: Instant, is_seen: impl Fn() -> Result<bool>) -> Result<Option<Duration>> {
    while began.elapsed() < LIMIT {
        std::thread::sleep(LOOK_EVERY);
        if is_seen()? {
            return Ok(Some(began.elapsed()));
        }
    }
    Ok(None)
}

fn look(eye: &RustConnection, root: Window, (x, y): (i16, i16), (width, height): (u16, u16)) -> Result<Vec<u8>> {
    Ok(eye.get_image(ImageFormat::Z_PIXMAP, root, x, y, width, height, !0)?.reply()?.data)
}

/// An xterm whose line discipline echoes typed letters, and a client that looks for the echo.
#[derive(Debug)]
pub struct Typist {
    eye: RustConnection,
    input: Input,
    root: Window,
    terminal: ProgramWindow,
    at: (i16, i16),
    key: u8,
}

impl Typist {
    /// Size of the area that is read; larger than the terminal without the window manager's frame.
    const SIZE: (u16, u16) = (540, 60);

    pub fn start(server: &Server, at: (i16, i16)) -> Result<Typist> {
        let eye = server.connect()?;
        let root = eye.setup().roots[0].root;
        let input = Input::of(server)?;
        let key = input.keycode_of('x'.into())?;
        let mut command = Command::new("xterm");
        command.args(["-name", NAME, "-fn", "6x13", "+sb", "+bc", "-b", "0"]);
        command.args(["-geometry", &format!("90x3+{}+{}", at.0, at.1), "-e", "cat"]);
        let terminal = ProgramWindow::start(server, command, (AtomEnum::WM_CLASS, NAME));
        let terminal = terminal.context("cannot show the terminal for typing")?;
        let mut typist = Typist { eye, input, root, terminal, at, key };
        let limit = Instant::now() + PATIENCE;
        // Require two echoes in a row: when the terminal gets the focus, its cursor changes, which is not an echo.
        let mut echoes = 0;
        while echoes < 2 {
            ensure!(Instant::now() < limit, "xterm does not echo typed letters");
            typist.take_focus()?;
            let is_prompt = typist.echo()?.is_some_and(|echo| echo < Duration::from_millis(300));
            echoes = if is_prompt { echoes + 1 } else { 0 };
        }
        Ok(typist)
    }

    /// Clicks into the terminal until the window manager has given it the keyboard focus.
    pub fn take_focus(&self) -> Result<()> {
        let limit = Instant::now() + PATIENCE;
        while self.eye.get_input_focus()?.reply()?.focus != self.terminal.window {
            ensure!(Instant::now() < limit, "the window manager does not give the keyboard focus to the terminal");
            self.input.click((self.at.0 + 40, self.at.1 + 40), 1)?;
            std::thread::sleep(AFTER_CLICK);
        }
        Ok(())
    }

    /// Time from a key press until its echo is on the screen; `None` if this exceeds the limit.
    pub fn echo(&mut self) -> Result<Option<Duration>> {
        let before = self.look()?;
        self.input.key_down(self.key)?;
        let pressed = Instant::now();
        let echo = changed(pressed, || Ok(self.look()? != before))?;
        self.input.key_up(self.key)?;
        Ok(echo)
    }

    fn look(&self) -> Result<Vec<u8>> {
        look(&self.eye, self.root, self.at, Self::SIZE)
    }
}

/// Counts the frames of a compositing manager: what it paints into the overlay window or the root window.
#[derive(Debug)]
pub struct FrameCounter(RustConnection);

impl FrameCounter {
    pub fn of_compositor(server: &Server) -> Result<FrameCounter> {
        let connection = server.connect()?;
        let root = connection.setup().roots[0].root;
        connection.composite_query_version(0, 4)?.reply()?;
        let overlay = connection.composite_get_overlay_window(root)?.reply()?.overlay_win;
        FrameCounter::of(connection, &[overlay, root])
    }

    pub fn of(connection: RustConnection, windows: &[Window]) -> Result<FrameCounter> {
        connection.damage_query_version(1, 1)?.reply()?;
        for &window in windows {
            let id = connection.generate_id()?;
            connection.damage_create(id, window, damage::ReportLevel::RAW_RECTANGLES)?.check()?;
        }
        Ok(FrameCounter(connection))
    }

    pub fn count(&self) -> Result<u32> {
        self.0.get_input_focus()?.reply()?;
        let (mut frames, mut last_ms) = (0, None::<u32>);
        while let Some(event) = self.0.poll_for_event()? {
            let Event::DamageNotify(damage) = event else { continue };
            let is_new =
                last_ms.is_none_or(|last| damage.timestamp.wrapping_sub(last) > OF_ONE_FRAME.as_millis() as u32);
            frames += u32::from(is_new);
            last_ms = Some(damage.timestamp);
        }
        Ok(frames)
    }
}
