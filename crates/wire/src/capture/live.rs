// SPDX-License-Identifier: MIT
//! Packets as they go by on a network interface, by libpcap: with the kernel's times, and its count of those it dropped.

use super::{Link, Record};
use pcap::{Active, Capture, Device, Precision};
use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// What the kernel keeps until we read it: a gigabit's for an eighth of a second.
const BUFFER_BYTES: i32 = 16 << 20;
/// How long the kernel may gather packets before we get them.
pub const GATHERED_FOR: Duration = Duration::from_millis(50);
/// The largest packet that the kernel hands out, from loopback and offloading.
const SNAP_BYTES: i32 = 262_144;

/// Why nothing can be captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    #[error("this machine shows us no interface")]
    NoInterfaces,
    #[error("there is no such interface; there are {}", .0.join(", "))]
    NoInterface(Vec<String>),
    /// Only root may, or who has CAP_NET_RAW.
    #[error("the kernel lets only root capture, and programs with CAP_NET_RAW")]
    NotAllowed,
    #[error("libpcap cannot read the filter: {0}")]
    Filter(String),
    #[error("{0}")]
    Other(String),
}

/// The interfaces that can be captured on; libpcap also lists USB, D-Bus and the firewall's log.
pub fn interfaces() -> Result<Vec<Device>, LiveError> {
    let others = ["bluetooth", "dbus", "nflog", "nfqueue", "usbmon"];
    let mut devices = Device::list().map_err(|error| LiveError::Other(said(&error)))?;
    devices.retain(|device| !others.iter().any(|other| device.name.starts_with(other)));
    Ok(devices)
}

/// libpcap's words for TCP connections to these ports.
pub fn filter_of(ports: &RangeInclusive<u16>) -> String {
    format!("tcp portrange {}-{}", ports.start(), ports.end())
}

/// What was lost, and what not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    pub received: u64,
    /// They came faster than we read.
    pub by_kernel: u64,
    pub by_interface: u64,
}

/// A capture that runs.
pub struct Live {
    capture: Capture<Active>,
    link: Link,
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
    /// Begins to capture on an interface what passes the filter.
    pub fn open(interface: &str, filter: &str) -> Result<Live, LiveError> {
        let all = interfaces().unwrap_or_default();
        let inactive = Capture::from_device(interface).map_err(|error| LiveError::Other(said(&error)))?;
        let inactive = inactive.snaplen(SNAP_BYTES).buffer_size(BUFFER_BYTES).timeout(GATHERED_FOR.as_millis() as i32);
        // Linux has nanoseconds for all of them.
        let opened = inactive.precision(Precision::Nano).open();
        let mut capture = opened.map_err(|error| refused(interface, &error, all))?;
        capture.filter(filter, true).map_err(|error| LiveError::Filter(said(&error)))?;
        // By itself libpcap would wait for ever where nothing comes.
        let capture = capture.setnonblock().map_err(|error| LiveError::Other(said(&error)))?;
        // Raw IP has another number in files than libpcap has for it.
        let link = match capture.get_datalink().0 {
            12 | 14 => Link::RAW,
            other => Link(other),
        };
        Ok(Live { capture, link })
    }

    /// The kind of the interface.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The next packet, if there is one; otherwise this file becomes readable.
    pub fn take(&mut self) -> Result<Option<Record<'_>>, LiveError> {
        let link = self.link;
        match self.capture.next_packet() {
            Ok(packet) => {
                let at = packet.header.ts;
                // By the precision that was asked for, what is called microseconds is nanoseconds.
                let at_ns = at.tv_sec as u64 * 1_000_000_000 + at.tv_usec as u64;
                Ok(Some(Record { at_ns, link, length: packet.header.len, bytes: packet.data, program: None }))
            }
            Err(pcap::Error::TimeoutExpired) => Ok(None),
            Err(error) => Err(LiveError::Other(said(&error))),
        }
    }

    /// Counts since the beginning.
    pub fn drops(&mut self) -> Drops {
        // Without counts there are none to show.
        let Ok(stat) = self.capture.stats() else { return Drops::default() };
        Drops { received: stat.received.into(), by_kernel: stat.dropped.into(), by_interface: stat.if_dropped.into() }
    }
}

fn refused(interface: &str, error: &pcap::Error, all: Vec<Device>) -> LiveError {
    let said = said(error);
    let is_there = all.iter().any(|known| known.name == interface);
    match () {
        () if said.contains("ermi") || said.contains("CAP_NET_RAW") => LiveError::NotAllowed,
        () if all.is_empty() => LiveError::NoInterfaces,
        () if !is_there => LiveError::NoInterface(all.into_iter().map(|device| device.name).collect()),
        () => LiveError::Other(said),
    }
}

/// What libpcap said, without the crate's own words in front.
fn said(error: &pcap::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("libpcap error: ").unwrap_or(&text).to_owned()
}
