// SPDX-License-Identifier: MIT
//! Trace files. They consist of self-contained chunks, so that a file stays readable after a crash or a full disk.
//!
//! ```text
//! "xqostrc2" | u32 length | header, JSON
//! "xqch" | u32 length | u32 records | zstd frame with its checksum      once for each chunk
//! ```
//!
//! Numbers are little-endian. Within a chunk, times are stored as differences, so that a record takes only a few bytes
//! even before compression:
//!
//! | byte | record |
//! |---|---|
//! | 1 | flags: bit 0: the value is 0; bits 1, 2: words 2, 3 are 0; bits 3, 4: they are relative to the record's time |
//! | varint | zigzag encoding of the record's time minus the previous record's time |
//! | 1, 1, varint | kind, flags, client + 1 (0 stands for 65536) |
//! | varints | value, word 2 and word 3, each only if it is not 0 |
//!
//! A damaged chunk is skipped and counted; the reader gets a `Lost` record in its place.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use xqos_abi::trace::{Entry, Event, Words};
use xqos_core::Time;

const MAGIC: &[u8; 8] = b"xqostrc2";
const CHUNK_MAGIC: &[u8; 4] = b"xqch";
const CHUNK_RECORDS: usize = 16_384;
/// Maximum size of a record before compression.
const MAX_BYTES: usize = 48;
/// A fast level; higher levels compress records only slightly better.
const ZSTD_LEVEL: i32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of xqos that wrote the trace.
    pub xqos: String,
    /// Host name of the recorded machine; empty in older traces.
    #[serde(default)]
    pub host: String,
    pub display: String,
    pub server_pid: u32,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start, in nanoseconds.
    pub realtime_offset_ns: i64,
    /// `slices` or `requests`.
    pub level: String,
    /// The server's extensions and their major opcodes.
    pub extensions: Vec<(String, u8)>,
    /// Whether the trace contains events of the kernel's scheduler.
    pub kernel: bool,
}

/// Compresses records into a chunk.
pub fn pack(records: &[Words]) -> Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(records.len() * 16);
    let mut before = 0;
    for &words in records {
        write_record(&mut plain, words, before);
        before = words[0];
    }
    let mut packer = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    packer.include_checksum(true)?;
    let packed = packer.compress(&plain)?;
    let mut chunk = CHUNK_MAGIC.to_vec();
    chunk.extend((packed.len() as u32).to_le_bytes());
    chunk.extend((records.len() as u32).to_le_bytes());
    chunk.extend(packed);
    Ok(chunk)
}

pub fn pack_header(header: &Header) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(header)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text);
    Ok(bytes)
}

#[derive(Debug)]
pub struct TraceWriter {
    file: File,
    waiting: Vec<Words>,
    bytes: u64,
    records: u64,
}

impl TraceWriter {
    /// Writes the header.
    pub fn new(mut file: File, header: &Header) -> Result<TraceWriter> {
        let bytes = pack_header(header)?;
        file.write_all(&bytes).context("cannot write the header of the trace file")?;
        Ok(TraceWriter { file, waiting: Vec::new(), bytes: bytes.len() as u64, records: 0 })
    }

    pub fn add(&mut self, words: Words) -> Result<()> {
        self.waiting.push(words);
        if self.waiting.len() >= CHUNK_RECORDS { self.flush() } else { Ok(()) }
    }

    /// Writes the waiting records as a chunk. After an error, the file contains none of them.
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let chunk = pack(&self.waiting)?;
        if let Err(error) = self.file.write_all(&chunk) {
            // Remove the incomplete chunk, so that readers need not skip it.
            let _ = self.file.set_len(self.bytes);
            return Err(error).context("cannot write to the trace file; its earlier records are readable");
        }
        self.bytes += chunk.len() as u64;
        self.records += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of records, including those that wait to be written.
    pub fn records(&self) -> u64 {
        self.records + self.waiting.len() as u64
    }
}

/// A whole trace file in memory, still compressed.
#[derive(Debug)]
pub struct Trace {
    pub header: Header,
    bytes: Vec<u8>,
    first_chunk: usize,
}

