//! What is on the screen, and when: seen by a client that looks at the root window, as a screen shot does.
//!
//! What a compositing manager has not painted yet is not there, whoever has drawn what into which window. The eye looks
//! once a millisecond, at one pixel or at a line of text, with a round trip each.

use crate::process::Owned;
use crate::server::Server;
use anyhow::{Context, Result, anyhow, ensure};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::composite::ConnectionExt as _;
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    ChangeGCAux, ConnectionExt as _, CreateGCAux, CreateWindowAux, Gcontext, ImageFormat, InputFocus, KEY_PRESS_EVENT,
    KEY_RELEASE_EVENT, MOTION_NOTIFY_EVENT, Rectangle, Window, WindowClass,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

/// Whatever is not seen by then counts as seen then: nobody waits longer.
pub const LIMIT: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Damage that comes within this time is of one frame.
const OF_ONE_FRAME: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_millis(1500);

/// A window that is painted, and a client that looks for it on the screen.
#[derive(Debug)]
pub struct Painter {
    connection: RustConnection,
    eye: RustConnection,
    root: Window,
    window: Window,
    context: Gcontext,
    at: (i16, i16),
    colour: u32,
}

impl Painter {
    const SIZE: u16 = 60;

    /// No window manager moves it or takes its time.
    pub fn start(server: &Server, at: (i16, i16)) -> Result<Painter> {
        let (connection, eye) = (server.connect()?, server.connect()?);
        let root = connection.setup().roots[0].root;
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let (class, values) = (WindowClass::INPUT_OUTPUT, CreateWindowAux::new().override_redirect(1));
        connection.create_window(0, window, root, at.0, at.1, Self::SIZE, Self::SIZE, 0, class, 0, &values)?;
        connection.map_window(window)?;
        connection.create_gc(context, window, &CreateGCAux::new())?;
        connection.get_input_focus()?.reply()?;
        Ok(Painter { connection, eye, root, window, context, at, colour: 0x10_20_30 })
    }

