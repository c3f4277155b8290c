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
/// A session of PPP over Ethernet.
const PPPOE: u16 = 0x8864;
const MPLS_UNICAST: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
/// A smaller number in the place of an EtherType is the length of an 802.3 frame, or a kind of frame without EtherType.
const FIRST_ETHER_TYPE: u16 = 1536;
/// LLC header of a frame whose EtherType follows (SNAP).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
const PPP: Link = Link(9);
const PPP_HDLC: Link = Link(50);
const PPP_ETHER: Link = Link(51);
const PPPOE_HEADER: usize = 6;
const MAX_WINDOW_SCALE: u8 = 14;

pub fn parse<'a>(record: &Record<'a>) -> Frame<'a> {
    let header = match record.link {
        // Some systems write 12 and 14 for raw IP.
        Link::RAW | Link::IPV4 | Link::IPV6 | Link(12 | 14) => Some(0),
        // Loopback packets of the BSDs start with the address family.
        Link::NULL | Link::LOOP => Some(4),
        Link::ETHERNET => ip_after(record.bytes, 12, 14),
        // Linux cooked capture, as written for the interface `any`.
        Link::LINUX_SLL => ip_after(record.bytes, 14, 16),
        Link::LINUX_SLL2 => ip_after(record.bytes, 0, 20),
        PPP | PPP_HDLC => ip_after_ppp(record.bytes, 0),
        PPP_ETHER => ip_after_ppp(record.bytes, PPPOE_HEADER),
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

/// Start of the IP packet, after VLAN tags and other headers. The EtherType is at `type_at`, its packet at `at`.
fn ip_after(bytes: &[u8], type_at: usize, mut at: usize) -> Option<usize> {
    let mut ether_type = big_endian(bytes, type_at)?;
    loop {
        (ether_type, at) = match ether_type {
            IPV4 | IPV6 => return Some(at),
            PPPOE => return ip_after_ppp(bytes, at + PPPOE_HEADER),
            MPLS_UNICAST | MPLS_MULTICAST => return ip_after_labels(bytes, at),
            tag if VLAN.contains(&tag) => (big_endian(bytes, at + 2)?, at + 4),
            ..FIRST_ETHER_TYPE if bytes.get(at..)?.starts_with(&SNAP) => (big_endian(bytes, at + 6)?, at + 8),
            _ => return None,
        }
    }
}

/// PPP may omit the address, and the first byte of the protocol.
fn ip_after_ppp(bytes: &[u8], at: usize) -> Option<usize> {
    let at = if bytes.get(at..)?.starts_with(&[0xff, 3]) { at + 2 } else { at };
    let first = *bytes.get(at)?;
    let (protocol, at) = if first & 1 == 1 { (first.into(), at + 1) } else { (big_endian(bytes, at)?, at + 2) };
    match protocol {
        0x0021 | 0x0057 => Some(at),
        0x0281 | 0x0283 => ip_after_labels(bytes, at),
        _ => None,
    }
}

/// A bit marks the last label. What follows has no type; [`parse`] checks that it is IP.
fn ip_after_labels(bytes: &[u8], at: usize) -> Option<usize> {
    let labels = bytes.get(at..)?.chunks_exact(4);
    labels.map(|label| label[2] & 1 == 1).position(|is_last| is_last).map(|last| at + 4 * (last + 1))
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
