//! Programs of a desktop at work: a player, a terminal that prints, a toolkit's window that is scrolled by
//! injected input; or a browser with a page that animates.

use crate::desktop::Film;
use crate::folder::Folder;
use crate::process::Owned;
use crate::server::Server;
use anyhow::{Context, Result};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, MOTION_NOTIFY_EVENT};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

const GRACE: Duration = Duration::from_millis(1500);
/// To show its first window.
const SETTLING: Duration = Duration::from_secs(3);
const WHEEL: [u8; 2] = [5, 4];

/// A hundred boxes that move, by the browser's own animation.
const PAGE: &str = "<!doctype html><style>body{margin:0;background:#234}div{position:absolute;width:60px;height:60px;\
animation:a 1s linear infinite alternate}@keyframes a{to{transform:translate(400px,300px) rotate(1turn)}}</style>\
<script>for(let i=0;i<100;i++){let d=document.createElement('div');d.style.left=i*4+'px';d.style.top=i*3+'px';\
d.style.background='hsl('+i*3+' 80% 60%)';d.style.animationDelay=-i*31+'ms';document.body.append(d)}</script>";

/// They run until this is dropped.
#[derive(Debug)]
pub(super) struct Desk {
    programs: Vec<Owned>,
    _film: Option<Film>,
    _folder: Folder,
    stop: Arc<AtomicBool>,
    hands: Option<JoinHandle<()>>,
}

impl Desk {
    pub fn start(server: &Server) -> Result<Desk> {
        let (folder, film) = (Folder::create()?, Film::make(640, 360)?);
        let mut player = film.player(server.display());
        let mut terminal = Command::new("xterm");
        terminal.args(["-geometry", "100x24+0+500", "-e", "sh", "-c", "while :; do seq 1 200; sleep 0.05; done"]);
        let mut toolkit = Command::new("gtk3-demo");
        toolkit.args(["--run=hypertext"]).env("HOME", folder.path(""));
        let mut programs = Vec::new();
        for (command, package) in [(&mut player, "mpv"), (&mut terminal, "xterm"), (&mut toolkit, "gtk-3-examples")] {
            programs.push(start(server, command, package)?);
        }
        std::thread::sleep(SETTLING);
        let (stop, connection) = (Arc::default(), server.connect()?);
        let stops = Arc::clone(&stop);
        // A server that is gone ends the thread.
        let hands = std::thread::spawn(move || drop(scroll(&connection, &stops)));
        Ok(Desk { programs, _film: Some(film), _folder: folder, stop, hands: Some(hands) })
    }

    pub fn browser(server: &Server) -> Result<Desk> {
        let folder = Folder::create()?;
        let page = folder.path("page.html");
        fs::write(&page, PAGE)?;
        let mut browser = Command::new("chromium");
        browser.args(["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]);
        browser.args(["--disable-background-networking", "--disable-component-update", "--window-size=700,700"]);
        browser.arg(format!("--user-data-dir={}", folder.path("profile").display()));
        browser.arg(format!("--app=file://{}", page.display())).env("HOME", folder.path(""));
        let programs = vec![start(server, &mut browser, "chromium")?];
        std::thread::sleep(SETTLING);
        Ok(Desk { programs, _film: None, _folder: folder, stop: Arc::default(), hands: None })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(hands) = self.hands.take() {
            let _ = hands.join();
        }
        // Before their folder goes.
        self.programs.clear();
    }
}

fn start(server: &Server, command: &mut Command, package: &str) -> Result<Owned> {
    command.env("DISPLAY", server.display()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Owned::start(command, GRACE).with_context(|| format!("install Debian's package {package}: scripts/setup --for lab"))
}

/// Turns the wheel over the middle of the screen, down and up again.
fn scroll(connection: &RustConnection, stop: &AtomicBool) -> Result<()> {
    let root = connection.setup().roots[0].root;
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let button = WHEEL[turn / 20 % 2];
        for (kind, detail) in [(MOTION_NOTIFY_EVENT, 0), (BUTTON_PRESS_EVENT, button), (BUTTON_RELEASE_EVENT, button)] {
            connection.xtest_fake_input(kind, detail, x11rb::CURRENT_TIME, root, 640, 400, 0)?;
        }
        connection.get_input_focus()?.reply()?;
        std::thread::sleep(Duration::from_millis(40));
    }
    Ok(())
}
