// SPDX-License-Identifier: MIT
//! Replies that are lists: clients, and the longest requests.

use super::{finish, header};
use crate::bytes::{Order, Reader, Short, Writer};
use crate::label::Label;
use xqos_core::{ReservationKind, WAIT_BOUNDS_NS};

/// Bytes of one entry of a ListClients reply.
pub(crate) const ENTRY_BYTES: usize = 384;
/// The same in version 1.0.
const ENTRY_BYTES_1_0: usize = 176;
/// Bytes of one entry of a ListLongestRequests reply.
pub(crate) const LONG_REQUEST_BYTES: usize = 64;
const NAME_BYTES: usize = 32;
/// What clients of other machines are called together.
const REMOTE: &str = "(remote)";
const HOST_AT: usize = 280;
const HOST_BYTES: usize = 48;
const WAITS: usize = WAIT_BOUNDS_NS.len() + 1;
const WAITS_AT: usize = 328;

/// Flag bits of a [`ClientEntry`].
pub mod entry_flag {
    pub const RESERVED: u32 = 1;
    pub const HARD: u32 = 2;
    pub const HELD_BACK: u32 = 4;
    pub const READY: u32 = 8;
    pub const YOU: u32 = 16;
    pub const LOCAL: u32 = 32;
    pub const GRABS_SERVER: u32 = 64;
    /// It owns the selection of a screen's compositing manager.
    pub const COMPOSITOR: u32 = 128;
    /// It owns the selection of a screen's window manager, or redirects its top-level windows.
    pub const WINDOW_MANAGER: u32 = 256;
    /// The reservation of its group is hard.
    pub const GROUP_HARD: u32 = 512;
    /// It waits for those that it uncovers, whether or not others do.
    pub const PACED: u32 = 1024;
    /// It does not wait for them, whether or not others do.
    pub const NEVER_PACED: u32 = 2048;
    /// Its reservation is soft by the paper's rule.
    pub const SOFT_PAPER: u32 = 4096;
    /// That of its group is.
    pub const GROUP_SOFT_PAPER: u32 = 8192;
    pub const GRABS_POINTER: u32 = 16384;
    pub const GRABS_KEYBOARD: u32 = 32768;
}

impl ClientEntry {
    /// Of its own reservation.
    pub fn kind(&self) -> ReservationKind {
        self.kind_by(entry_flag::HARD, entry_flag::SOFT_PAPER)
    }

    /// Of its group's.
    pub fn group_kind(&self) -> ReservationKind {
        self.kind_by(entry_flag::GROUP_HARD, entry_flag::GROUP_SOFT_PAPER)
    }

    fn kind_by(&self, hard: u32, paper: u32) -> ReservationKind {
        if self.flags & paper != 0 { ReservationKind::SoftPaper } else { (self.flags & hard != 0).into() }
    }
}

/// One client in a ListClients reply; the fields are explained in `xqosproto.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientEntry {
    pub client: u32,
    pub pid: i32,
    pub uid: u32,
    pub sync_priority: i32,
    pub weight: u32,
    pub fixed_priority: i32,
    pub flags: u32,
    pub budget_us: u32,
    pub period_us: u32,
    pub depletions: u32,
    pub misses: u32,
    pub longest_request: u32,
    pub budget_left_ns: i64,
    pub deadline_ns: u64,
    pub server_time_ns: u64,
    pub reserved_time_ns: u64,
    pub requests: u64,
    pub slices: u64,
    pub waited_ns: u64,
    pub longest_wait_ns: u64,
    pub longest_request_ns: u64,
    pub connected_ns: u64,
    pub grabbed_ns: u64,
    pub grabs: u32,
    /// The most that its group gets, millionths; 0: it has no cap.
    pub group_cap_ppm: u32,
    pub name: String,
    /// 0: it stands for itself.
    pub group: u32,
    /// What was set for its group; 0: nothing.
    pub group_weight: u32,
    pub group_name: Label,
    /// Who made its reservation: itself, hand, or the name of an origin; empty where it has none.
    pub reservation_origin: Label,
    /// The same of its weight, priority or group, whichever was set last.
    pub settings_origin: Label,
    /// The address from which a client of another machine connected; empty where it is local.
    pub host: String,
    /// Waits by their length ([`WAIT_BOUNDS_NS`]); they wrap around.
    pub waits: [u32; WAITS],
    /// Grabs of [`LONG_GRAB_NS`](xqos_core::LONG_GRAB_NS) and more.
    pub long_grabs: u32,
    /// Q of its group's reservation; 0: that has none.
    pub group_budget_us: u32,
    /// T of it.
    pub group_period_us: u32,
    /// Server time that it is the cause of: without what it did for others, with what window managers did for it.
    pub charged_ns: u64,
}

