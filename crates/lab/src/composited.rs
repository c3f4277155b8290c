// SPDX-License-Identifier: MIT
//! A composited desktop: a window manager and a compositing manager, as users run them.
//!
//! A manager is ready when it owns its selection on screen 0. All managers end when their owner is dropped.

use crate::folder::Folder;
use crate::names::named;
use crate::poll::poll;
use crate::process::Owned;
use crate::server::Server;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;

const PATIENCE: Duration = Duration::from_secs(15);
const GRACE: Duration = Duration::from_millis(1500);

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
