// SPDX-License-Identifier: MIT
//! Wayland compositors that display nothing, and how each of them is made to run the script that starts its Xwayland.
//!
//! A compositor chooses the display and starts Xwayland itself. A script therefore takes the place of Xwayland, like
//! the script of `xqos xwayland install`. It records the display and the process id, and starts Xwayland with the
//! setup's options.
//!
//! | compositor | finds the script through | notes |
//! |---|---|---|
//! | weston | `path=` in its settings | starts Xwayland for its first X client, so its settings start one |
//! | sway | `WLR_XWAYLAND` | refuses root, so root starts it as nobody |
//! | mutter | a mount over its fixed path, visible to mutter alone | root only; needs a session bus |
//! | kwin | PATH | runs as a copy without file capabilities, since containers may refuse to start the original |
//!
//! Home, runtime folder and bus are in the server's folder, so none of the user's files are read or changed.

use super::{Server, Setup};
use crate::folder::Folder;
use crate::poll::poll;
use crate::process::Owned;
use crate::program;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use xqos_sys as sys;

/// Time limit for a start. Some compositors draw in software, and the processors may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(5);
/// Files in the folder: the copied program, and the process and display that the script writes.
const COPY: &str = "real/Xwayland";
const RECORD: &str = "record";
const LOG: &str = "compositor";
/// Configuration of a session bus that starts no services.
const BUS: &str = r#"<busconfig><type>session</type><listen>unix:path=FOLDER/bus</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;
/// For a compositor that refuses root. `--pdeathsig` is set again because the kernel clears it when the user changes.
const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups --pdeathsig=TERM";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compositor {
    Weston,
    Sway,
    Mutter,
    Kwin,
}

/// How to start a compositor. FOLDER, WIDTH and HEIGHT stand for the server's values, PATH for our own PATH.
struct Recipe {
    command: &'static str,
    settings: &'static str,
    environment: &'static [(&'static str, &'static str)],
    has_bus: bool,
}

impl Compositor {
    pub const ALL: [Compositor; 4] = [Compositor::Weston, Compositor::Sway, Compositor::Mutter, Compositor::Kwin];

