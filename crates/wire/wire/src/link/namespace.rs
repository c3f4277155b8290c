// SPDX-License-Identifier: MIT
//! Two network namespaces, each with a TUN device, and a guard process that ends everything that runs in them.
//!
//! A forked child creates everything, passes us the file descriptors and remains as the guard:
//!
//! ```text
//! we                          guard (our child)
//!  ├─ TUN, namespace ◀── made ─┤
//!  ├─ TUN, namespace ◀── made ─┤   waits for end of file: we close the socket, or were killed
//!  │  ...                      │
//!  └─ (gone) ─────────────────▶ ends every process of the two namespaces, then itself
//! ```
//!
//! The namespaces have no names. They exist until our descriptors, the guard and all processes in them are gone.
//! Without the privilege to create them, they are created inside a user namespace in which we are root.
//!
//! Only processes inside one of the namespaces are ever ended.

use super::{Error, Side};
use crate::descriptors;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;
use xqos_sys as sys;

const DEVICE: &CStr = c"link0";
/// Length of the device's kernel queue in packets: 10 ms of small packets at 1 Gb/s, longer than we ever pause. The
/// emulated queue has a separate bound.
const KERNEL_QUEUE: i32 = 10_000;
/// Time between SIGTERM and SIGKILL, in which an X server can remove its files or an editor can save.
const GRACE: Duration = Duration::from_secs(2);
/// Time after which we give up: a process that survives SIGKILL is waiting for a device.
const PATIENCE: Duration = Duration::from_secs(5);

/// Both sides of an idle link. Dropping it ends every process on them.
#[derive(Debug)]
pub struct Namespaces {
    tuns: Option<[File; 2]>,
    networks: [Arc<OwnedFd>; 2],
    user: Option<Arc<OwnedFd>>,
    guard: Guard,
}

impl Namespaces {
    pub fn make() -> Result<Namespaces, Error> {
        let (ours, guards) = UnixStream::pair().map_err(Error::Guard)?;
        let ids = sys::effective_ids();
        let pid = sys::fork(move || guard(&guards, ids)).map_err(Error::Guard)?;
        let guard = Guard { pid, socket: Some(ours) };
        let mut files = guard.receive()?;
        let mut next = || files.next().ok_or_else(|| Error::Guard(io::ErrorKind::UnexpectedEof.into()));
        let tuns = [File::from(next()?), File::from(next()?)];
        let networks = [Arc::new(next()?), Arc::new(next()?)];
        let user = files.next().map(Arc::new);
        Ok(Namespaces { tuns: Some(tuns), networks, user, guard })
    }

    /// Returns the devices of client and server. They can be taken only once.
    pub fn take_tuns(&mut self) -> Option<[File; 2]> {
        self.tuns.take()
    }

    /// Namespaces that a process must enter, in this order, to be on that side.
    pub fn of(&self, side: Side) -> Vec<Arc<OwnedFd>> {
        self.user.iter().chain([&self.networks[side as usize]]).cloned().collect()
    }

    /// True if a process listens on this TCP port on the server's side. Does not connect: an X server would count the
    /// connection as a client, and reset itself when this client disconnects.
    pub fn server_listens(&self, port: u16) -> io::Result<bool> {
        // The guard is in the server's namespace, which it created last.
        listens(self.guard.pid as u32, port)
    }
}

/// True if a process listens on this TCP port in the network namespace of `pid`.
pub fn listens(pid: u32, port: u16) -> io::Result<bool> {
    Ok(sys::sockets::tcp(pid as i32)?.iter().any(|socket| socket.listens && socket.port == port))
}

/// The guard process, and our end of the socket to it.
#[derive(Debug)]
struct Guard {
    pid: i32,
    socket: Option<UnixStream>,
}

