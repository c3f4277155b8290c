// SPDX-License-Identifier: MIT
//! Synthetic packets and messages, and an observer that keeps everything.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::net::SocketAddr;
use xqos_wire::capture::{Link, Record};
use xqos_wire::contents::Contents;
use xqos_wire::observe::{ConnectionId, Direction, Ending, Kind, Message, MissingBytes, Observer, Opened, Packet};
use xqos_wire::session::Session;

pub const SYN: u8 = 2;
pub const FIN: u8 = 1;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
/// Time between packets.
pub const STEP_NS: u64 = 1_000_000;

/// A captured packet.
#[derive(Clone, Debug)]
pub struct Captured {
    pub at_ns: u64,
    pub link: Link,
    pub length: u32,
    pub bytes: Vec<u8>,
    pub program: Option<String>,
}

impl Captured {
    pub fn record(&self) -> Record<'_> {
        Record {
            at_ns: self.at_ns,
            link: self.link,
            length: self.length,
            bytes: &self.bytes,
            program: self.program.as_deref(),
            checkpoint: None,
        }
    }

    /// Truncates the packet as a snap length would.
    pub fn cut(mut self, most: usize) -> Captured {
        self.bytes.truncate(most);
        self
    }
}

/// A TCP connection whose packets are made in order.
#[derive(Clone, Debug)]
pub struct Talk {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub link: Link,
    /// Number of VLAN tags in the Ethernet header.
    pub vlan_tags: usize,
    pub window_scale: Option<u8>,
    /// Selective acknowledgements in packets other than SYN, which then also have timestamps.
    pub selective: Vec<(u32, u32)>,
    pub at_ns: u64,
    /// Next sequence numbers of client and server.
    pub next: [u32; 2],
    pub packets: Vec<Captured>,
}

impl Talk {
    pub fn new() -> Talk {
        Talk::between("10.0.0.1:40000", "10.0.0.2:6000")
    }

    pub fn between(client: &str, server: &str) -> Talk {
        Talk {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
            link: Link::ETHERNET,
            vlan_tags: 0,
            window_scale: None,
            selective: Vec::new(),
            at_ns: 1_000_000_000,
            next: [1000, 5_000_000],
            packets: Vec::new(),
        }
    }

    /// Makes the TCP handshake.
    pub fn open(&mut self) -> &mut Talk {
        self.send(Direction::Requests, SYN, &[]);
        self.send(Direction::Replies, SYN | ACK, &[]);
        self.send(Direction::Requests, ACK, &[])
    }

    /// Makes the TCP handshake and the X connection setup.
    pub fn open_x(&mut self, order: Order) -> &mut Talk {
        self.open().client(&setup(order)).server(&setup_reply(order))
    }

    pub fn client(&mut self, bytes: &[u8]) -> &mut Talk {
        self.send(Direction::Requests, ACK, bytes)
    }

    pub fn server(&mut self, bytes: &[u8]) -> &mut Talk {
        self.send(Direction::Replies, ACK, bytes)
    }

    pub fn close(&mut self) -> &mut Talk {
        self.send(Direction::Requests, FIN | ACK, &[]);
        self.send(Direction::Replies, FIN | ACK, &[]);
        self.send(Direction::Requests, ACK, &[])
    }

    pub fn send(&mut self, direction: Direction, flags: u8, bytes: &[u8]) -> &mut Talk {
        let packet = self.packet(direction, flags, bytes);
        let one_more = u32::from(flags & (SYN | FIN) != 0);
        let next = &mut self.next[direction as usize];
        *next = next.wrapping_add(bytes.len() as u32 + one_more);
        self.packets.push(packet);
        self
    }

    /// A packet with the current sequence numbers, which it does not advance.
    pub fn packet(&mut self, direction: Direction, flags: u8, bytes: &[u8]) -> Captured {
        self.at_ns += STEP_NS;
        let tcp = self.tcp(direction, flags, bytes);
        let (from, to) = match direction {
            Direction::Requests => (self.client, self.server),
            Direction::Replies => (self.server, self.client),
        };
        let bytes = self.linked(&internet(from, to, &tcp), from.is_ipv6());
        Captured { at_ns: self.at_ns, link: self.link, length: bytes.len() as u32, bytes, program: None }
    }