    pub fn program(self) -> &'static str {
        match self {
            Compositor::Weston => "weston",
            Compositor::Sway => "sway",
            Compositor::Mutter => "mutter",
            Compositor::Kwin => "kwin_wayland",
        }
    }

    /// True if it is installed and this user may start it.
    pub fn is_here(self) -> bool {
        let is_found = |program: &str| program::find(program).is_ok();
        let is_allowed = self != Compositor::Mutter || is_found("dbus-daemon") && sys::effective_ids().0 == 0;
        is_allowed && is_found(self.program())
    }

    fn recipe(self) -> Recipe {
        match self {
            Compositor::Weston => Recipe {
                command: "weston --backend=headless-backend.so --socket=wayland --width=WIDTH --height=HEIGHT \
                          --config=FOLDER/settings",
                settings: "[core]\nxwayland=true\n[xwayland]\npath=FOLDER/Xwayland\n\
                           [autolaunch]\npath=/usr/bin/xdpyinfo\n",
                environment: &[],
                has_bus: false,
            },
            Compositor::Sway => Recipe {
                command: "sway --config FOLDER/settings",
                settings: "xwayland force\noutput HEADLESS-1 resolution WIDTHxHEIGHT\n",
                environment: &[
                    ("WLR_XWAYLAND", "FOLDER/Xwayland"),
                    ("WLR_BACKENDS", "headless"),
                    ("WLR_LIBINPUT_NO_DEVICES", "1"),
                    ("WLR_RENDERER", "pixman"),
                ],
                has_bus: false,
            },
            Compositor::Mutter => Recipe {
                command: "unshare --mount sh FOLDER/settings",
                settings: "mount --bind 'FOLDER/Xwayland' /usr/bin/Xwayland &&\n\
                           exec mutter --wayland --headless --virtual-monitor WIDTHxHEIGHT\n",
                environment: &[("GSETTINGS_BACKEND", "memory")],
                has_bus: true,
            },
            Compositor::Kwin => Recipe {
                command: "FOLDER/kwin_wayland --virtual --xwayland --no-lockscreen --no-global-shortcuts \
                          --width WIDTH --height HEIGHT",
                settings: "",
                environment: &[("PATH", "FOLDER:PATH"), ("KWIN_COMPOSE", "Q")],
                has_bus: false,
            },
        }
    }

    /// Starts the compositor, and waits until its Xwayland serves clients. `xwayland` is the command for the server.
    pub(super) fn start(self, setup: &Setup, mut xwayland: Command, folder: Folder) -> Result<Server> {
        let program = program::find(self.program())?;
        if self == Compositor::Kwin {
            fs::copy(program, folder.path(self.program()))?;
        }
        if let Some(module) = &setup.module {
            // The compositor's user may not be able to read the original module.
            let copy = folder.path("libxqos_module.so");
            fs::copy(&module.path, &copy)?;
            xwayland.env("LD_PRELOAD", copy);
        }
        put_before_xwayland(&xwayland, &folder)?;
        let recipe = self.recipe();
        let fill = |text: &str| filled(text, &folder, setup.screen);
        fs::write(folder.path("settings"), fill(recipe.settings))?;
        let bus = recipe.has_bus.then(|| start_bus(&folder)).transpose()?;
        let mut process = Owned::start(&mut self.command(&recipe, &folder, &fill)?, GRACE)?;
        let (pid, display) = wait_for(&mut process, &folder.path(LOG), || recorded(&folder))
            .with_context(|| format!("{} did not start Xwayland", self.program()))?;
        let xwayland = Some(Xwayland { pid, program: folder.path(COPY), _bus: bus });
        let server = Server { process, xwayland, host: None, folder, display, kind: setup.kind, pointer: None };
        server.connect().with_context(|| format!("Xwayland does not answer:\n{}", server.log()))?;
        Ok(server)
    }

    fn command(self, recipe: &Recipe, folder: &Folder, fill: &dyn Fn(&str) -> String) -> Result<Command> {
        let is_for_nobody = self == Compositor::Sway && sys::effective_ids().0 == 0;
        if is_for_nobody {
            let given = Command::new("chown").args(["-R", "65534:65534"]).arg(folder.path("")).status()?;
            ensure!(given.success(), "cannot make nobody the owner of the folder");
        }
        let prefix = if is_for_nobody { AS_NOBODY } else { "" };
        let mut words = prefix.split_whitespace().chain(recipe.command.split_whitespace());
        let mut command = Command::new(fill(words.next().context("a recipe has a command")?));
        command.args(words.map(fill));
        // Variables of the user's session.
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LD_PRELOAD"] {
            command.env_remove(name);
        }
        command.env("HOME", folder.path("")).env("XDG_RUNTIME_DIR", folder.path(""));
        command.env("DBUS_SESSION_BUS_ADDRESS", fill("unix:path=FOLDER/bus"));
        command.env("DBUS_SYSTEM_BUS_ADDRESS", fill("unix:path=FOLDER/none"));
        command.envs(recipe.environment.iter().map(|(name, value)| (name, fill(value))));
        let log = File::create(folder.path(LOG))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }
}

fn filled(text: &str, folder: &Folder, (width, height): (u32, u32)) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    // Replace these two last, because their values can contain any of the other words.
    let sizes = text.replace("WIDTH", &width.to_string()).replace("HEIGHT", &height.to_string());
    sizes.replace("PATH", &path).replace("FOLDER", folder.path("").to_str().unwrap_or_default())
}

