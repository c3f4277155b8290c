//! What is on a desktop: a terminal that echoes keys, a video beside it, and the smallest program that draws.
//!
//! Real programs, xterm and mpv, started as anybody would start them, without a window manager; each is in its place once
//! a viewer of the screen has seen it there. The keyboard's focus follows the pointer, so the pointer is put upon the
//! terminal.

use crate::folder::Folder;
use crate::process::Owned;
use crate::rfb::{Area, Viewer};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::cell::Cell;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ChangeGCAux, ConnectionExt, CreateGCAux, CreateWindowAux, Gcontext, Rectangle, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// For a program to show itself on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// Without a change for that long, what was drawn is drawn: several updates of a viewer.
const CALM: Duration = Duration::from_millis(300);
/// For the answer to a key; more than any that was seen.
const KEY_LIMIT: Duration = Duration::from_secs(3);
/// Ends at SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);

/// An xterm whose line discipline echoes what is typed.
#[derive(Debug)]
pub struct Terminal {
    process: Owned,
    area: Area,
}

impl Terminal {
    /// Starts it and returns when a key was answered and the window is at rest.
    pub fn start(display: &str, viewer: &Viewer, x: u16, y: u16) -> Result<Terminal> {
        // 6 x 13 pixels each. A line takes a hundred keys, so that none of them scrolls.
        const COLUMNS: u16 = 100;
        const ROWS: u16 = 10;
        let mut command = Command::new("xterm");
        command.args(["-display", display, "-geometry", &format!("{COLUMNS}x{ROWS}+{x}+{y}")]);
        // No scroll bar, no border, no blinking cursor.
        command.args(["-fn", "6x13", "+sb", "-b", "0", "-bw", "0", "+bc", "-e", "cat"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let process = Owned::start(&mut command, GRACE).context("xterm is in Debian's package xterm")?;
        let area = Area::new(x, y, COLUMNS * 6, ROWS * 13);
        let mut terminal = Terminal { process, area };
        let shown = viewer.changed(area, began, PATIENCE)?;
        ensure!(shown.is_some() && terminal.process.is_running(), "xterm does not show its window");
        terminal.take_focus(viewer)?;
        while terminal.echo(viewer)?.is_none() {
            ensure!(began.elapsed() < PATIENCE, "xterm does not echo what is typed");
        }
        terminal.wait_for_calm(viewer)?;
        Ok(terminal)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Puts the pointer upon it, and waits until it has shown that it noticed. Other programs may have moved the
    /// pointer: x11perf puts it out of its way when it starts.
    pub fn take_focus(&self, viewer: &Viewer) -> Result<()> {
        viewer.point(self.area.x + self.area.width / 2, self.area.y + self.area.height / 2)?;
        self.wait_for_calm(viewer)
    }

    /// Types a key and waits until it is seen; `None` when it never is.
    pub fn echo(&self, viewer: &Viewer) -> Result<Option<Duration>> {
        let key = u32::from(b'x');
        let pressed = viewer.key(key, true)?;
        viewer.key(key, false)?;
        let seen = viewer.changed(self.area, pressed, KEY_LIMIT)?;
        Ok(seen.map(|seen| seen.duration_since(pressed)))
    }

    /// Nothing but a key may change it, or an echo could not be told from the rest.
    fn wait_for_calm(&self, viewer: &Viewer) -> Result<()> {
        let limit = Instant::now() + PATIENCE;
        while viewer.changed(self.area, Instant::now(), CALM)?.is_some() {
            if Instant::now() > limit {
                bail!("xterm's window changes all the time");
            }
        }
        Ok(())
    }
}

/// A film of our own making.
#[derive(Debug)]
pub struct Film {
    folder: Folder,
    width: u16,
    height: u16,
}

impl Film {
    /// Ten seconds of a moving test picture, 30 pictures a second.
    pub fn make(width: u16, height: u16) -> Result<Film> {
        let film = Film { folder: Folder::create()?, width, height };
        let mut command = Command::new("ffmpeg");
        let source = format!("testsrc2=size={width}x{height}:rate=30:duration=10");
        command.args(["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", &source, "-c:v", "mpeg4", "-q:v", "4"]);
        command.arg(film.folder.path(Film::NAME)).stdin(Stdio::null());
        let made = command.output().context("cannot start ffmpeg; it is in Debian's package ffmpeg")?;
        ensure!(made.status.success(), "ffmpeg made no film: {}", String::from_utf8_lossy(&made.stderr));
        Ok(film)
    }

    /// What plays it again and again, in the upper left corner.
    pub fn player(&self, display: &str) -> Command {
        let mut command = Command::new("mpv");
        command.args(["--no-config", "--no-terminal", "--no-audio", "--no-osc", "--osd-level=0", "--no-border"]);
        command.args(["--vo=x11", "--hwdec=no", "--loop-file=inf", "--keepaspect=no"]);
        command.arg(format!("--geometry={}x{}+0+0", self.width, self.height));
        command.arg(self.folder.path(Film::NAME)).env("DISPLAY", display);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Plays it in mpv until the player is dropped.
    pub fn play(&self, display: &str, viewer: &Viewer) -> Result<Owned> {
        let mut player = Owned::start(&mut self.player(display), GRACE).context("mpv is in Debian's package mpv")?;
        let area = Area::new(0, 0, self.width, self.height);
        // One change is the window, many are the film.
        let mut seen = Instant::now();
        for _ in 0..10 {
            match viewer.changed(area, seen, PATIENCE)? {
                Some(at) if player.is_running() => seen = at,
                _ => bail!("mpv does not play"),
            }
        }
        Ok(player)
    }

    const NAME: &'static str = "film.mkv";
}

/// A client that fills a rectangle, each time with another colour.
#[derive(Debug)]
pub struct Painter {
    connection: RustConnection,
    area: Area,
    window: Window,
    context: Gcontext,
    colour: Cell<u32>,
}

impl Painter {
    /// Puts a window there that covers what is below.
    pub fn start(connection: RustConnection, area: Area) -> Result<Painter> {
        let (window, context) = (connection.generate_id()?, connection.generate_id()?);
        let root = connection.setup().roots[0].root;
        let values = CreateWindowAux::new().override_redirect(1);
        let Area { x, y, width, height } = area;
        let class = WindowClass::INPUT_OUTPUT;
        connection.create_window(0, window, root, x as i16, y as i16, width, height, 0, class, 0, &values)?;
        connection.map_window(window)?;
        connection.create_gc(context, window, &CreateGCAux::new())?;
        connection.get_input_focus()?.reply()?;
        Ok(Painter { connection, area, window, context, colour: 0x10_20_30.into() })
    }

    /// How long it takes from the flush until the viewer has it.
    pub fn draw(&self, viewer: &Viewer) -> Result<Duration> {
        self.colour.set((self.colour.get() + 0x01_01_01) & 0xff_ff_ff);
        self.connection.change_gc(self.context, &ChangeGCAux::new().foreground(self.colour.get()))?;
        let Area { width, height, .. } = self.area;
        self.connection.poly_fill_rectangle(self.window, self.context, &[Rectangle { x: 0, y: 0, width, height }])?;
        let flushed = Instant::now();
        self.connection.flush()?;
        let arrived = viewer.changed(self.area, flushed, PATIENCE)?;
        Ok(arrived.ok_or_else(|| anyhow!("what a client draws does not arrive in the viewer"))?.duration_since(flushed))
    }
}
