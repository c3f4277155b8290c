// SPDX-License-Identifier: MIT
//! Decodes a packet up to its TCP segment: link layer, IPv4 or IPv6 with extensions, TCP.
//!
//! Lengths are those on the wire. For a truncated packet, the segment has the original length and the captured bytes.
//! Fragments are not reassembled, because TCP avoids them: each one is counted and appears as a gap.

use crate::capture::{Link, Record};
use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice, TcpOptionElement};
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Segment(Segment<'a>),
    Fragment,
    /// Not TCP.
    Other,
    /// Truncated or damaged before the end of the TCP header.
    Broken,
    UnknownLink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub sequence: u32,
    pub acknowledgement: Option<u32>,
    /// Value in the header, not scaled.
    pub window: u16,
    pub is_syn: bool,
    pub is_fin: bool,
    pub is_reset: bool,
    /// Window scale option of a SYN.
    pub window_scale: Option<u8>,
    /// Payload bytes on the wire.
    pub length: u32,
    /// Payload bytes that were captured.
    pub bytes: &'a [u8],
    /// The TCP header with its options.
    pub header: &'a [u8],
    /// IPv4 identification, a packet counter of the sender; 0 for IPv6.
    pub identification: u16,
    /// True if the capture already has this packet from another capture point.
    pub is_copy: bool,
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// EtherTypes of 802.1Q and 802.1ad tags, and an older one for the outer of two tags.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MAX_WINDOW_SCALE: u8 = 14;

pub fn parse<'a>(record: &Record<'a>) -> Frame<'a> {
    let header = match record.link {
        // Some systems write 12 and 14 for raw IP.
        Link::RAW | Link::IPV4 | Link::IPV6 | Link(12 | 14) => Some(0),
        // Loopback packets of the BSDs start with the address family.
        Link::NULL | Link::LOOP => Some(4),
        Link::ETHERNET => ethernet(record.bytes),
        // Linux cooked capture, as written for the interface `any`.
        Link::LINUX_SLL => ip_behind(record.bytes, 14, 16),
        Link::LINUX_SLL2 => ip_behind(record.bytes, 0, 20),
        _ => return Frame::UnknownLink,
    };
    let Some(header) = header else { return Frame::Other };
    let Some(packet) = record.bytes.get(header..) else { return Frame::Broken };
    let wire_bytes = (record.length as usize).saturating_sub(header).max(packet.len());
    if packet.first().is_some_and(|first| !matches!(first >> 4, 4 | 6)) {
        return Frame::Other;
    }
    internet(packet, wire_bytes)
}

/// Length of the Ethernet header, including VLAN tags, if IP follows.
fn ethernet(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    while VLAN.contains(&big_endian(bytes, at)?) {
        at += 4;
    }
    ip_behind(bytes, at, at + 2)
}

fn ip_behind(bytes: &[u8], protocol_at: usize, header: usize) -> Option<usize> {
    matches!(big_endian(bytes, protocol_at)?, IPV4 | IPV6).then_some(header)
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn internet(packet: &[u8], wire_bytes: usize) -> Frame<'_> {
    let Ok((ip, problem)) = LaxIpSlice::from_slice(packet) else { return Frame::Broken };
    if ip.is_fragmenting_payload() {
        return Frame::Fragment;
    }
    if problem.is_some() {
        return Frame::Broken;
    }
    if ip.payload_ip_number() != IpNumber::TCP {
        return Frame::Other;
    }
    let payload = ip.payload().payload;
    // Both are slices of one buffer; the headers are in between.
    let headers = payload.as_ptr() as usize - packet.as_ptr() as usize;
    let length = packet_bytes(&ip, wire_bytes).saturating_sub(headers).max(payload.len());
    tcp(&ip, payload, length)
}

/// Length of the IP packet on the wire. The header says 0 if the sender leaves segmentation to its network card.
fn packet_bytes(ip: &LaxIpSlice<'_>, wire_bytes: usize) -> usize {
    let stated = match ip {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => match ip.header().payload_length() {
            0 => 0,
            payload => usize::from(payload) + 40,
        },
    };
    if stated == 0 { wire_bytes } else { stated }
}

fn tcp<'a>(ip: &LaxIpSlice<'_>, payload: &'a [u8], length: usize) -> Frame<'a> {
    let Ok(header) = TcpHeaderSlice::from_slice(payload) else { return Frame::Broken };
    let header_bytes = header.slice().len();
    Frame::Segment(Segment {
        source: SocketAddr::new(ip.source_addr(), header.source_port()),
        destination: SocketAddr::new(ip.destination_addr(), header.destination_port()),
        sequence: header.sequence_number(),
        acknowledgement: header.ack().then(|| header.acknowledgment_number()),
        window: header.window_size(),
        is_syn: header.syn(),
        is_fin: header.fin(),
        is_reset: header.rst(),
        window_scale: if header.syn() { window_scale(&header) } else { None },
        length: (length - header_bytes) as u32,
        bytes: &payload[header_bytes..],
        header: &payload[..header_bytes],
        identification: match ip {
            LaxIpSlice::Ipv4(ip) => ip.header().identification(),
            LaxIpSlice::Ipv6(_) => 0,
        },
        is_copy: false,
    })
}

fn window_scale(header: &TcpHeaderSlice<'_>) -> Option<u8> {
    header.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::WindowScale(shift)) => Some(shift.min(MAX_WINDOW_SCALE)),
        _ => None,
    })
}
