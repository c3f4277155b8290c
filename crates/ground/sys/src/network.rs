// SPDX-License-Identifier: MIT
//! Network namespaces, and the TUN devices in them.

use crate::checked;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::Arc;

/// The namespaces to replace with new namespaces.
#[derive(Clone, Copy, Debug)]
pub enum Namespaces {
    Network,
    UserAndNetwork,
}

pub fn unshare(namespaces: Namespaces) -> io::Result<()> {
    let flags = match namespaces {
        Namespaces::Network => UnshareFlags::NEWNET,
        Namespaces::UserAndNetwork => UnshareFlags::NEWUSER | UnshareFlags::NEWNET,
    };
    // SAFETY: these flags keep the table of descriptors shared.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// The identity of a process's network namespace: device and inode. `None` if the process has exited.
pub fn network_of(pid: i32) -> Option<(u64, u64)> {
    let namespace = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
    Some((namespace.dev(), namespace.ino()))
}

/// Makes the command run in these namespaces, entered in this order.
pub fn enter_before_exec(command: &mut Command, namespaces: Vec<Arc<OwnedFd>>) {
    let enter = move || {
        let mut each = namespaces.iter();
        Ok(each.try_for_each(|namespace| move_into_link_name_space(namespace.as_fd(), None))?)
    };
    // SAFETY: between fork and exec only setns is called, a bare system call; the closure owns the descriptors.
    unsafe { command.pre_exec(enter) };
}

/// Opens a TUN device in the current namespace: whole IP packets without a header, none larger than the MTU.
pub fn open_tun(name: &CStr) -> io::Result<File> {
    let options = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let tun = OpenOptions::new().read(true).write(true).custom_flags(options).open("/dev/net/tun")?;
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    control(tun.as_fd(), libc::TUNSETIFF, &mut request)?;
    Ok(tun)
}

/// A network interface in the current namespace.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    name: &'static CStr,
}

impl Interface {
    pub fn named(name: &'static CStr) -> io::Result<Interface> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Interface { socket, name })
    }

    pub fn bring_up(&self) -> io::Result<()> {
        let mut request = request(self.name);
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        self.control(libc::SIOCSIFFLAGS, request)
    }

    /// Sets the address with the netmask 255.255.255.0.
    pub fn set_address(&self, address: Ipv4Addr) -> io::Result<()> {
        self.control(libc::SIOCSIFADDR, self.request_with(address))?;
        self.control(libc::SIOCSIFNETMASK, self.request_with(Ipv4Addr::new(255, 255, 255, 0)))
    }

    /// Sets the number of packets that the kernel queues until they are read.
    pub fn set_kernel_queue(&self, packets: i32) -> io::Result<()> {
        let mut request = request(self.name);
        request.ifr_ifru.ifru_metric = packets;
        self.control(libc::SIOCSIFTXQLEN, request)
    }

    fn control(&self, code: libc::Ioctl, mut request: libc::ifreq) -> io::Result<()> {
        control(self.socket.as_fd(), code, &mut request)
    }

    fn request_with(&self, address: Ipv4Addr) -> libc::ifreq {
        let address = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: 0,
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
            sin_zero: [0; 8],
        };
        let mut request = request(self.name);
        // SAFETY: both types have 16 bytes and begin with the address family, which identifies the type.
        request.ifr_ifru.ifru_addr = unsafe { mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
        request
    }
}

fn request(name: &CStr) -> libc::ifreq {
    // SAFETY: an ifreq consists of plain numbers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, &from) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn control(file: BorrowedFd<'_>, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: every code used here takes an ifreq, which outlives the call.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), code, ptr::from_mut(request)) }).map(drop)
}
