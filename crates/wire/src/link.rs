// SPDX-License-Identifier: MIT
//! A link that can be slow: a network emulator between two network namespaces of its own.
//!
//! ```text
//! client's namespace            this process                 server's namespace
//!  10.0.0.2  link0 (TUN) ──▶ queue, rate, delay, loss ──▶ link0 (TUN)  10.0.0.1
//!                        ◀── queue, rate, delay, loss ◀──
//! ```
//!
//! Packets are those that the kernels send, of at most 1500 bytes, untouched. Nothing outside is changed: the namespaces
//! have no names, and whatever runs in them ends with the [`Link`], however that ends.
//!
//! | file | what |
//! |---|---|
//! | [`shape`] | what happens to a packet and when: pure, the same for the same seed |
//! | [`log`] | what happened, as a file: the truth about busy and idle lines |
//! | `run` | the loop between the two devices |
//! | `namespace` | the namespaces, and the guard that ends what is in them |
//! | `netem` | the kernel's own emulator instead |
//!
//! ```no_run
//! use std::process::Command;
//! use xqos_wire::link::{Link, Settings, Side};
//!
//! let settings = Settings { delay_ns: 10_000_000, ..Settings::default() };
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

use log::{Totals, Writer};
use namespace::Namespaces;
use run::Emulator;
use shape::{Queue, Shape};
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;

/// One of the two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A link to make; both directions are the same.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// Bits per second; `None` is without limit.
    pub rate: Option<NonZeroU64>,
    /// One way.
    pub delay_ns: u64,
    pub jitter_ns: u64,
    /// `None`: what arrives in a round trip, [`Queue::for_round_trip`].
    pub queue: Option<Queue>,
    pub loss_ppm: u32,
    /// Of the loss and the jitter.
    pub seed: u64,
    /// Where to log the queue, as [`log`] says.
    pub log: Option<PathBuf>,
    /// Leave it to the kernel's netem; then there is no log.
    pub netem: bool,
}

impl Settings {
    pub fn shape(&self) -> Shape {
        Shape {
            rate: self.rate,
            delay_ns: self.delay_ns,
            jitter_ns: self.jitter_ns,
            queue: self.queue.unwrap_or_else(|| Queue::for_round_trip(self.rate, self.delay_ns)),
            loss_ppm: self.loss_ppm,
        }
    }

    /// For people who find the log later.
    fn about(&self) -> String {
        let Shape { rate, delay_ns, jitter_ns, queue, loss_ppm } = self.shape();
        let rate = rate.map_or("unlimited".to_owned(), |rate| format!("{rate} bit/s"));
        let seed = self.seed;
        format!("{rate}, delay {delay_ns} ns, jitter {jitter_ns} ns, queue {queue:?}, loss {loss_ppm} ppm, seed {seed}")
    }
}

/// A link that runs. Its drop ends every process on both sides, then the link.
#[derive(Debug)]
pub struct Link {
    // In this order: what runs in the namespaces ends while packets still flow.
    namespaces: Namespaces,
    emulator: Emulator,
}

impl Link {
    pub fn start(settings: &Settings) -> Result<Link, Error> {
        let mut namespaces = Namespaces::make()?;
        let mut shape = settings.shape();
        if settings.netem {
            for side in [Side::Client, Side::Server] {
                let mut command = netem::command(&shape);
                xqos_sys::enter_before_exec(&mut command, namespaces.of(side));
                netem::set(command)?;
            }
            shape = Settings::default().shape();
        }
        let create = |path| Writer::create(path, &settings.about());
        let log = settings.log.as_deref().filter(|_| !settings.netem).map(create).transpose().map_err(Error::Log)?;
        let tuns = namespaces.take_tuns().ok_or_else(|| Error::Device(io::ErrorKind::NotConnected.into()))?;
        let emulator = run::start(tuns, shape, settings.seed, log).map_err(Error::Run)?;
        Ok(Link { namespaces, emulator })
    }

    /// Makes a command one that will run on that side.
    pub fn command_in<'a>(&self, side: Side, command: &'a mut Command) -> &'a mut Command {
        xqos_sys::enter_before_exec(command, self.namespaces.of(side));
        command
    }

    /// Whether somebody listens at this TCP port on the server's side.
    pub fn server_listens(&self, port: u16) -> io::Result<bool> {
        self.namespaces.server_listens(port)
    }

    /// Ends everything on it; what went over it, requests (from the client) and replies.
    pub fn finish(self) -> Result<[Totals; 2], Error> {
        let Link { namespaces, emulator } = self;
        drop(namespaces);
        emulator.finish().map_err(Error::Run)?
    }
}

/// Why there is no link, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "the kernel allows no network namespace: run it as root, or allow user namespaces (sysctl \
         user.max_user_namespaces, kernel.unprivileged_userns_clone=1, \
         kernel.apparmor_restrict_unprivileged_userns=0)"
    )]
    Namespace(#[source] io::Error),
    #[error("{}", no_device(.0))]
    Device(#[source] io::Error),
    #[error("the device of the link cannot be set up")]
    Address(#[source] io::Error),
    #[error("the process that guards the namespaces cannot be started")]
    Guard(#[source] io::Error),
    #[error("the log of the link cannot be written")]
    Log(#[source] io::Error),
    #[error("the link broke")]
    Run(#[source] io::Error),
    /// What `tc` said.
    #[error("the kernel's netem cannot be used: {0} (try modprobe sch_netem, or leave --netem out)")]
    Netem(String),
}

fn no_device(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no /dev/net/tun: load the kernel's module tun (modprobe tun)",
        _ => "the kernel allows no TUN device: run it as root, or let this user read and write /dev/net/tun",
    }
}
