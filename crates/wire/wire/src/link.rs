// SPDX-License-Identifier: MIT
//! An emulated slow link between two private network namespaces.
//!
//! ```text
//! client's namespace            this process                 server's namespace
//!  10.0.0.2  link0 (TUN) ──▶ queue, rate, delay, loss ──▶ link0 (TUN)  10.0.0.1
//!                        ◀── queue, rate, delay, loss ◀──
//! ```
//!
//! Packets are the kernel's own: unmodified and at most 1500 bytes long. Nothing outside the namespaces changes: they
//! have no names, and every process in them ends with the [`Link`], even if this process is killed.
//!
//! | file | purpose |
//! |---|---|
//! | [`shape`] | decides what happens to a packet and when: no I/O, deterministic for a seed |
//! | [`log`] | a file with all packets and busy times of the link |
//! | `run` | the loop between the two devices |
//! | `namespace` | the namespaces, and the guard process that ends all processes in them |
//! | `netem` | uses the kernel's emulator instead |
//!
//! ```no_run
//! use std::process::Command;
//! use xqos_wire::link::shape::Shape;
//! use xqos_wire::link::{Link, LinkSettings, Side};
//!
//! let settings = LinkSettings::from(Shape { delay_ns: 10_000_000, ..Shape::default() });
//! let link = Link::start(&settings)?;
//! link.command_in(Side::Client, Command::new("ping").args(["-c", "1", "10.0.0.1"])).status()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod log;
mod namespace;
mod netem;
mod run;
pub mod shape;

pub use namespace::listens;

use log::{LinkTotals, LogWriter};
use namespace::Namespaces;
use run::Emulator;
use shape::Shape;
use std::io;
use std::path::PathBuf;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LinkSettings {
    pub shape: Shape,
    /// Random seed for loss and jitter.
    pub seed: u64,
    /// Path of the log; [`log`] describes its format.
    pub log: Option<PathBuf>,
    /// Use the kernel's netem instead of our emulator. No log is written.
    pub netem: bool,
}

impl From<Shape> for LinkSettings {
    fn from(shape: Shape) -> LinkSettings {
        LinkSettings { shape, ..LinkSettings::default() }
    }
}

impl LinkSettings {
    /// Comment that describes the link in its log.
    fn about(&self) -> String {
        let Shape { rate, delay_ns, jitter_ns, loss_ppm, .. } = self.shape;
        let rate = rate.map_or("unlimited".to_owned(), |rate| format!("{rate} bit/s"));
        let (queue, seed) = (self.shape.queue(), self.seed);
        format!("{rate}, delay {delay_ns} ns, jitter {jitter_ns} ns, queue {queue:?}, loss {loss_ppm} ppm, seed {seed}")
    }
}

/// A running link. Dropping it ends every process on both sides, then the link.
#[derive(Debug)]
pub struct Link {
    // Field order matters: processes in the namespaces must end while packets still flow.
    namespaces: Namespaces,
    emulator: Emulator,
}

impl Link {
    pub fn start(settings: &LinkSettings) -> Result<Link, Error> {
        let mut namespaces = Namespaces::make()?;
        let mut shape = settings.shape;
        if settings.netem {
            for side in [Side::Client, Side::Server] {
                let mut command = netem::command(&shape);
                xqos_sys::enter_before_exec(&mut command, namespaces.of(side));
                netem::set(command)?;
            }
            shape = Shape::default();
        }
        let create = |path| LogWriter::create(path, &settings.about());
        let log = settings.log.as_deref().filter(|_| !settings.netem).map(create).transpose().map_err(Error::Log)?;
        let tuns = namespaces.take_tuns().ok_or_else(|| Error::Device(io::ErrorKind::NotConnected.into()))?;
        let emulator = run::start(tuns, shape, settings.seed, log).map_err(Error::Run)?;
        Ok(Link { namespaces, emulator })
    }

    /// Makes a command run on that side.
    pub fn command_in<'a>(&self, side: Side, command: &'a mut Command) -> &'a mut Command {
        xqos_sys::enter_before_exec(command, self.namespaces.of(side));
        command
    }

    /// True if a process listens on this TCP port on the server's side.
    pub fn server_listens(&self, port: u16) -> io::Result<bool> {
        self.namespaces.server_listens(port)
    }

    /// Ends all processes on the link. Returns the totals of requests (from the client) and replies.
    pub fn finish(self) -> Result<[LinkTotals; 2], Error> {
        let Link { namespaces, emulator } = self;
        drop(namespaces);
        emulator.finish().map_err(Error::Run)?
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "the kernel refuses a network namespace: run as root, or allow user namespaces (sysctl \
         user.max_user_namespaces, kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0)"
    )]
    Namespace(#[source] io::Error),
    #[error("{}", no_device(.0))]
    Device(#[source] io::Error),
    #[error("cannot set up the network device of the link")]
    Address(#[source] io::Error),
    #[error("cannot start the guard process of the namespaces")]
    Guard(#[source] io::Error),
    #[error("cannot write the log of the link")]
    Log(#[source] io::Error),
    #[error("the emulated link failed")]
    Run(#[source] io::Error),
    /// The error message of `tc`.
    #[error("cannot use the kernel's netem: {0} (try modprobe sch_netem, or run without --netem)")]
    Netem(String),
}

fn no_device(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no /dev/net/tun: load the kernel module tun (modprobe tun)",
        _ => "the kernel refuses a TUN device: run as root, or let this user read and write /dev/net/tun",
    }
}
