// SPDX-License-Identifier: MIT
//! A busy desktop: window and compositing managers, as users run them; a player, a browser, and a toolkit window that
//! injected input scrolls and resizes.
//!
//! A manager is ready when it owns its selection on screen 0. All programs end when their owner is dropped.

use crate::canvas::ScreenArea;
use crate::folder::Folder;
use crate::input::{Input, ProgramWindow};
use crate::mpv::film;
use crate::names::named;
use crate::poll::poll;
use crate::process::Owned;
use crate::server::Server;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window};
use x11rb::rust_connection::RustConnection;

const PATIENCE: Duration = Duration::from_secs(15);
const GRACE: Duration = Duration::from_millis(1500);
/// Time for the programs to show their first windows.
const SETTLING: Duration = Duration::from_secs(3);
/// Place of the toolkit's window. At no size does it cover the terminal for typing or the painted rectangle.
const PLACE: ScreenArea = (680, 30, 270, 500);
const UP: u8 = 4;
const DOWN: u8 = 5;
/// openbox and xfwm4 resize a window with this button while this key is held down.
const RESIZES: u8 = 3;
const ALT_L: u32 = 0xffe9;
/// Number of steps in a round, which first scrolls and then resizes.
const ROUND: u32 = 12;
const SCROLLED: u32 = 8;
/// Pixels that the corner moves per motion, and motions per step.
const STRIDE: i16 = 8;
const MOTIONS: i16 = 5;

/// A hundred boxes, moved by a CSS animation.
const MOVING: &str = "<!doctype html><style>body{margin:0;background:#234}div{position:absolute;width:60px;height:60px;\
animation:a 1s linear infinite alternate}@keyframes a{to{transform:translate(400px,300px) rotate(1turn)}}</style>\
<script>for(let i=0;i<100;i++){let d=document.createElement('div');d.style.left=i*4+'px';d.style.top=i*3+'px';\
d.style.background='hsl('+i*3+' 80% 60%)';d.style.animationDelay=-i*31+'ms';document.body.append(d)}</script>";

/// A long text that scrolls up and down 30 times a second.
const SCROLLING: &str = "<!doctype html><body><script>let n=0;for(let i=0;i<400;i++){let p=document.createElement('p');\
p.textContent='line '+i+' of a text that is long enough to be read '.repeat(2);document.body.append(p)}\
setInterval(()=>{n=(n+12)%6000;window.scrollTo(0,n<3000?n:6000-n)},33)</script>";

named! {
    pub enum DeskProgram {
        Player = "player",
        Terminal = "terminal",
        Page = "page",
        Animation = "animation",
        List = "list",
    }
}

/// Running programs. They end when this is dropped.
#[derive(Debug)]
pub struct Desk {
    // Drop order: programs end before their folder is removed.
    programs: Vec<(&'static str, Owned)>,
    player: Option<ProgramWindow>,
    toolkit: Option<Toolkit>,
    _folder: Folder,
}

impl Desk {
    /// Starts the programs in the given order, because a window manager places each window according to earlier ones.
    pub fn start(server: &Server, wanted: &[DeskProgram]) -> Result<Desk> {
        let folder = Folder::create()?;
        let (mut programs, mut player, mut toolkit) = (Vec::new(), None, None);
        for program in wanted {
            match program {
                DeskProgram::Player => {
                    let mut command = Command::new("mpv");
                    command.args(["--no-border", "--geometry=+0+20", "--title=player"]).args(film((640, 360), 30));
                    player = Some(ProgramWindow::start(server, command, (AtomEnum::WM_NAME, "player"))?);
                }
                DeskProgram::Terminal => {
                    let prints = "while :; do seq 1 200; sleep 0.05; done";
                    let mut terminal = Command::new("xterm");
                    terminal.args(["-geometry", "100x24+0+500", "-e", "sh", "-c", prints]);
                    programs.push(("xterm", start(server, &mut terminal)?));
                }
                DeskProgram::Page => programs.push(("chromium", browser(server, &folder, SCROLLING, "500,350")?)),
                DeskProgram::Animation => programs.push(("chromium", browser(server, &folder, MOVING, "700,700")?)),
                DeskProgram::List => {
                    std::thread::sleep(SETTLING);
                    toolkit = Some(Toolkit::start(server, &folder)?);
                }
            }
        }
        if !wanted.is_empty() {
            std::thread::sleep(SETTLING);
        }
        Ok(Desk { programs, player, toolkit, _folder: folder })
    }