    fn tcp(&self, direction: Direction, flags: u8, bytes: &[u8]) -> Vec<u8> {
        let (own, other) = match direction {
            Direction::Requests => (self.next[0], self.next[1]),
            Direction::Replies => (self.next[1], self.next[0]),
        };
        let ports = match direction {
            Direction::Requests => [self.client.port(), self.server.port()],
            Direction::Replies => [self.server.port(), self.client.port()],
        };
        let mut options = match self.window_scale.filter(|_| flags & SYN != 0) {
            Some(shift) => vec![1, 3, 3, shift],
            None => vec![],
        };
        if flags & SYN == 0 && !self.selective.is_empty() {
            options.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 1, 5, 2 + 8 * self.selective.len() as u8]);
            self.selective
                .iter()
                .for_each(|(from, to)| options.extend([from.to_be_bytes(), to.to_be_bytes()].concat()));
        }
        let mut tcp = Vec::new();
        ports.iter().for_each(|port| tcp.extend(port.to_be_bytes()));
        tcp.extend(own.to_be_bytes());
        tcp.extend(if flags & ACK != 0 { other } else { 0 }.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4, flags]);
        tcp.extend(1000_u16.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(bytes);
        tcp
    }

    fn linked(&self, packet: &[u8], is_ipv6: bool) -> Vec<u8> {
        let ether_type = if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut bytes = match self.link {
            Link::NULL => vec![if is_ipv6 { 24 } else { 2 }, 0, 0, 0],
            Link::LOOP => vec![0, 0, 0, if is_ipv6 { 24 } else { 2 }],
            Link::ETHERNET => {
                let mut header = vec![0; 12];
                (0..self.vlan_tags).for_each(|_| header.extend([0x81, 0x00, 0, 7]));
                header.extend(ether_type);
                header
            }
            Link::LINUX_SLL => [vec![0; 14], ether_type.to_vec()].concat(),
            Link::LINUX_SLL2 => [ether_type.to_vec(), vec![0; 18]].concat(),
            _ => Vec::new(),
        };
        bytes.extend(packet);
        bytes
    }
}

fn internet(from: SocketAddr, to: SocketAddr, tcp: &[u8]) -> Vec<u8> {
    match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            // Write 0 if the length exceeds the field, as for a card that segments packets itself.
            let length = u16::try_from(tcp.len() + 20).unwrap_or(0);
            let mut packet = vec![0x45, 0];
            packet.extend(length.to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            packet.extend(from.ip().octets());
            packet.extend(to.ip().octets());
            packet.extend(tcp);
            packet
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend(u16::try_from(tcp.len() + 8).unwrap_or(0).to_be_bytes());
            // A hop-by-hop options header with padding.
            packet.extend([0, 64]);
            packet.extend(from.ip().octets());
            packet.extend(to.ip().octets());
            packet.extend([6, 0, 1, 4, 0, 0, 0, 0]);
            packet.extend(tcp);
            packet
        }
        _ => panic!("both ends have the same address family"),
    }
}

/// Byte order of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn two(self, value: u16) -> [u8; 2] {
        if self == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn four(self, value: u32) -> [u8; 4] {
        if self == Order::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

pub fn setup(order: Order) -> Vec<u8> {
    let mut bytes = vec![if order == Order::Little { b'l' } else { b'B' }, 0];
    [11, 0, 18, 16, 0].iter().for_each(|&value| bytes.extend(order.two(value)));
    bytes.extend(b"MIT-MAGIC-COOKIE-1\0\0");
    bytes.extend([7; 16]);
    bytes
}

pub fn setup_reply(order: Order) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    [11, 0, 100].iter().for_each(|&value| bytes.extend(order.two(value)));
    bytes.extend([0; 400]);
    bytes
}

/// A request with this length in words and these first two bytes.
pub fn request(order: Order, major: u8, second: u8, words: u16) -> Vec<u8> {
    let mut bytes = vec![major, second];
    bytes.extend(order.two(words));
    bytes.resize(usize::from(words) * 4, 0x5a);
    bytes
}

pub fn big_request(order: Order, major: u8, words: u32) -> Vec<u8> {
    let mut bytes = vec![major, 0, 0, 0];
    bytes.extend(order.four(words));
    bytes.resize(words as usize * 4, 0x5a);
    bytes
}

/// Major opcode of BIG-REQUESTS.
pub const BIG_REQUESTS: u8 = 133;

pub fn enable_big_requests(order: Order) -> Vec<u8> {
    request(order, BIG_REQUESTS, 0, 1)
}

pub fn query_extension(order: Order, name: &str) -> Vec<u8> {
    let mut bytes = request(order, 98, 0, 2 + name.len().div_ceil(4) as u16);
    bytes[4..6].copy_from_slice(&order.two(name.len() as u16));
    bytes[8..8 + name.len()].copy_from_slice(name.as_bytes());
    bytes
}

