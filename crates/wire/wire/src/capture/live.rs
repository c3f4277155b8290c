// SPDX-License-Identifier: MIT
//! Captures packets on a network interface with libpcap, with the kernel's timestamps and drop counts.

use super::{Link, Record};
use pcap::{Active, Capture, Device, Precision};
use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Kernel buffer: an eighth of a second at 1 Gb/s.
const BUFFER_BYTES: i32 = 16 << 20;
/// Maximum time for which the kernel collects packets before we get them.
pub const GATHERED_FOR: Duration = Duration::from_millis(50);
/// Snapshot length. Loopback and segmentation offloading produce packets of up to this size.
const SNAP_BYTES: i32 = 262_144;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    #[error("libpcap finds no network interface on this machine")]
    NoInterfaces,
    #[error("there is no such interface: choose one of {}", .0.join(", "))]
    NoInterface(Vec<String>),
    /// Only root and processes with CAP_NET_RAW can capture.
    #[error("capturing needs root, or a program with CAP_NET_RAW")]
    NotAllowed,
    #[error("libpcap does not accept the filter: {0}")]
    Filter(String),
    #[error("{0}")]
    Other(String),
}

/// Lists the network interfaces, without libpcap's Bluetooth, USB, D-Bus and firewall devices.
pub fn interfaces() -> Result<Vec<Device>, LiveError> {
    let others = ["bluetooth", "dbus", "nflog", "nfqueue", "usbmon"];
    let mut devices = Device::list().map_err(|error| LiveError::Other(message(&error)))?;
    devices.retain(|device| !others.iter().any(|other| device.name.starts_with(other)));
    Ok(devices)
}

/// libpcap filter for TCP connections to these ports.
pub fn filter_of(ports: &RangeInclusive<u16>) -> String {
    format!("tcp portrange {}-{}", ports.start(), ports.end())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    pub received: u64,
    /// Packets that the kernel dropped because we read too slowly.
    pub by_kernel: u64,
    pub by_interface: u64,
}

pub struct Live {
    capture: Capture<Active>,
    pub link: Link,
}

impl fmt::Debug for Live {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Live").field("link", &self.link).finish_non_exhaustive()
    }
}

impl AsRawFd for Live {
    fn as_raw_fd(&self) -> RawFd {
        self.capture.as_raw_fd()
    }
}

impl Live {
    /// Starts to capture the packets on an interface that pass the filter.
    pub fn open(interface: &str, filter: &str) -> Result<Live, LiveError> {
        let all = interfaces().unwrap_or_default();
        let inactive = Capture::from_device(interface).map_err(|error| LiveError::Other(message(&error)))?;
        let inactive = inactive.snaplen(SNAP_BYTES).buffer_size(BUFFER_BYTES).timeout(GATHERED_FOR.as_millis() as i32);
        // Linux supports nanoseconds on all interfaces.
        let opened = inactive.precision(Precision::Nano).open();
        let mut capture = opened.map_err(|error| refused(interface, &error, all))?;
        capture.filter(filter, true).map_err(|error| LiveError::Filter(message(&error)))?;
        // Otherwise libpcap blocks until a packet arrives.
        let capture = capture.setnonblock().map_err(|error| LiveError::Other(message(&error)))?;
        // Capture files and libpcap use different numbers for raw IP.
        let link = match capture.get_datalink().0 {
            12 | 14 => Link::RAW,
            other => Link(other),
        };
        Ok(Live { capture, link })
    }

    /// Returns the next packet. If there is none yet, poll the file descriptor.
    pub fn take(&mut self) -> Result<Option<Record<'_>>, LiveError> {
        let link = self.link;
        match self.capture.next_packet() {
            Ok(packet) => {
                let at = packet.header.ts;
                // `tv_usec` holds nanoseconds, because we requested that precision.
                let at_ns = at.tv_sec as u64 * 1_000_000_000 + at.tv_usec as u64;
                Ok(Some(Record::new(at_ns, link, packet.header.len, packet.data)))
            }
            Err(pcap::Error::TimeoutExpired) => Ok(None),
            Err(error) => Err(LiveError::Other(message(&error))),
        }
    }

    pub fn drops(&mut self) -> Drops {
        let Ok(stat) = self.capture.stats() else { return Drops::default() };
        Drops { received: stat.received.into(), by_kernel: stat.dropped.into(), by_interface: stat.if_dropped.into() }
    }
}

fn refused(interface: &str, error: &pcap::Error, all: Vec<Device>) -> LiveError {
    let message = message(error);
    let is_there = all.iter().any(|known| known.name == interface);
    match () {
        () if message.contains("ermi") || message.contains("CAP_NET_RAW") => LiveError::NotAllowed,
        () if all.is_empty() => LiveError::NoInterfaces,
        () if !is_there => LiveError::NoInterface(all.into_iter().map(|device| device.name).collect()),
        () => LiveError::Other(message),
    }
}

/// libpcap's message without the prefix of the pcap crate.
fn message(error: &pcap::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("libpcap error: ").unwrap_or(&text).to_owned()
}
