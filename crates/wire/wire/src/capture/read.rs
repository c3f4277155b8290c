// SPDX-License-Identifier: MIT
//! Reads capture files packet by packet.
//!
//! A truncated or damaged file is not an error: all packets before the damage are read, and [`CaptureReader::notes`]
//! says what is missing.

use super::times::{Times, is_nanoseconds};
use super::write::{CHECKPOINT, PROGRAM};
use super::{KeptRecord, Link, Record};
use pcap_parser::pcapng::{Block, OptionCode, PcapNGOption, UnknownBlock};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{IDB_MAGIC, PcapBlockOwned, PcapError, create_reader};
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Room for a few hundred packets. A larger buffer is not faster.
const BUFFER_BYTES: usize = 1 << 18;
/// Longest block that is read. The kernel's largest packets are 512 KiB.
const MAX_BLOCK_BYTES: usize = 16 << 20;
/// Enough bytes to detect the format. A pipe can deliver fewer at first.
const BEGINNING_BYTES: u64 = 4096;
/// Maximum number of interfaces. Only a hostile file has more.
const MAX_INTERFACES: usize = 65_536;
/// Type of the Packet Block, which the library does not decode. The Enhanced Packet Block has replaced it.
const OBSOLETE_PACKET: u32 = 2;

/// Maximum length of a program name. Only a hostile file has longer ones.
const MAX_NAME_LETTERS: usize = 64;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("this is neither a pcap nor a pcapng file")]
    NotACapture,
}

/// Decode numbers of two and four bytes.
type Order = (fn([u8; 2]) -> u16, fn([u8; 4]) -> u32);

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    /// Ticks per second.
    resolution: u64,
    offset_s: i64,
}

impl Interface {
    fn at_ns(&self, ticks: u64) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let ns = match SECOND % self.resolution {
            0 => ticks.wrapping_mul(SECOND / self.resolution),
            _ => (u128::from(ticks) * u128::from(SECOND) / u128::from(self.resolution)) as u64,
        };
        ns.wrapping_add_signed(self.offset_s.wrapping_mul(SECOND as i64))
    }

    /// The time of a pcapng packet. Also detects a wrong unit.
    fn time(&mut self, high: u32, low: u32, times: &mut Times) -> u64 {
        let ticks = (u64::from(high) << 32) | u64::from(low);
        if is_nanoseconds(ticks, self.resolution) {
            (self.resolution, times.are_nanoseconds) = (1_000_000_000, true);
        }
        self.at_ns(ticks)
    }
}

pub struct CaptureReader {
    source: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// The most recently returned packet.
    current: KeptRecord,
    times: Times,
    packets: u64,
    left_out: u64,
    note: Option<String>,
    is_over: bool,
}

impl fmt::Debug for CaptureReader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CaptureReader").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl CaptureReader {
    pub fn open(path: &Path) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(File::open(path)?)
    }

    /// Reads from any source, including pipes.
    pub fn new(mut input: impl Read + Send + 'static) -> Result<CaptureReader, CaptureError> {
        let mut beginning = Vec::new();
        (&mut input).take(BEGINNING_BYTES).read_to_end(&mut beginning)?;
        let times = Times::of(&beginning);
        let whole = Cursor::new(beginning).chain(input);
        let source = create_reader(BUFFER_BYTES, whole).map_err(|_| CaptureError::NotACapture)?;
        Ok(CaptureReader {
            source,
            interfaces: Vec::new(),
            current: KeptRecord::default(),
            times,
            packets: 0,
            left_out: 0,
            note: None,
            is_over: false,
        })
    }

    /// The next packet, or `None` at the end. [`Self::notes`] then says whether the file was complete.
    #[allow(clippy::should_implement_trait, reason = "the record borrows from the reader")]
    pub fn next(&mut self) -> Option<Record<'_>> {
        while !self.is_over {
            let (block_bytes, is_packet) = match self.source.next() {
                Ok((block_bytes, block)) => {
                    let packet = take_block(&block, &mut self.interfaces, &mut self.times);
                    self.left_out += u64::from(packet.is_none() && has_packet(&block));
                    if let Some((record, has_time)) = &packet {
                        self.times.take(record.at_ns, *has_time);
                        self.current.set(record);
                        self.current.program = record.program.and_then(shown);
                    }
                    (block_bytes, packet.is_some())
                }
                Err(error) => {
                    let problem = problem(&error);
                    self.handle(problem);
                    continue;
                }
            };
            self.source.consume(block_bytes);
            if is_packet {
                self.packets += 1;
                return Some(self.current.record());
            }
        }
        None
    }

    /// Messages about wrong timestamps, omitted packets, and a truncated or damaged file.
    pub fn notes(&self) -> Vec<String> {
        let why = "packets were left out: the file does not describe their interface, or their block is damaged";
        let left_out = (self.left_out > 0).then(|| format!("{} {why}", self.left_out));
        self.times.notes().into_iter().chain(left_out).chain(self.note.clone()).collect()
    }

    fn handle(&mut self, problem: ReadProblem) {
        match problem {
            ReadProblem::NeedsMore => self.refill(),
            ReadProblem::NeedsRoom if self.source.data().len() < MAX_BLOCK_BYTES => {
                // Grow to the maximum: a block that needs more has a wrong length.
                self.source.grow(MAX_BLOCK_BYTES + BUFFER_BYTES);
                self.refill();
            }
            ReadProblem::NeedsRoom => self.stop("has an impossibly long block"),
            ReadProblem::End => self.is_over = true,
            ReadProblem::Broken(what) => self.stop(what),
        }
    }

    fn refill(&mut self) {
        if self.source.refill().is_err() {
            self.stop(UNREADABLE);
        }
    }

    fn stop(&mut self, what: &str) {
        self.is_over = true;
        self.note = Some(format!("the capture {what} after {} packets; only those were read", self.packets));
    }
}

