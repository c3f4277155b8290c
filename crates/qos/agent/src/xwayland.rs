// SPDX-License-Identifier: MIT
//! Makes the compositor start Xwayland with xqos in it.
//!
//! Compositors start Xwayland themselves, so a script replaces it. Each compositor finds the script in a different
//! way.

mod files;
mod status;

use crate::error::{Result, asking, bail, refused};
use clap::ValueEnum;
use files::Places;
pub use status::{RunningXwayland, Status};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use xqos_sys as sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compositor {
    /// sway, labwc, gamescope and others based on wlroots: sets WLR_XWAYLAND
    Wlroots,
    /// weston: sets `path` in the section [xwayland] of weston.ini
    Weston,
    /// kwin, Hyprland and others that search PATH for Xwayland
    Path,
    /// GNOME: diverts /usr/bin/Xwayland itself; root only, for all users
    Mutter,
}

/// Compositors whose program is in PATH.
fn installed_compositors() -> Vec<Compositor> {
    const PROGRAMS: [(Compositor, &[&str]); 3] = [
        (Compositor::Wlroots, &["sway", "labwc", "wayfire", "river", "cage", "gamescope"]),
        (Compositor::Weston, &["weston"]),
        (Compositor::Path, &["kwin_wayland", "Hyprland", "niri", "xwayland-satellite", "cosmic-comp"]),
    ];
    let is_here = |names: &[&str]| names.iter().any(|name| files::in_path(name).is_some());
    PROGRAMS.iter().filter(|(_, names)| is_here(names)).map(|&(compositor, _)| compositor).collect()
}

/// The steps of an installation.
struct Steps<'a> {
    /// Only reports what would be done.
    is_dry: bool,
    say: &'a mut dyn FnMut(&str),
    any: bool,
}

impl Steps<'_> {
    fn perform(&mut self, what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.any = true;
        if self.is_dry {
            (self.say)(&format!("would {what}"));
            return Ok(());
        }
        work()?;
        (self.say)(what);
        Ok(())
    }

    fn install_file(&mut self, path: &Path, text: &str, is_executable: bool) -> Result<()> {
        match fs::read_to_string(path) {
            Ok(now) if now == text => Ok(()),
            Ok(_) if !files::is_ours(path) => bail!("{} was not written by xqos: move it away first", path.display()),
            _ => self.perform(&format!("write {}", path.display()), || files::write(path, text, is_executable)),
        }
    }

    fn install_weston(&mut self, places: &Places) -> Result<()> {
        let text = match fs::read_to_string(&places.weston) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(asking(format!("cannot read {}", places.weston.display())))?,
        };
        if let Some(with_path) = files::weston_with_path(&text, &places.wrapper.display().to_string()) {
            let what = format!("set path in [xwayland] of {}", places.weston.display());
            self.perform(&what, || files::write(&places.weston, &with_path, false))?;
        }
        if !text.lines().any(|line| line.replace(' ', "").trim_end() == "xwayland=true") {
            (self.say)("weston starts Xwayland only with xwayland=true in [core] of weston.ini");
        }
        Ok(())
    }

    /// Installs the script, and configures these compositors of this user.
    fn install_for_user(&mut self, module: &Path, is_wanted: impl Fn(Compositor) -> bool) -> Result<()> {
        let places = Places::of_user()?;
        let server =
            files::server().ok_or_else(|| refused!("Xwayland is not installed: install the package xwayland"))?;
        self.install_file(&places.wrapper, &files::wrapper(module, &server), true)?;
        let (wlroots, path) = (is_wanted(Compositor::Wlroots), is_wanted(Compositor::Path));
        if wlroots || path {
            // An earlier installation may have been for another compositor.
            let text = files::environment(
                &places.wrapper,
                wlroots || files::sets(&places.environment, "WLR_XWAYLAND"),
                path || files::sets(&places.environment, "PATH"),
            );
            self.install_file(&places.environment, &text, false)?;
            let lines: Vec<&str> = text.lines().skip(1).collect();
            let lines = lines.join("; export ");
            (self.say)(&format!("without a systemd session, add this line to your profile: export {lines}"));
        }
        if is_wanted(Compositor::Weston) { self.install_weston(&places) } else { Ok(()) }
    }
}

/// Installs the script for these compositors, or for those that are in PATH. `say` gets a line about each step.
pub fn install(module: &Path, wanted: &[Compositor], is_dry: bool, say: &mut dyn FnMut(&str)) -> Result<()> {
    let wanted = if wanted.is_empty() { installed_compositors() } else { wanted.to_vec() };
    if wanted.is_empty() {
        bail!("no known compositor is in PATH: name one, as in `xqos xwayland install --for wlroots`");
    }
    let is_wanted = |compositor| wanted.contains(&compositor);
    if is_wanted(Compositor::Mutter) && sys::effective_ids().0 != 0 {
        bail!(
            "mutter starts /usr/bin/Xwayland, which only root can divert: run `sudo xqos xwayland install --for mutter`"
        );
    }
    let mut steps = Steps { is_dry, say, any: false };
    if wanted.iter().any(|&compositor| compositor != Compositor::Mutter) {
        steps.install_for_user(module, is_wanted)?;
    }
    if is_wanted(Compositor::Mutter) && !files::is_diverted() {
        let what = format!("divert {} and put a script in its place", files::PROGRAM);
        steps.perform(&what, || files::divert(module))?;
    }
    let last =
        if steps.any { "takes effect at the next login; undo: xqos xwayland remove" } else { "everything is in place" };
    (steps.say)(last);
    Ok(())
}

/// Undoes everything that [`install`] did. `say` gets a line about each step.
pub fn remove(say: &mut dyn FnMut(&str)) -> Result<()> {
    let places = Places::of_user()?;
    let mut removed = false;
    let mut done = |text: String| {
        removed = true;
        say(&text);
    };
    if let Some(before) = fs::read_to_string(&places.weston).ok().and_then(|text| files::weston_without_path(&text)) {
        if before.is_empty() {
            fs::remove_file(&places.weston).map_err(asking(format!("cannot remove {}", places.weston.display())))?;
        } else {
            files::write(&places.weston, &before, false)?;
        }
        done(format!("removed the path of xqos from {}", places.weston.display()));
    }
    for path in [&places.environment, &places.wrapper].into_iter().filter(|path| files::is_ours(path)) {
        fs::remove_file(path).map_err(asking(format!("cannot remove {}", path.display())))?;
        // Fails if the folder contains other files, which must be kept.
        let _ = path.parent().map(fs::remove_dir);
        done(format!("removed {}", path.display()));
    }
    if files::is_diverted() {
        if sys::effective_ids().0 != 0 {
            bail!("{} is diverted, which only root can undo: run `sudo xqos xwayland remove`", files::PROGRAM);
        }
        files::undo_diversion()?;
        done(format!("restored the package's {}", files::PROGRAM));
    }
    say(if removed {
        "takes effect at the next login"
    } else {
        "nothing to remove: xqos is not installed for Xwayland"
    });
    Ok(())
}