/// Writes the script. It starts a copy of Xwayland, because under mutter the script replaces the program itself.
fn put_before_xwayland(xwayland: &Command, folder: &Folder) -> Result<()> {
    fs::create_dir(folder.path("real"))?;
    fs::copy(program::find("Xwayland")?, folder.path(COPY))?;
    let path = folder.path("Xwayland");
    fs::write(&path, script(xwayland, folder))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

fn script(xwayland: &Command, folder: &Folder) -> String {
    let mut script = "#!/bin/sh\n".to_owned();
    for (name, value) in xwayland.get_envs() {
        let name = name.to_string_lossy();
        script += &value.map_or(format!("unset {name}\n"), |value| format!("export {name}={}\n", quoted(value)));
    }
    // The shell becomes the server and keeps its process id.
    script += &format!("echo \"$$ $1\" >{}\n", quoted(folder.path(RECORD)));
    let arguments: Vec<String> = xwayland.get_args().map(quoted).collect();
    let (copy, errors) = (quoted(folder.path(COPY)), quoted(folder.path("errors")));
    script + &format!("exec {copy} \"$@\" {} 2>>{errors}\n", arguments.join(" "))
}

fn quoted(text: impl AsRef<OsStr>) -> String {
    format!("'{}'", text.as_ref().to_string_lossy().replace('\'', "'\\''"))
}

/// A session bus that starts no services and listens in the folder.
fn start_bus(folder: &Folder) -> Result<Owned> {
    let (settings, log) = (folder.path("bus.conf"), folder.path("bus.log"));
    fs::write(&settings, BUS.replace("FOLDER", &folder.path("").to_string_lossy()))?;
    let mut command = Command::new("dbus-daemon");
    command.arg("--nofork").arg("--config-file").arg(settings);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
    let mut bus = Owned::start(&mut command, GRACE)?;
    let reached = || Ok(UnixStream::connect(folder.path("bus")).ok());
    wait_for(&mut bus, &log, reached).context("dbus-daemon did not start")?;
    Ok(bus)
}

/// Process and display of the Xwayland, as written by the script.
fn recorded(folder: &Folder) -> Result<Option<(u32, String)>> {
    let text = fs::read_to_string(folder.path(RECORD)).unwrap_or_default();
    let Some((pid, display)) = text.strip_suffix('\n').and_then(|text| text.split_once(' ')) else { return Ok(None) };
    Ok(Some((pid.parse()?, display.to_owned())))
}

fn wait_for<T>(process: &mut Owned, log: &Path, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let said = || String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let found = poll(PATIENCE, Duration::from_millis(10), || {
        let found = look()?;
        ensure!(found.is_some() || process.is_running(), said());
        Ok(found)
    });
    found?.with_context(said)
}

/// The Xwayland of a compositor, whose child it usually is. It ends with the compositor, or else when this is dropped.
#[derive(Debug)]
pub(super) struct Xwayland {
    pub pid: u32,
    program: PathBuf,
    _bus: Option<Owned>,
}

impl Xwayland {
    /// The path of the copy identifies the process, which alone runs it. An ended process has no command line.
    pub fn is_running(&self) -> bool {
        sys::proc::command_line(self.pid as i32).starts_with(self.program.as_os_str().as_bytes())
    }
}

impl Drop for Xwayland {
    fn drop(&mut self) {
        let gone = poll(GRACE, Duration::from_millis(2), || Ok((!self.is_running()).then_some(())));
        if gone.is_ok_and(|gone| gone.is_none()) {
            sys::send(self.pid as i32, libc::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_sets_the_environment_and_records_the_process() {
        let folder = Folder::create().unwrap();
        let mut command = Command::new("Xwayland");
        command.args(["-maxclients", "it's"]).env_remove("XQOS_POLICY").env("LD_PRELOAD", "/a b.so");
        let script = script(&command, &folder);
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[..3], ["#!/bin/sh", "export LD_PRELOAD='/a b.so'", "unset XQOS_POLICY"]);
        assert!(lines[3].starts_with("echo \"$$ $1\" >'"), "{script}");
        assert!(lines[4].contains("/real/Xwayland' \"$@\" '-maxclients' 'it'\\''s' 2>>'"), "{script}");
    }

    #[test]
    fn an_incomplete_record_of_the_script_is_ignored() {
        let folder = Folder::create().unwrap();
        let after = |text: &str| {
            fs::write(folder.path(RECORD), text).unwrap();
            recorded(&folder).unwrap()
        };
        assert_eq!((after(""), after("12 :3"), after("12 :34\n")), (None, None, Some((12, ":34".to_owned()))));
    }
}