/// Why the next block cannot be read yet.
enum ReadProblem {
    NeedsMore,
    NeedsRoom,
    End,
    Broken(&'static str),
}

const UNREADABLE: &str = "cannot be read any further";

fn problem(error: &PcapError<&[u8]>) -> ReadProblem {
    match error {
        PcapError::Incomplete(_) => ReadProblem::NeedsMore,
        PcapError::BufferTooSmall => ReadProblem::NeedsRoom,
        PcapError::Eof => ReadProblem::End,
        PcapError::UnexpectedEof => ReadProblem::Broken("ends within a packet"),
        PcapError::ReadError => ReadProblem::Broken(UNREADABLE),
        _ => ReadProblem::Broken("is damaged"),
    }
}

/// Decodes ticks per second: a power of ten, or a power of two (unknown to the library) if the highest bit is set.
fn resolution(option: u8) -> u64 {
    let (base, power) = if option & 0x80 == 0 { (10_u64, option) } else { (2, option & 0x7f) };
    base.checked_pow(power.into()).unwrap_or(1_000_000)
}

/// The byte order of a Packet Block, or `None` for other blocks.
fn obsolete_order(block: &UnknownBlock<'_>) -> Option<Order> {
    // The library always reads the type as little-endian.
    match block.block_type {
        OBSOLETE_PACKET => Some((u16::from_le_bytes, u32::from_le_bytes)),
        kind if kind.swap_bytes() == OBSOLETE_PACKET => Some((u16::from_be_bytes, u32::from_be_bytes)),
        _ => None,
    }
}

fn has_packet(block: &PcapBlockOwned<'_>) -> bool {
    match block {
        PcapBlockOwned::LegacyHeader(_) => false,
        PcapBlockOwned::Legacy(_) => true,
        PcapBlockOwned::NG(Block::Unknown(block)) => obsolete_order(block).is_some(),
        PcapBlockOwned::NG(block) => block.is_data_block(),
    }
}

/// The packet in a block, and whether it has a time. `None` for blocks that only describe later packets.
fn take_block<'b>(
    block: &'b PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    times: &mut Times,
) -> Option<(Record<'b>, bool)> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let is_nanoseconds = header.is_nanosecond_precision() || times.are_nanoseconds;
            let resolution = if is_nanoseconds { 1_000_000_000 } else { 1_000_000 };
            // The upper half of the field says whether a checksum follows each packet.
            let link = Link(header.network.0 & 0xffff);
            interfaces.push(Interface { link, resolution, offset_s: i64::from(header.thiszone) });
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = interfaces.first()?;
            let ticks = u64::from(packet.ts_sec) * interface.resolution + u64::from(packet.ts_usec);
            Some((Record::new(interface.at_ns(ticks), interface.link, packet.origlen, packet.data), true))
        }
        PcapBlockOwned::NG(block) => take_pcapng_block(block, interfaces, times),
    }
}

/// The rest of the first packet comment with this prefix.
fn comment<'a>(options: &'a [PcapNGOption<'_>], prefix: &str) -> Option<&'a str> {
    let mut comments = options.iter().filter(|option| option.code == OptionCode::Comment);
    comments.find_map(|option| option.as_str().ok()?.strip_prefix(prefix))
}

/// A program name that is safe to print.
fn shown(name: &str) -> Option<Box<str>> {
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_LETTERS).collect();
    (!name.is_empty()).then(|| name.into())
}

fn take_pcapng_block<'b>(
    block: &'b Block<'_>,
    interfaces: &mut Vec<Interface>,
    times: &mut Times,
) -> Option<(Record<'b>, bool)> {
    // Cut to the stated length: the library includes padding.
    let cut = |data: &'b [u8], length: u32| &data[..data.len().min(length as usize)];
    match block {
        Block::SectionHeader(_) => interfaces.clear(),
        Block::InterfaceDescription(description) if interfaces.len() < MAX_INTERFACES => {
            let is_foreign = description.block_type != IDB_MAGIC;
            let offset_s = description.if_tsoffset;
            interfaces.push(Interface {
                link: description.linktype,
                resolution: resolution(description.if_tsresol),
                // The library always reads this number as little-endian.
                offset_s: if is_foreign { offset_s.swap_bytes() } else { offset_s },
            });
        }
        Block::EnhancedPacket(packet) => {
            let interface = interfaces.get_mut(packet.if_id as usize)?;
            let at_ns = interface.time(packet.ts_high, packet.ts_low, times);
            let record = Record::new(at_ns, interface.link, packet.origlen, cut(packet.data, packet.caplen));
            let [program, checkpoint] = [PROGRAM, CHECKPOINT].map(|prefix| comment(&packet.options, prefix));
            return Some((Record { program, checkpoint, ..record }, true));
        }
        // A simple packet block has no timestamp.
        Block::SimplePacket(packet) => {
            let (link, length) = (interfaces.first()?.link, packet.origlen);
            return Some((Record::new(times.last_ns, link, length, cut(packet.data, length)), false));
        }
        Block::Unknown(block) => {
            let (two, four) = obsolete_order(block)?;
            // Interface and number of dropped packets, time, captured and original length, packet.
            let (fields, data) = block.data.split_first_chunk::<20>()?;
            let word = |at: usize| four([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
            let interface = interfaces.get_mut(usize::from(two([fields[0], fields[1]])))?;
            let at_ns = interface.time(word(4), word(8), times);
            return Some((Record::new(at_ns, interface.link, word(16), cut(data, word(12))), true));
        }
        _ => {}
    }
    None
}
