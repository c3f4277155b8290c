// SPDX-License-Identifier: MIT
//! Finding a boundary of messages again, after bytes are missing or where a capture begins in the middle.
//!
//! From a place that is one, lengths lead from message to message, each plausible; from any other they soon do not. A
//! place is taken where [`CHAIN`] messages follow one another, or where they end with the bytes seen so far: nearly
//! always the end of a packet, and of what the sender had to say. Beginnings of packets are believed sooner.

use super::bytes::ByteOrder;

/// Messages in a row that are no accident: each excludes at least nine of ten places.
const CHAIN: usize = 8;
/// Messages that are enough if the last one ends with a packet.
const CHAIN_TO_END: usize = 3;
/// Bytes looked at; a connection that is not understood costs no more memory.
const MAX_BYTES: usize = 16 << 10;
/// Packets in these bytes; a sender of single bytes costs no more memory either.
const MAX_MARKS: usize = 256;
/// Places that need more bytes to tell; more of them are in nothing but rubbish.
const MAX_UNDECIDED: usize = 64;

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A message of this length may begin here.
    Fits(u64),
    /// More bytes are needed to say.
    Short,
    No,
}

/// The beginning of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub offset: u64,
    pub at_ns: u64,
    pub acknowledged: u64,
}

/// Bytes in which a boundary is looked for.
#[derive(Debug)]
pub struct Search {
    /// Of the first byte that is kept.
    start: u64,
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    /// Whether messages begin at multiples of four, which holds if the stream's beginning was seen.
    is_aligned: bool,
    scans: [Scan; 2],
}

/// How far it was looked, with one byte order.
#[derive(Debug, Default)]
struct Scan {
    tried: usize,
    undecided: Vec<usize>,
}

enum Verdict {
    Accepted,
    Undecided,
    Rejected,
}

impl Search {
    pub fn new(start: u64, is_aligned: bool) -> Search {
        Search { start, bytes: Vec::new(), marks: Vec::new(), is_aligned, scans: Default::default() }
    }

    /// Where it goes on.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn push(&mut self, mark: Mark, bytes: &[u8]) {
        // Of a long piece its end is enough.
        let skipped = bytes.len().saturating_sub(MAX_BYTES / 2);
        let (offset, bytes) = (mark.offset + skipped as u64, &bytes[skipped..]);
        if offset != self.end() {
            // Nothing leads over bytes that are missing.
            self.forget(self.bytes.len());
            self.start = offset;
        } else if self.bytes.len() + bytes.len() > MAX_BYTES {
            self.forget(self.bytes.len().saturating_sub(MAX_BYTES / 2));
        }
        if let Some(mark) = self.marks.get(MAX_MARKS) {
            self.forget((mark.offset - self.start) as usize);
        }
        self.marks.push(Mark { offset, ..mark });
        self.bytes.extend(bytes);
    }

    /// The first place from which messages follow, in a byte order. `missing`: bytes that were not captured behind these.
    pub fn find(&mut self, order: ByteOrder, missing: u64, look: impl Fn(&[u8]) -> Look) -> Option<u64> {
        let mut scan = std::mem::take(&mut self.scans[order as usize]);
        let found = self.scan(&mut scan, missing, &look);
        self.scans[order as usize] = scan;
        Some(self.start + found? as u64)
    }

    fn scan(&self, scan: &mut Scan, missing: u64, look: &impl Fn(&[u8]) -> Look) -> Option<usize> {
        let again = std::mem::take(&mut scan.undecided);
        let new = (scan.tried..self.bytes.len()).filter(|&place| self.is_candidate(place));
        for place in again.into_iter().chain(new) {
            match self.judge(place, missing, look) {
                Verdict::Accepted => return Some(place),
                Verdict::Undecided if scan.undecided.len() < MAX_UNDECIDED => scan.undecided.push(place),
                Verdict::Undecided | Verdict::Rejected => {}
            }
        }
        scan.tried = self.bytes.len();
        None
    }

    fn is_candidate(&self, place: usize) -> bool {
        !self.is_aligned || (self.start + place as u64) % 4 == 0
    }

    fn judge(&self, start: usize, missing: u64, look: &impl Fn(&[u8]) -> Look) -> Verdict {
        let mut place = start;
        for count in 0..CHAIN {
            let left = (self.bytes.len() - place) as u64;
            let length = if left == 0 { None } else { Some(look(&self.bytes[place..])) };
            match length {
                Some(Look::Fits(length)) if length <= left => place += length as usize,
                Some(Look::No) => return Verdict::Rejected,
                // The last one ends in what was cut off.
                Some(Look::Fits(length)) if missing > 0 && length <= left + missing => {
                    return self.trust(start, count + 1);
                }
                None => return self.trust(start, count),
                Some(_) if missing > 0 && self.is_mark(start) => return self.trust(start, count),
                Some(_) => return Verdict::Undecided,
            }
        }
        Verdict::Accepted
    }

    /// Of messages that end with a packet.
    fn trust(&self, start: usize, messages: usize) -> Verdict {
        let is_enough = messages >= CHAIN_TO_END || messages > 0 && self.is_mark(start);
        if is_enough { Verdict::Accepted } else { Verdict::Undecided }
    }

    fn is_mark(&self, place: usize) -> bool {
        let offset = self.start + place as u64;
        self.marks.binary_search_by_key(&offset, |mark| mark.offset).is_ok()
    }

    fn forget(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.start += bytes as u64;
        // The bytes may now begin within a packet.
        let gone = self.marks.partition_point(|mark| mark.offset <= self.start).saturating_sub(1);
        self.marks.drain(..if self.bytes.is_empty() { self.marks.len() } else { gone });
        for scan in &mut self.scans {
            scan.tried = scan.tried.saturating_sub(bytes);
            scan.undecided = scan.undecided.iter().filter_map(|place| place.checked_sub(bytes)).collect();
        }
    }

    /// The bytes from a place on, packet by packet.
    pub fn pieces(&self, from: u64) -> impl Iterator<Item = (Mark, &[u8])> {
        self.marks.iter().enumerate().filter_map(move |(index, mark)| {
            let next = self.marks.get(index + 1).map_or(self.end(), |next| next.offset);
            let begin = mark.offset.max(from).max(self.start);
            let range = (begin - self.start) as usize..(next.max(begin) - self.start) as usize;
            let bytes = self.bytes.get(range).filter(|bytes| !bytes.is_empty())?;
            Some((Mark { offset: begin, ..*mark }, bytes))
        })
    }
}