impl ClientEntry {
    /// The user and the program for which its figures are summed up when it is gone. Empty: nobody knows.
    pub fn program(&self) -> (u32, &str) {
        match (self.name.as_str(), self.host.as_str()) {
            ("", "") => (u32::MAX, ""),
            ("", _) => (u32::MAX, REMOTE),
            (name, _) => (self.uid, name),
        }
    }

    /// As one of a list of departed clients: a sum of one.
    pub fn departed(&self) -> ClientEntry {
        let (uid, name) = self.program();
        let (connected_ns, name) = (self.connected_ns, name.to_owned());
        let mut sum = ClientEntry { uid, name, connected_ns, ..ClientEntry::default() };
        sum.absorb(self);
        sum.client = 1;
        sum
    }

    /// Adds what another one has used and suffered. In a list of departed clients `client` is how many they are.
    pub fn absorb(&mut self, other: &ClientEntry) {
        self.client = self.client.saturating_add(other.client);
        self.server_time_ns = self.server_time_ns.saturating_add(other.server_time_ns);
        self.charged_ns = self.charged_ns.saturating_add(other.charged_ns);
        self.reserved_time_ns = self.reserved_time_ns.saturating_add(other.reserved_time_ns);
        self.requests = self.requests.saturating_add(other.requests);
        self.slices = self.slices.saturating_add(other.slices);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.grabbed_ns = self.grabbed_ns.saturating_add(other.grabbed_ns);
        self.grabs = self.grabs.saturating_add(other.grabs);
        self.long_grabs = self.long_grabs.saturating_add(other.long_grabs);
        self.depletions = self.depletions.saturating_add(other.depletions);
        self.misses = self.misses.saturating_add(other.misses);
        for (sum, count) in self.waits.iter_mut().zip(other.waits) {
            *sum = sum.wrapping_add(count);
        }
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        if other.longest_request_ns > self.longest_request_ns {
            (self.longest_request_ns, self.longest_request) = (other.longest_request_ns, other.longest_request);
        }
    }

    fn write(&self, out: &mut Writer) {
        let start = out.len();
        out.u32(self.client).i32(self.pid).u32(self.uid).i32(self.sync_priority);
        out.u32(self.weight).i32(self.fixed_priority).u32(self.flags).u32(self.budget_us);
        out.u32(self.period_us).u32(self.depletions).u32(self.misses).u32(self.longest_request);
        out.i64(self.budget_left_ns);
        for value in [
            self.deadline_ns,
            self.server_time_ns,
            self.reserved_time_ns,
            self.requests,
            self.slices,
            self.waited_ns,
            self.longest_wait_ns,
            self.longest_request_ns,
            self.connected_ns,
            self.grabbed_ns,
        ] {
            out.u64(value);
        }
        out.u32(self.grabs).u32(self.group_cap_ppm);
        write_name(out, &self.name, start + ENTRY_BYTES_1_0);
        out.u32(self.group).u32(self.group_weight);
        out.raw(self.group_name.bytes()).raw(self.reservation_origin.bytes()).raw(self.settings_origin.bytes());
        let host = &self.host.as_bytes()[..self.host.len().min(HOST_BYTES - 1)];
        out.raw(host).pad_to(start + WAITS_AT);
        for count in self.waits {
            out.u32(count);
        }
        out.u32(self.long_grabs).u32(self.group_budget_us).u32(self.group_period_us).u32(0).u64(self.charged_ns);
    }

    fn read(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        Ok(ClientEntry {
            client: read.u32(0)?,
            pid: read.i32(4)?,
            uid: read.u32(8)?,
            sync_priority: read.i32(12)?,
            weight: read.u32(16)?,
            fixed_priority: read.i32(20)?,
            flags: read.u32(24)?,
            budget_us: read.u32(28)?,
            period_us: read.u32(32)?,
            depletions: read.u32(36)?,
            misses: read.u32(40)?,
            longest_request: read.u32(44)?,
            budget_left_ns: read.i64(48)?,
            deadline_ns: read.u64(56)?,
            server_time_ns: read.u64(64)?,
            reserved_time_ns: read.u64(72)?,
            requests: read.u64(80)?,
            slices: read.u64(88)?,
            waited_ns: read.u64(96)?,
            longest_wait_ns: read.u64(104)?,
            longest_request_ns: read.u64(112)?,
            connected_ns: read.u64(120)?,
            grabbed_ns: read.u64(128)?,
            grabs: read.u32(136)?,
            group_cap_ppm: read.u32(140)?,
            name: read_name(read.slice(144, NAME_BYTES)?),
            ..ClientEntry::read_later(read)
        })
    }