impl Trace {
    pub fn open(path: &Path) -> Result<Trace> {
        let bytes = read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Trace::from_bytes(bytes).with_context(|| path.display().to_string())
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<Trace> {
        if !bytes.starts_with(MAGIC) {
            bail!("not a trace of xqos: record one with `xqos trace record`");
        }
        let length = u32_at(&bytes, MAGIC.len()).unwrap_or(u32::MAX) as usize;
        let start = MAGIC.len() + 4;
        let end = start.checked_add(length).filter(|&end| end <= bytes.len());
        let Some(end) = end else { bail!("the trace is truncated within its header: record a new one") };
        let header = serde_json::from_slice(&bytes[start..end]).context("the header of the trace is damaged")?;
        Ok(Trace { header, bytes, first_chunk: end })
    }

    /// All records. Damaged chunks appear as `Lost` records.
    pub fn records(&self) -> impl Iterator<Item = Words> + '_ {
        let (bytes, mut at, mut last) = (self.bytes.as_slice(), self.first_chunk, Time(0));
        let chunks = std::iter::from_fn(move || {
            let rest = bytes.get(at + 1..)?;
            let Some((records, end)) = unpack(bytes, at) else {
                let announced = u32_at(bytes, at + 8).map_or(1, u64::from).min(CHUNK_RECORDS as u64);
                let next = rest.windows(4).position(|four| four == CHUNK_MAGIC);
                at = next.map_or(bytes.len(), |offset| at + 1 + offset);
                let what = Entry::Lost { records: announced.max(1) };
                return Some(vec![Event { at: last, what }.encode()]);
            };
            at = end;
            last = records.last().map_or(last, |words| Time(words[0]));
            Some(records)
        });
        chunks.flatten()
    }

    /// All events. Records of unknown kinds are skipped.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.records().filter_map(Event::decode)
    }
}

/// Reads a trace, or the first bytes of any other file, which may be large or endless.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let (mut file, mut bytes) = (File::open(path)?, Vec::new());
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The records of the chunk at `at`, and the chunk's end. `None` if the chunk is damaged.
fn unpack(bytes: &[u8], at: usize) -> Option<(Vec<Words>, usize)> {
    if bytes.get(at..at + 4)? != CHUNK_MAGIC {
        return None;
    }
    let (length, count) = (u32_at(bytes, at + 4)? as usize, u32_at(bytes, at + 8)? as usize);
    let end = (at + 12).checked_add(length)?;
    let packed = bytes.get(at + 12..end)?;
    if count > CHUNK_RECORDS {
        return None;
    }
    let plain = zstd::bulk::decompress(packed, count * MAX_BYTES).ok()?;
    let mut left = plain.as_slice();
    let mut before = 0;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        let words = read_record(&mut left, before)?;
        before = words[0];
        records.push(words);
    }
    left.is_empty().then_some((records, end))
}

fn write_record(out: &mut Vec<u8>, words: Words, before: u64) {
    let [at, one, two, three] = words;
    let value = one >> 32;
    let mut bits = u8::from(value == 0) | (u8::from(two == 0) << 1) | (u8::from(three == 0) << 2);
    let start = out.len();
    out.push(0);
    write_varint(out, zigzag(at.wrapping_sub(before) as i64));
    out.extend([one as u8, (one >> 8) as u8]);
    write_varint(out, u64::from(((one >> 16) as u16).wrapping_add(1)));
    if value != 0 {
        write_varint(out, value);
    }
    for (word, bit) in [(two, 3), (three, 4)] {
        if word == 0 {
            continue;
        }
        let from_at = zigzag(word.wrapping_sub(at) as i64);
        if from_at < word {
            bits |= 1 << bit;
        }
        write_varint(out, from_at.min(word));
    }
    out[start] = bits;
}

