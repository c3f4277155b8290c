// SPDX-License-Identifier: MIT
//! Searches for a message boundary, after missing bytes or if a capture starts midway.
//!
//! From a true boundary, lengths lead from one plausible message to the next; from any other offset they soon fail. An
//! offset is accepted if a chain of [`CHAIN`] messages starts there. If the chain ends with a packet, fewer suffice:
//! [`CHAIN_TO_END`], or one if the offset is also the start of a packet.

use crate::observe::Piece;
use xqos_x11::ByteOrder;
use xqos_x11::length::Length;

/// Length of a chain that is no coincidence: each message rules out at least nine of ten wrong offsets.
const CHAIN: usize = 8;
/// Sufficient length of a chain whose last message ends with a packet.
const CHAIN_TO_END: usize = 3;
/// Maximum bytes to search, which bounds memory.
const MAX_BYTES: usize = 16 << 10;
/// Maximum number of packets in these bytes, which also bounds memory for single-byte packets.
const MAX_PACKETS: usize = 256;
/// Maximum number of undecided offsets, which need more bytes. Only random data has more.
const MAX_UNDECIDED: usize = 64;

#[derive(Debug)]
pub struct Search {
    /// Stream offset of the first byte kept.
    start: u64,
    bytes: Vec<u8>,
    /// The packets, without their bytes.
    packet_starts: Vec<Piece<'static>>,
    /// Messages start at offsets that are multiples of four. True if the start of the stream was captured.
    is_aligned: bool,
    scans: [Scan; 2],
}

/// Progress of the search with one byte order.
#[derive(Debug, Default)]
struct Scan {
    tried: usize,
    undecided: Vec<usize>,
}

enum Acceptance {
    Accepted,
    Undecided,
    Rejected,
}

impl Search {
    pub fn new(start: u64, is_aligned: bool) -> Search {
        Search { start, bytes: Vec::new(), packet_starts: Vec::new(), is_aligned, scans: Default::default() }
    }

    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn push(&mut self, piece: &Piece<'_>) {
        // Search only the end of a long piece.
        let skipped = piece.bytes.len().saturating_sub(MAX_BYTES / 2);
        let (offset, bytes) = (piece.offset + skipped as u64, &piece.bytes[skipped..]);
        if offset != self.end() {
            // No chain crosses missing bytes.
            self.forget(self.bytes.len());
            self.start = offset;
        } else if self.bytes.len() + bytes.len() > MAX_BYTES {
            self.forget(self.bytes.len().saturating_sub(MAX_BYTES / 2));
        }
        if let Some(packet) = self.packet_starts.get(MAX_PACKETS) {
            self.forget((packet.offset - self.start) as usize);
        }
        let Piece { direction, at_ns, acknowledged, .. } = *piece;
        self.packet_starts.push(Piece { direction, at_ns, offset, acknowledged, bytes: &[], missing: 0 });
        self.bytes.extend(bytes);
    }

    /// Finds the first offset where messages start, in one byte order. The next `missing` bytes were not captured.
    /// `check` takes the bytes from a possible boundary, and returns the length of the message that would start there.
    pub fn find(&mut self, order: ByteOrder, missing: u64, check: impl Fn(&[u8]) -> Length) -> Option<u64> {
        let mut scan = std::mem::take(&mut self.scans[order as usize]);
        let found = self.scan(&mut scan, missing, &check);
        self.scans[order as usize] = scan;
        Some(self.start + found? as u64)
    }

    fn scan(&self, scan: &mut Scan, missing: u64, check: &impl Fn(&[u8]) -> Length) -> Option<usize> {
        let again = std::mem::take(&mut scan.undecided);
        let new = (scan.tried..self.bytes.len()).filter(|&place| self.is_candidate(place));
        for place in again.into_iter().chain(new) {
            match self.judge(place, missing, check) {
                Acceptance::Accepted => return Some(place),
                Acceptance::Undecided if scan.undecided.len() < MAX_UNDECIDED => scan.undecided.push(place),
                Acceptance::Undecided | Acceptance::Rejected => {}
            }
        }
        scan.tried = self.bytes.len();
        None
    }

    fn is_candidate(&self, place: usize) -> bool {
        !self.is_aligned || (self.start + place as u64) % 4 == 0
    }

    fn judge(&self, start: usize, missing: u64, check: &impl Fn(&[u8]) -> Length) -> Acceptance {
        let mut place = start;
        for count in 0..CHAIN {
            let left = (self.bytes.len() - place) as u64;
            let length = if left == 0 { None } else { Some(check(&self.bytes[place..])) };
            match length {
                Some(Length::Known(length)) if length <= left => place += length as usize,
                Some(Length::Impossible) => return Acceptance::Rejected,
                // The last message ends within the missing bytes.
                Some(Length::Known(length)) if missing > 0 && length <= left + missing => {
                    return self.trust(start, count + 1);
                }
                None => return self.trust(start, count),
                Some(_) if missing > 0 && self.is_packet_start(start) => return self.trust(start, count),
                Some(_) => return Acceptance::Undecided,
            }
        }
        Acceptance::Accepted
    }

    /// Decides on a chain of messages that ends with a packet.
    fn trust(&self, start: usize, messages: usize) -> Acceptance {
        let is_enough = messages >= CHAIN_TO_END || messages > 0 && self.is_packet_start(start);
        if is_enough { Acceptance::Accepted } else { Acceptance::Undecided }
    }

    fn is_packet_start(&self, place: usize) -> bool {
        let offset = self.start + place as u64;
        self.packet_starts.binary_search_by_key(&offset, |packet| packet.offset).is_ok()
    }

    fn forget(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.start += bytes as u64;
        // The bytes may now start inside a packet.
        let gone = self.packet_starts.partition_point(|packet| packet.offset <= self.start).saturating_sub(1);
        self.packet_starts.drain(..if self.bytes.is_empty() { self.packet_starts.len() } else { gone });
        for scan in &mut self.scans {
            scan.tried = scan.tried.saturating_sub(bytes);
            scan.undecided = scan.undecided.iter().filter_map(|place| place.checked_sub(bytes)).collect();
        }
    }

    /// The bytes from an offset on, packet by packet.
    pub fn pieces(&self, from: u64) -> impl Iterator<Item = Piece<'_>> {
        self.packet_starts.iter().enumerate().filter_map(move |(index, packet)| {
            let next = self.packet_starts.get(index + 1).map_or(self.end(), |next| next.offset);
            let begin = packet.offset.max(from).max(self.start);
            let range = (begin - self.start) as usize..(next.max(begin) - self.start) as usize;
            let bytes = self.bytes.get(range).filter(|bytes| !bytes.is_empty())?;
            Some(Piece { offset: begin, bytes, ..*packet })
        })
    }
}