    pub fn player(&self) -> Option<Window> {
        self.player.as_ref().map(|player| player.window)
    }

    /// Performs the next step of the user's input, if the desktop has a toolkit window.
    pub fn use_it(&mut self) -> Result<()> {
        self.toolkit.as_mut().map_or(Ok(()), Toolkit::use_it)
    }

    /// True while a key and a button are held down.
    pub fn is_resizing(&self) -> bool {
        self.toolkit.as_ref().is_some_and(|toolkit| toolkit.step % ROUND > SCROLLED)
    }

    /// Fails if a program has ended, or if the toolkit's window was not resized.
    pub fn check(&mut self) -> Result<()> {
        self.programs.iter_mut().try_for_each(|(name, program)| program.see_running(name))?;
        self.player.as_mut().map_or(Ok(()), |player| player.process.see_running("mpv"))?;
        self.toolkit.as_ref().map_or(Ok(()), Toolkit::check)
    }
}

/// Starts a browser that shows only this page in a window of this size.
fn browser(server: &Server, folder: &Folder, page: &str, size: &str) -> Result<Owned> {
    let path = folder.path("page.html");
    fs::write(&path, page)?;
    let mut browser = Command::new("chromium");
    browser.args(["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]);
    browser.args(["--disable-background-networking", "--disable-component-update", "--ozone-platform=x11"]);
    browser.args([format!("--window-size={size}"), "--window-position=700,450".to_owned()]);
    browser.arg(format!("--user-data-dir={}", folder.path("profile").display()));
    browser.arg(format!("--app=file://{}", path.display())).env("HOME", folder.path(""));
    start(server, &mut browser)
}

fn start(server: &Server, command: &mut Command) -> Result<Owned> {
    Owned::start_silent(command.env("DISPLAY", server.display()), GRACE)
}

#[derive(Debug)]
struct Toolkit {
    shown: ProgramWindow,
    connection: RustConnection,
    input: Input,
    alt: u8,
    step: u32,
    corner: (i16, i16),
    /// Size of the window at the start of each resize.
    sizes: Vec<(u16, u16)>,
}

impl Toolkit {
    fn start(server: &Server, folder: &Folder) -> Result<Toolkit> {
        let mut command = Command::new("gtk3-demo");
        command.args(["--run=listbox"]).env("HOME", folder.path(""));
        let shown = ProgramWindow::start(server, command, (AtomEnum::WM_NAME, "List Box"))?;
        shown.put(server, PLACE)?;
        let (connection, input) = (server.connect()?, Input::of(server)?);
        let alt = input.keycode_of(ALT_L)?;
        Ok(Toolkit { shown, connection, input, alt, step: 0, corner: (0, 0), sizes: Vec::new() })
    }

    fn use_it(&mut self) -> Result<()> {
        let (round, step) = (self.step / ROUND, self.step % ROUND);
        self.step += 1;
        if step < SCROLLED {
            let (place, size) = self.place()?;
            let middle = (place.0 + size.0 as i16 / 2, place.1 + size.1 as i16 / 2);
            for _ in 0..3 {
                self.input.click(middle, if step < SCROLLED / 2 { DOWN } else { UP })?;
            }
            return Ok(());
        }
        if step == SCROLLED {
            let (place, size) = self.place()?;
            self.sizes.push(size);
            self.corner = (place.0 + size.0 as i16 - 30, place.1 + size.1 as i16 - 30);
            self.input.key_down(self.alt)?;
            self.input.press(self.corner, RESIZES)?;
        }
        // Enlarge the window in one round and shrink it in the next.
        let stride = if round % 2 == 0 { STRIDE } else { -STRIDE };
        for _ in 0..MOTIONS {
            self.corner = (self.corner.0 + stride, self.corner.1 + stride / 2);
            self.input.point(self.corner)?;
        }
        if step + 1 == ROUND {
            self.input.release(RESIZES)?;
            self.input.key_up(self.alt)?;
        }
        Ok(())
    }

    fn place(&self) -> Result<((i16, i16), (u16, u16))> {
        let (window, root) = (self.shown.window, self.connection.setup().roots[0].root);
        let geometry = self.connection.get_geometry(window)?.reply()?;
        let corner = self.connection.translate_coordinates(window, root, 0, 0)?.reply()?;
        Ok(((corner.dst_x, corner.dst_y), (geometry.width, geometry.height)))
    }

    fn check(&self) -> Result<()> {
        let resized = self.sizes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        ensure!(self.sizes.len() < 2 || resized > 0, "the toolkit's window was not resized");
        Ok(())
    }
}

named! {
    /// Window managers and compositors of the desktop.
    pub enum Managers {
        /// openbox alone, without a compositor.
        Openbox = "openbox",
        /// openbox, with picom drawing through RENDER.
        Picom = "picom",
        /// openbox, with picom drawing through OpenGL, in software if there is no graphics card.
        PicomGl = "picom_gl",
        /// xfwm4, which is both a window manager and a compositor.
        Xfwm4 = "xfwm4",
    }
}

impl Managers {
    /// Program, arguments, and the selection that shows that it is ready.
    fn programs(self) -> Vec<(&'static str, &'static [&'static str], &'static str)> {
        const OPENBOX: (&str, &[&str], &str) = ("openbox", &["--sm-disable"], "WM_S0");
        const CM: &str = "_NET_WM_CM_S0";
        match self {
            Managers::Openbox => vec![OPENBOX],
            Managers::Picom => vec![OPENBOX, ("picom", &["--config", "/dev/null", "--backend", "xrender"], CM)],
            Managers::PicomGl => vec![OPENBOX, ("picom", &["--config", "/dev/null", "--backend", "glx"], CM)],
            Managers::Xfwm4 => vec![("xfwm4", &["--compositor=on", "--vblank=off"], CM)],
        }
    }
}

#[derive(Debug)]
pub struct Composited {
    // Drop order: the compositor ends before the window manager, and both before their folder is removed.
    programs: Vec<(&'static str, Owned)>,
    _folder: Folder,
}

impl Composited {
    pub fn start(server: &Server, managers: Managers) -> Result<Composited> {
        let (connection, folder) = (server.connect()?, Folder::create()?);
        let mut programs = Vec::new();
        for (program, arguments, selection) in managers.programs() {
            let mut command = Command::new(program);
            command.args(arguments).env("DISPLAY", server.display());
            // The user's settings are neither read nor written.
            for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
                command.env(variable, folder.path(""));
            }
            let process = Owned::start_silent(&mut command, GRACE)
                .with_context(|| format!("{program} cannot be started; scripts/setup --for lab installs it"))?;
            programs.insert(0, (program, process));
            wait_for_owner(&connection, selection, &mut programs[0].1)
                .with_context(|| format!("{program} did not start"))?;
        }
        Ok(Composited { programs, _folder: folder })
    }

    pub fn compositor_pid(&self) -> Option<u32> {
        let (_, first) = self.programs.first().filter(|(name, _)| *name != "openbox")?;
        Some(first.pid())
    }

    /// Fails if a manager has ended. Call this at the end of a measurement.
    pub fn see_running(&mut self) -> Result<()> {
        self.programs.iter_mut().try_for_each(|(name, process)| process.see_running(name))
    }
}

fn wait_for_owner(connection: &RustConnection, selection: &str, process: &mut Owned) -> Result<()> {
    let atom = connection.intern_atom(false, selection.as_bytes())?.reply()?.atom;
    let owner = poll(PATIENCE, Duration::from_millis(20), || {
        ensure!(process.is_running(), "it ended");
        Ok(Some(connection.get_selection_owner(atom)?.reply()?.owner).filter(|owner| *owner != x11rb::NONE))
    })?;
    owner.map(drop).with_context(|| format!("no client owns {selection}"))
}