    /// How long it takes from the write of a rectangle until it is on the screen; `None`: beyond the limit.
    pub fn paint(&mut self) -> Result<Option<Duration>> {
        self.colour = (self.colour + 0x01_01_01) & 0xff_ff_ff;
        self.connection.change_gc(self.context, &ChangeGCAux::new().foreground(self.colour))?;
        let whole = Rectangle { x: 0, y: 0, width: Self::SIZE, height: Self::SIZE };
        self.connection.poly_fill_rectangle(self.window, self.context, &[whole])?;
        let painted = Instant::now();
        self.connection.flush()?;
        let middle = (self.at.0 + Self::SIZE as i16 / 2, self.at.1 + Self::SIZE as i16 / 2);
        while painted.elapsed() < LIMIT {
            let seen = look(&self.eye, self.root, middle, (1, 1))?;
            if u32::from_ne_bytes(seen[..4].try_into()?) & 0xff_ff_ff == self.colour {
                return Ok(Some(painted.elapsed()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(None)
    }
}

/// What is on the screen there.
fn look(eye: &RustConnection, root: Window, (x, y): (i16, i16), (width, height): (u16, u16)) -> Result<Vec<u8>> {
    Ok(eye.get_image(ImageFormat::Z_PIXMAP, root, x, y, width, height, !0)?.reply()?.data)
}

/// An xterm whose line discipline echoes what is typed, and a client that looks for the echo.
#[derive(Debug)]
pub struct Typist {
    eye: RustConnection,
    root: Window,
    terminal: Owned,
    at: (i16, i16),
    key: u8,
}

impl Typist {
    /// Of the terminal without the window manager's frame; what is looked at is larger.
    const SIZE: (u16, u16) = (540, 60);

    pub fn start(server: &Server, at: (i16, i16)) -> Result<Typist> {
        let eye = server.connect()?;
        let root = eye.setup().roots[0].root;
        let key = keycode_of(&eye, 'x')?;
        let mut command = Command::new("xterm");
        command.args(["-display", server.display(), "-fn", "6x13", "+sb", "+bc", "-b", "0"]);
        command.args(["-geometry", &format!("90x3+{}+{}", at.0, at.1), "-e", "cat"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let terminal = Owned::start(&mut command, GRACE).context("xterm is in Debian's package xterm")?;
        let mut typist = Typist { eye, root, terminal, at, key };
        let limit = Instant::now() + PATIENCE;
        while typist.echo()?.is_none_or(|echo| echo > Duration::from_millis(300)) {
            ensure!(typist.terminal.is_running() && Instant::now() < limit, "xterm does not echo what is typed");
        }
        Ok(typist)
    }

    /// How long it takes from a key until its echo is on the screen; `None`: beyond the limit.
    pub fn echo(&mut self) -> Result<Option<Duration>> {
        let (x, y) = (self.at.0 + 40, self.at.1 + 40);
        // Other programs may have taken pointer and focus.
        self.eye.xtest_fake_input(MOTION_NOTIFY_EVENT, 0, x11rb::CURRENT_TIME, self.root, x, y, 0)?;
        self.eye.set_input_focus(InputFocus::NONE, u32::from(InputFocus::POINTER_ROOT), x11rb::CURRENT_TIME)?;
        let before = self.look()?;
        self.eye.xtest_fake_input(KEY_PRESS_EVENT, self.key, x11rb::CURRENT_TIME, x11rb::NONE, 0, 0, 0)?;
        let pressed = Instant::now();
        self.eye.flush()?;
        let mut echo = None;
        while echo.is_none() && pressed.elapsed() < LIMIT {
            if self.look()? != before {
                echo = Some(pressed.elapsed());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.eye.xtest_fake_input(KEY_RELEASE_EVENT, self.key, x11rb::CURRENT_TIME, x11rb::NONE, 0, 0, 0)?;
        self.eye.flush()?;
        Ok(echo)
    }

    fn look(&self) -> Result<Vec<u8>> {
        look(&self.eye, self.root, self.at, Self::SIZE)
    }
}

fn keycode_of(connection: &RustConnection, letter: char) -> Result<u8> {
    let (least, most) = (connection.setup().min_keycode, connection.setup().max_keycode);
    let map = connection.get_keyboard_mapping(least, most - least + 1)?.reply()?;
    let at = map.keysyms.chunks(map.keysyms_per_keycode.into()).position(|keysyms| keysyms.contains(&(letter as u32)));
    at.map(|at| least + at as u8).ok_or_else(|| anyhow!("the keyboard has no {letter}"))
}

/// Counts the frames of a compositing manager: what it paints into the overlay window, or into the root window.
#[derive(Debug)]
pub struct FrameCounter {
    connection: RustConnection,
}

impl FrameCounter {
    pub fn start(server: &Server) -> Result<FrameCounter> {
        let connection = server.connect()?;
        let root = connection.setup().roots[0].root;
        connection.composite_query_version(0, 4)?.reply()?;
        connection.damage_query_version(1, 1)?.reply()?;
        let overlay = connection.composite_get_overlay_window(root)?.reply()?.overlay_win;
        for window in [overlay, root] {
            let id = connection.generate_id()?;
            connection.damage_create(id, window, damage::ReportLevel::RAW_RECTANGLES)?.check()?;
        }
        Ok(FrameCounter { connection })
    }

    /// Frames since the last call.
    pub fn count(&self) -> Result<u32> {
        self.connection.get_input_focus()?.reply()?;
        let (mut frames, mut last_ms) = (0, None::<u32>);
        while let Some(event) = self.connection.poll_for_event()? {
            let Event::DamageNotify(damage) = event else { continue };
            let is_new =
                last_ms.is_none_or(|last| damage.timestamp.wrapping_sub(last) > OF_ONE_FRAME.as_millis() as u32);
            frames += u32::from(is_new);
            last_ms = Some(damage.timestamp);
        }
        Ok(frames)
    }
}