fn read_record(left: &mut &[u8], before: u64) -> Option<Words> {
    let bits = take(left)?;
    let at = before.wrapping_add(unzigzag(read_varint(left)?) as u64);
    let (kind, flags) = (take(left)?, take(left)?);
    let client = (read_varint(left)? as u16).wrapping_sub(1);
    let value = if bits & 1 != 0 { 0 } else { read_varint(left)? };
    let mut word = |zero: u8, relative: u8| {
        if bits & zero != 0 {
            return Some(0);
        }
        let written = read_varint(left)?;
        Some(if bits & relative != 0 { at.wrapping_add(unzigzag(written) as u64) } else { written })
    };
    let (two, three) = (word(2, 8)?, word(4, 16)?);
    let one = u64::from(kind) | (u64::from(flags) << 8) | (u64::from(client) << 16) | (value << 32);
    Some([at, one, two, three])
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take(left: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = left.split_first()?;
    *left = rest;
    Some(first)
}

fn read_varint(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(left)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::{ClientId, Fact, Service};

    const SECOND_NS: u64 = 1_000_000_000;

    fn header() -> Header {
        Header { display: ":7".to_owned(), level: "slices".to_owned(), ..Header::default() }
    }

    fn some_records(count: u64) -> Vec<Words> {
        let record = |n: u64| {
            let service = Service::new(ClientId((n % 7) as u16), Time(SECOND_NS + n * 999), Time(SECOND_NS + n * 1000));
            let (requests, still_ready) = (n as u32, n % 2 == 0);
            let served = Fact::Served(Service { requests, last_request: 73, still_ready, ..service });
            Event { at: service.end, what: Entry::Fact(served) }.encode()
        };
        (0..count).map(record).collect()
    }

    fn file_of(chunks: &[Vec<Words>]) -> Vec<u8> {
        let mut bytes = pack_header(&header()).unwrap();
        for records in chunks {
            bytes.extend(pack(records).unwrap());
        }
        bytes
    }

    #[test]
    fn any_record_survives_a_round_trip() {
        let odd = [0, 1, 127, 128, u64::MAX, 1 << 63, 0xffff << 16, u64::MAX - 1, 0x0123_4567_89ab_cdef];
        let mut records = some_records(1000);
        for &a in &odd {
            for &b in &odd {
                records.push([a, b, b, a]);
                records.push([b, a, a ^ b, !b]);
            }
        }
        let trace = Trace::from_bytes(file_of(&[records.clone()])).unwrap();
        assert_eq!(trace.header, header());
        assert_eq!(trace.records().collect::<Vec<_>>(), records);
    }

    #[test]
    fn a_truncated_file_yields_its_whole_chunks() {
        let chunks = [some_records(100), some_records(200), some_records(300)];
        let whole = file_of(&chunks);
        for length in 0..whole.len() {
            let Ok(trace) = Trace::from_bytes(whole[..length].to_vec()) else { continue };
            let records = trace.records().count();
            assert!([0, 1, 100, 101, 300, 301].contains(&records), "{records} records of {length} bytes");
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_chunk_and_is_reported() {
        let chunks = [some_records(100), some_records(200), some_records(300)];
        let whole = file_of(&chunks);
        let start = pack_header(&header()).unwrap().len();
        for bit in (start * 8..whole.len() * 8).step_by(5) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let trace = Trace::from_bytes(bytes).unwrap();
            let (mut intact, mut lost) = (0, 0);
            for event in trace.events() {
                match event.what {
                    Entry::Lost { .. } => lost += 1,
                    _ => intact += 1,
                }
            }
            assert!(lost >= 1 && (300..=500).contains(&intact) || intact == 600, "bit {bit}: {intact} intact, {lost}");
        }
    }

    #[test]
    fn files_that_are_no_traces_are_refused() {
        for bytes in [&b""[..], b"xqos", b"xqostrc2", b"xqostrc2\xff\xff\xff\xff", b"xqostrc2\x02\0\0\0{]"] {
            assert!(Trace::from_bytes(bytes.to_vec()).is_err(), "{bytes:?}");
        }
        assert!(Trace::open(Path::new("/dev/zero")).is_err(), "it is endless");
    }

    #[test]
    fn a_record_takes_few_bytes() {
        let records = some_records(10_000);
        let packed = pack(&records).unwrap().len();
        assert!(packed < records.len() * 8, "{packed} bytes");
    }
}