    /// What a server of version 1.0 does not tell.
    fn read_later(read: Reader<'_>) -> Self {
        let label = |at| read.slice(at, NAME_BYTES).map(Label::read).unwrap_or_default();
        ClientEntry {
            group: read.u32(176).unwrap_or(0),
            group_weight: read.u32(180).unwrap_or(0),
            group_name: label(184),
            reservation_origin: label(216),
            settings_origin: label(248),
            host: read.slice(HOST_AT, HOST_BYTES).map(read_name).unwrap_or_default(),
            waits: std::array::from_fn(|class| read.u32(WAITS_AT + 4 * class).unwrap_or(0)),
            long_grabs: read.u32(WAITS_AT + 4 * WAITS).unwrap_or(0),
            group_budget_us: read.u32(364).unwrap_or(0),
            group_period_us: read.u32(368).unwrap_or(0),
            charged_ns: read.u64(376).unwrap_or(0),
            ..ClientEntry::default()
        }
    }
}

/// Reply to ListClients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientList {
    pub now_ns: u64,
    /// Processor time of the server's thread.
    pub server_cpu_ns: u64,
    pub clients: Vec<ClientEntry>,
}

impl ClientList {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(0, sequence, order);
        out.u32(self.clients.len() as u32).u32(ENTRY_BYTES as u32).u64(self.now_ns);
        out.u64(self.server_cpu_ns);
        for client in &self.clients {
            client.write(&mut out);
        }
        finish(out, order)
    }

    /// Entries may be longer than ours when the server is newer, and shorter when it is older.
    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let read = Reader::new(bytes, order);
        let clients = entries(bytes, order, ENTRY_BYTES_1_0)?
            .map(|entry| ClientEntry::read(entry?, order))
            .collect::<Result<_, Short>>()?;
        Ok(ClientList { now_ns: read.u64(16)?, server_cpu_ns: read.u64(24)?, clients })
    }
}

/// One of the longest requests since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongRequest {
    pub ns: u64,
    /// When it ended.
    pub at_ns: u64,
    pub client: u32,
    pub pid: i32,
    /// Major opcode + 65536 x minor opcode.
    pub request: u32,
    pub name: String,
}

/// Reply to ListLongestRequests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongestRequests {
    pub requests: Vec<LongRequest>,
}

impl LongestRequests {
    pub fn encode(&self, sequence: u16, order: Order) -> Vec<u8> {
        let mut out = header(0, sequence, order);
        out.u32(self.requests.len() as u32).u32(LONG_REQUEST_BYTES as u32).pad_to(32);
        for request in &self.requests {
            let start = out.len();
            out.u64(request.ns).u64(request.at_ns).u32(request.client).i32(request.pid);
            out.u32(request.request).u32(0);
            write_name(&mut out, &request.name, start + LONG_REQUEST_BYTES);
        }
        finish(out, order)
    }

    /// Entries may be longer than ours when the server is newer; the rest is skipped.
    pub fn decode(bytes: &[u8], order: Order) -> Result<Self, Short> {
        let requests = entries(bytes, order, LONG_REQUEST_BYTES)?
            .map(|entry| {
                let entry = Reader::new(entry?, order);
                Ok(LongRequest {
                    ns: entry.u64(0)?,
                    at_ns: entry.u64(8)?,
                    client: entry.u32(16)?,
                    pid: entry.i32(20)?,
                    request: entry.u32(24)?,
                    name: read_name(entry.slice(32, NAME_BYTES)?),
                })
            })
            .collect::<Result<_, Short>>()?;
        Ok(LongestRequests { requests })
    }
}

/// The entries of a list: their count at 8, their size at 12, the first at 32.
fn entries(bytes: &[u8], order: Order, least: usize) -> Result<impl Iterator<Item = Result<&[u8], Short>>, Short> {
    let read = Reader::new(bytes, order);
    let (count, size) = (read.u32(8)? as usize, read.u32(12)? as usize);
    if size < least {
        return Err(Short);
    }
    Ok((0..count).map(move |i| {
        let at = i.checked_mul(size).and_then(|offset| offset.checked_add(32)).ok_or(Short)?;
        Reader::new(bytes, order).slice(at, size)
    }))
}

/// As much of a program's name as the server's lists have room for, in whole characters.
pub fn cut(name: &str) -> &str {
    let end = (0..NAME_BYTES.min(name.len() + 1)).rev().find(|&at| name.is_char_boundary(at));
    &name[..end.unwrap_or(0)]
}

/// A name that ends at `end`; one zero is kept, so that a reader in C finds its end.
fn write_name(out: &mut Writer, name: &str, end: usize) {
    out.raw(cut(name).as_bytes()).pad_to(end);
}

fn read_name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