impl Guard {
    /// Receives the devices, the networks, and the user namespace if one was needed.
    fn receive(&self) -> Result<impl Iterator<Item = OwnedFd> + use<>, Error> {
        let mut report = [0; MAX_REPORT_BYTES];
        let (got, files) = match &self.socket {
            Some(socket) => descriptors::receive(socket, &mut report).map_err(|error| Error::Guard(error.into()))?,
            None => (0, Vec::new()),
        };
        match serde_json::from_slice::<GuardReport>(&report[..got]) {
            Ok(None) => Ok(files.into_iter()),
            Ok(Some((step, error))) => Err(step.failed(io::Error::from_raw_os_error(error))),
            Err(_) => Err(Error::Guard(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.socket = None;
        sys::wait(self.pid);
    }
}

/// Steps in which the guard sets up a link.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Step {
    Namespace,
    Device,
    Address,
}

impl Step {
    fn failed(self, error: io::Error) -> Error {
        match self {
            Step::Namespace => Error::Namespace(error),
            Step::Device => Error::Device(error),
            Step::Address => Error::Address(error),
        }
    }
}

/// What the guard reports, as JSON: nothing, or the step that failed and its error number.
type GuardReport = Option<(Step, i32)>;
const MAX_REPORT_BYTES: usize = 64;

fn guard(socket: &UnixStream, ids: (u32, u32)) {
    sys::isolate(socket.as_fd());
    let report = |report: &GuardReport, files: &[BorrowedFd<'_>]| {
        descriptors::send(socket, &serde_json::to_vec(report).unwrap_or_default(), files)
    };
    let (tuns, networks, user) = match make(ids) {
        Ok(made) => made,
        Err((step, error)) => {
            // If sending fails, the parent has exited.
            let _ = report(&Some((step, error.raw_os_error().unwrap_or(0))), &[]);
            return;
        }
    };
    let files: Vec<BorrowedFd<'_>> = tuns.iter().chain(&networks).chain(&user).map(File::as_fd).collect();
    if report(&None, &files).is_err() {
        return;
    }
    // Our copies would keep the devices up after the parent has exited.
    drop(tuns);
    // Wait for end of file: nothing is ever sent.
    let mut end = socket;
    let _ = end.read(&mut [0]);
    end_all(&networks.map(|network| identity(network.metadata())));
}

type Handles = ([File; 2], [File; 2], Option<File>);

fn make(ids: (u32, u32)) -> Result<Handles, (Step, io::Error)> {
    let user = leave_for_new_network(ids)?;
    let client = make_side(Side::Client)?;
    sys::unshare(sys::Namespaces::Network).map_err(|error| (Step::Namespace, error))?;
    let server = make_side(Side::Server)?;
    Ok(([client.0, server.0], [client.1, server.1], user))
}

/// Enters a new network namespace. Creates a user namespace first if that is necessary, and returns it.
fn leave_for_new_network((user, group): (u32, u32)) -> Result<Option<File>, (Step, io::Error)> {
    match sys::unshare(sys::Namespaces::Network) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        left => return left.map(|()| None).map_err(|error| (Step::Namespace, error)),
    }
    sys::unshare(sys::Namespaces::UserAndNetwork).map_err(|error| (Step::Namespace, error))?;
    let become_root = || {
        // The kernel requires this before an ordinary user may write gid_map.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
        File::open("/proc/self/ns/user")
    };
    become_root().map(Some).map_err(|error| (Step::Namespace, error))
}

/// Sets up the current network namespace for that side, and returns its device and its namespace.
fn make_side(side: Side) -> Result<(File, File), (Step, io::Error)> {
    // Disable IPv6, whose automatic packets would be measured too. Users can enable it again.
    for interfaces in ["all", "default"] {
        // A kernel without IPv6 has no such file.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{interfaces}/disable_ipv6"), "1");
    }
    let tun = sys::open_tun(DEVICE).map_err(|error| (Step::Device, error))?;
    let address = || {
        sys::Interface::named(c"lo")?.bring_up()?;
        let device = sys::Interface::named(DEVICE)?;
        // This needs root outside the namespace. Without it, the default of 500 packets suffices below 1 Gb/s.
        let _ = device.set_kernel_queue(KERNEL_QUEUE);
        device.set_address(side.address())?;
        device.bring_up()?;
        File::open("/proc/self/ns/net")
    };
    Ok((tun, address().map_err(|error| (Step::Address, error))?))
}

fn identity(namespace: io::Result<fs::Metadata>) -> Option<(u64, u64)> {
    namespace.ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Ends every process in these networks except this one: SIGTERM first, SIGKILL after [`GRACE`]. Time is counted in
/// pauses, so that a guard that gets no processor for a while still sends both.
fn end_all(networks: &[Option<(u64, u64)>; 2]) {
    const PAUSE: Duration = Duration::from_millis(5);
    let pauses = |time: Duration| time.div_duration_f64(PAUSE) as u32;
    let mut asked = BTreeSet::new();
    for paused in 0..pauses(PATIENCE) {
        let left = members(networks);
        if left.is_empty() {
            return;
        }
        for (pid, process) in left {
            // The process may be gone already.
            let send = |signal| _ = pidfd_send_signal(&process, signal);
            if paused >= pauses(GRACE) {
                send(Signal::KILL);
            } else if asked.insert(pid) {
                // SIGCONT lets a stopped process handle SIGTERM.
                [Signal::TERM, Signal::CONT].into_iter().for_each(send);
            }
        }
        sleep(PAUSE);
    }
}

fn members(networks: &[Option<(u64, u64)>; 2]) -> Vec<(i32, OwnedFd)> {
    let member = |pid| {
        // Open the pidfd before the check, so that a reused pid cannot be ended by mistake.
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let network = sys::network_of(pid);
        (network.is_some() && networks.contains(&network)).then_some((pid, process))
    };
    let own = process::id() as i32;
    sys::pids().into_iter().filter(|&pid| pid != own).filter_map(member).collect()
}

impl Side {
    /// Private addresses. No other network with these addresses is reachable from the namespaces.
    pub const fn address(self) -> Ipv4Addr {
        match self {
            Side::Client => Ipv4Addr::new(10, 0, 0, 2),
            Side::Server => Ipv4Addr::new(10, 0, 0, 1),
        }
    }
}
