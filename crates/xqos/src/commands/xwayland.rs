// SPDX-License-Identifier: MIT
//! `xqos xwayland`: makes the compositor start Xwayland with xqos in it.
//!
//! Compositors start Xwayland themselves, so a script replaces it. Each compositor finds the script in a different
//! way.

mod files;
mod status;
mod weston;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use files::Places;
use std::fs;
use std::path::Path;
use xqos_cli::{module_file, output};
use xqos_sys as sys;

/// Makes the Wayland compositor start Xwayland with xqos in it
///
/// X11 programs under Wayland are served by Xwayland, which the compositor starts. `install` puts a script in its
/// place, which loads xqos and then starts Xwayland. If the file of xqos is missing, the script starts Xwayland without
/// xqos.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Writes the script and configures compositors to use it
    Install {
        /// Compositors to configure [default: those that are installed, except mutter]
        #[arg(long = "for", value_name = "COMPOSITOR", value_delimiter = ',')]
        wanted: Vec<Compositor>,
        /// Print what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Shows what is installed, and which Xwayland runs with xqos
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Undoes everything that install did
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compositor {
    /// sway, labwc, gamescope and others based on wlroots: sets WLR_XWAYLAND
    Wlroots,
    /// weston: sets `path` in the section [xwayland] of weston.ini
    Weston,
    /// kwin, Hyprland and others that search PATH for Xwayland
    Path,
    /// GNOME: diverts /usr/bin/Xwayland itself; root only, for all users
    Mutter,
}

const EXAMPLES: &str = "\
Examples:
  xqos xwayland install                for the compositors installed here
  xqos xwayland install --for wlroots,weston --dry-run
  sudo xqos xwayland install --for mutter
  xqos xwayland status
  xqos xwayland remove

Changes take effect at the next login. Variables are set in
~/.config/environment.d, which systemd sessions read; other sessions need the
line that install prints in their profile. For mutter, dpkg-divert moves
/usr/bin/Xwayland to Xwayland.distrib, where package updates then go.";

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        match &self.action {
            Action::Install { wanted, dry_run } => install(wanted, *dry_run),
            Action::Status { json } => status::show(*json),
            Action::Remove => remove(),
        }
    }
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

fn install(wanted: &[Compositor], dry_run: bool) -> Result<()> {
    let module = module_file::find(None)?;
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
    let mut changed = false;
    let mut step = |said: String, work: &dyn Fn() -> Result<()>| -> Result<()> {
        changed = true;
        if !dry_run {
            work()?;
        }
        output::line(&format!("{}{said}", if dry_run { "would " } else { "" }))
    };
    if wanted.iter().any(|&compositor| compositor != Compositor::Mutter) {
        let places = Places::of_user()?;
        let server = files::server().context("Xwayland is not installed: install the package xwayland")?;
        install_file(&places.wrapper, &files::wrapper(&module, &server), true, &mut step)?;
        let (wlroots, path) = (is_wanted(Compositor::Wlroots), is_wanted(Compositor::Path));
        if wlroots || path {
            // An earlier installation may have been for another compositor.
            let text = files::environment(
                &places.wrapper,
                wlroots || files::sets(&places.environment, "WLR_XWAYLAND"),
                path || files::sets(&places.environment, "PATH"),
            );
            install_file(&places.environment, &text, false, &mut step)?;
            let lines: Vec<&str> = text.lines().skip(1).collect();
            output::line(&format!(
                "without a systemd session, add this line to your profile: export {}",
                lines.join("; export ")
            ))?;
        }
        if is_wanted(Compositor::Weston) {
            install_weston(&places, &mut step)?;
        }
    }
    if is_wanted(Compositor::Mutter) && !files::is_diverted() {
        step(format!("divert {} and put a script in its place", files::PROGRAM), &|| files::divert(&module))?;
    }
    let last =
        if changed { "takes effect at the next login; undo: xqos xwayland remove" } else { "everything is in place" };
    output::line(last)
}

type Step<'a> = &'a mut dyn FnMut(String, &dyn Fn() -> Result<()>) -> Result<()>;

fn install_file(path: &Path, text: &str, is_executable: bool, step: Step) -> Result<()> {
    match fs::read_to_string(path) {
        Ok(now) if now == text => Ok(()),
        Ok(_) if !files::is_ours(path) => bail!("{} was not written by xqos: move it away first", path.display()),
        _ => step(format!("write {}", path.display()), &|| files::write(path, text, is_executable)),
    }
}

fn install_weston(places: &Places, step: Step) -> Result<()> {
    let text = match fs::read_to_string(&places.weston) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", places.weston.display()))?,
    };
    if let Some(with_path) = weston::with_path(&text, &places.wrapper.display().to_string()) {
        let said = format!("set path in [xwayland] of {}", places.weston.display());
        step(said, &|| files::write(&places.weston, &with_path, false))?;
    }
    if !text.lines().any(|line| line.replace(' ', "").trim_end() == "xwayland=true") {
        output::line("weston starts Xwayland only with xwayland=true in [core] of weston.ini")?;
    }
    Ok(())
}

fn remove() -> Result<()> {
    let places = Places::of_user()?;
    let mut removed = false;
    let mut say = |text: String| {
        removed = true;
        output::line(&text)
    };
    if let Some(before) = fs::read_to_string(&places.weston).ok().and_then(|text| weston::without_path(&text)) {
        if before.is_empty() {
            fs::remove_file(&places.weston).with_context(|| format!("cannot remove {}", places.weston.display()))?;
        } else {
            files::write(&places.weston, &before, false)?;
        }
        say(format!("removed the path of xqos from {}", places.weston.display()))?;
    }
    for path in [&places.environment, &places.wrapper].into_iter().filter(|path| files::is_ours(path)) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        // Fails if the folder contains other files, which must be kept.
        let _ = path.parent().map(fs::remove_dir);
        say(format!("removed {}", path.display()))?;
    }
    if files::is_diverted() {
        if sys::effective_ids().0 != 0 {
            bail!("{} is diverted, which only root can undo: run `sudo xqos xwayland remove`", files::PROGRAM);
        }
        files::undo_diversion()?;
        say(format!("restored the package's {}", files::PROGRAM))?;
    }
    output::line(if removed {
        "takes effect at the next login"
    } else {
        "nothing to remove: xqos is not installed for Xwayland"
    })
}