pub fn reply(order: Order, sequence: u64, second: u8, words: u32) -> Vec<u8> {
    let mut bytes = vec![1, second];
    bytes.extend(order.two(sequence as u16));
    bytes.extend(order.four(words));
    bytes.resize(32 + words as usize * 4, 0x5a);
    bytes
}

pub fn extension_reply(order: Order, sequence: u64, codes: [u8; 3]) -> Vec<u8> {
    let mut bytes = reply(order, sequence, 0, 0);
    bytes[8] = 1;
    bytes[9..12].copy_from_slice(&codes);
    bytes
}

pub fn event(order: Order, code: u8, second: u8, sequence: u64) -> Vec<u8> {
    let mut bytes = vec![code, second];
    bytes.extend(order.two(sequence as u16));
    bytes.resize(32, 0);
    bytes
}

pub fn error(order: Order, code: u8, sequence: u64, major: u8) -> Vec<u8> {
    let mut bytes = event(order, 0, code, sequence);
    bytes[10] = major;
    bytes
}

/// A message as an observer received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub kind: Kind,
    pub sequence: u64,
    pub name: String,
    pub has_reply: bool,
    pub length: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub kept: usize,
    pub second_byte: u8,
}

/// Observer that keeps everything.
#[derive(Debug, Default)]
pub struct Observed {
    pub opened: Vec<Opened>,
    pub packets: Vec<Packet>,
    pub messages: Vec<(ConnectionId, ReceivedMessage)>,
    pub streams: std::collections::BTreeMap<(ConnectionId, bool), Vec<u8>>,
    pub gaps: Vec<MissingBytes>,
    pub endings: Vec<Ending>,
    next: std::collections::BTreeMap<(ConnectionId, bool), u64>,
}

impl Observer for Observed {
    fn opened(&mut self, _id: ConnectionId, opened: &Opened) {
        self.opened.push(*opened);
    }

    fn packet(&mut self, _id: ConnectionId, packet: &Packet) {
        self.packets.push(*packet);
    }

    fn bytes(&mut self, id: ConnectionId, direction: Direction, _at_ns: u64, offset: u64, bytes: &[u8]) {
        let key = (id, direction == Direction::Requests);
        let next = self.next.entry(key).or_default();
        assert_eq!(*next, offset, "each byte is delivered once and in order");
        *next += bytes.len() as u64;
        self.streams.entry(key).or_default().extend(bytes);
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        assert!(message.first_ns <= message.last_ns || !self.gaps.is_empty() || message.kind != Kind::Setup);
        assert!(message.bytes.len() as u64 <= message.length);
        let received = ReceivedMessage {
            kind: message.kind,
            sequence: message.sequence,
            name: message.name.to_owned(),
            has_reply: message.has_reply,
            length: message.length,
            first_ns: message.first_ns,
            last_ns: message.last_ns,
            kept: message.bytes.len(),
            second_byte: message.bytes.get(1).copied().unwrap_or(0),
        };
        self.messages.push((id, received));
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        let next = self.next.entry((id, gap.direction == Direction::Requests)).or_default();
        assert_eq!(*next, gap.offset, "a gap starts after the last byte");
        *next += gap.length;
        self.gaps.push(*gap);
    }

    fn ended(&mut self, _id: ConnectionId, _at_ns: u64, ending: Ending) {
        self.endings.push(ending);
    }
}

impl Observed {
    /// `kind sequence name` of each message, without the setup.
    pub fn lines(&self) -> Vec<String> {
        let messages = self.messages.iter().map(|(_, received)| received);
        let messages = messages.filter(|received| !matches!(received.kind, Kind::Setup | Kind::SetupReply));
        messages.map(|received| format!("{:?} {} {}", received.kind, received.sequence, received.name)).collect()
    }

    pub fn last(&self) -> &ReceivedMessage {
        &self.messages.last().expect("there is a message").1
    }
}

/// Feeds packets to a session.
pub fn observe<'p>(packets: impl IntoIterator<Item = &'p Captured>) -> (Observed, Contents) {
    observe_with(packets, |session| session)
}

pub fn observe_with<'p>(
    packets: impl IntoIterator<Item = &'p Captured>,
    set: impl for<'s> FnOnce(Session<'s>) -> Session<'s>,
) -> (Observed, Contents) {
    let mut seen = Observed::default();
    let mut session = set(Session::new(vec![&mut seen]));
    for packet in packets {
        session.packet(&packet.record());
    }
    let counts = session.finish();
    (seen, counts)
}
