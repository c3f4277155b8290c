// SPDX-License-Identifier: MIT
//! Reading of capture files, packet by packet.
//!
//! A file that ends within a packet, or is damaged further on, is no error: what stands before that is read, and
//! [`Reader::notes`] says in a sentence what is missing.

use super::times::{Times, is_nanoseconds};
use super::write::PROGRAM;
use super::{Link, Record};
use pcap_parser::pcapng::{Block, OptionCode, PcapNGOption};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{IDB_MAGIC, PcapBlockOwned, PcapError, create_reader};
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// Some hundred packets at once; more gains nothing.
const BUFFER_BYTES: usize = 1 << 18;
/// The longest block that is still read. The kernel's largest packets are 512 KiB.
const MAX_BLOCK_BYTES: usize = 16 << 20;
/// Enough to tell one format from the other; a pipe may deliver less at first.
const BEGINNING_BYTES: u64 = 4096;
/// Hostile files could list interfaces for ever.
const MAX_INTERFACES: usize = 65_536;

/// Of a program; one that is longer is a hostile one.
const MAX_NAME_LETTERS: usize = 64;

const PCAP_HEADER: usize = 16;
/// Kuznetzov's variant has an interface and a protocol in it.
const PCAP_HEADER_MODIFIED: usize = 24;
const ENHANCED_HEADER: usize = 28;
const SIMPLE_HEADER: usize = 12;

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("this is neither a pcap nor a pcapng file")]
    NotACapture,
}

/// How an interface of a file counts time.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    /// Ticks of a second.
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
}

/// Where in the buffer a packet lies.
struct Place {
    at_ns: u64,
    has_time: bool,
    link: Link,
    length: u32,
    header: usize,
    captured: usize,
    program: Option<String>,
}

/// A capture that is being read.
pub struct Reader {
    source: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    pcap_header: usize,
    /// Length of the block that was given out last and is still in the buffer.
    given: usize,
    program: Option<String>,
    times: Times,
    packets: u64,
    note: Option<String>,
    is_over: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reader").field("packets", &self.packets).field("note", &self.note).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Reader, CaptureError> {
        Reader::new(File::open(path)?)
    }

    /// Reads from anything, a pipe too.
    pub fn new(mut input: impl Read + Send + 'static) -> Result<Reader, CaptureError> {
        let mut beginning = Vec::new();
        (&mut input).take(BEGINNING_BYTES).read_to_end(&mut beginning)?;
        let times = Times::of(&beginning);
        let whole = Cursor::new(beginning).chain(input);
        let source = create_reader(BUFFER_BYTES, whole).map_err(|_| CaptureError::NotACapture)?;
        Ok(Reader {
            source,
            interfaces: Vec::new(),
            pcap_header: PCAP_HEADER,
            given: 0,
            program: None,
            times,
            packets: 0,
            note: None,
            is_over: false,
        })
    }

    /// The next packet, or nothing at the end, of which [`Self::notes`] may know more.
    #[allow(clippy::should_implement_trait, reason = "what is given borrows from the buffer")]
    pub fn next(&mut self) -> Option<Record<'_>> {
        let place = self.find()?;
        self.program = place.program;
        self.packets += 1;
        self.times.take(place.at_ns, place.has_time);
        let data = self.source.data();
        let bytes = data.get(place.header..place.header + place.captured).unwrap_or_default();
        let program = self.program.as_deref();
        Some(Record { at_ns: place.at_ns, link: place.link, length: place.length, bytes, program })
    }

    /// What is wrong with the file's times and with its end, in sentences.
    pub fn notes(&self) -> Vec<String> {
        self.times.notes().into_iter().chain(self.note.clone()).collect()
    }

    fn find(&mut self) -> Option<Place> {
        if self.given > 0 {
            self.source.consume(std::mem::take(&mut self.given));
        }
        while !self.is_over {
            let block = match self.source.next() {
                Ok((length, block)) => {
                    Ok((length, take_block(&block, &mut self.interfaces, &mut self.pcap_header, &mut self.times)))
                }
                Err(error) => Err(trouble(&error)),
            };
            match block {
                Ok((length, Some(place))) => {
                    self.given = length;
                    return Some(place);
                }
                Ok((length, None)) => self.source.consume(length),
                Err(trouble) => self.overcome(trouble),
            }
        }
        None
    }

    fn overcome(&mut self, trouble: Trouble) {
        let buffer_bytes = self.source.data().len();
        match trouble {
            Trouble::NeedsMore => self.refill(),
            Trouble::NeedsRoom if buffer_bytes < MAX_BLOCK_BYTES => {
                // The whole block is a few times what is there at most, or the length is a lie.
                self.source.grow(MAX_BLOCK_BYTES + BUFFER_BYTES);
                self.refill();
            }
            Trouble::NeedsRoom => self.stop("has a block too long to be true"),
            Trouble::End => self.is_over = true,
            Trouble::Cut => self.stop("ends within a packet"),
            Trouble::Damaged => self.stop("is damaged"),
            Trouble::Unreadable => self.stop("cannot be read on"),
        }
    }

    fn refill(&mut self) {
        if self.source.refill().is_err() {
            self.stop("cannot be read on");
        }
    }

    fn stop(&mut self, what: &str) {
        self.is_over = true;
        self.note = Some(format!("the capture {what} after {} packets; those were read", self.packets));
    }
}

/// What keeps the next block from being read.
enum Trouble {
    NeedsMore,
    NeedsRoom,
    End,
    Cut,
    Damaged,
    Unreadable,
}

fn trouble(error: &PcapError<&[u8]>) -> Trouble {
    match error {
        PcapError::Incomplete(_) => Trouble::NeedsMore,
        PcapError::BufferTooSmall => Trouble::NeedsRoom,
        PcapError::Eof => Trouble::End,
        PcapError::UnexpectedEof => Trouble::Cut,
        PcapError::ReadError => Trouble::Unreadable,
        _ => Trouble::Damaged,
    }
}

/// Ticks of a second: a power of ten or, with the highest bit, of two; the library takes no power of two.
fn resolution(option: u8) -> u64 {
    let (base, power) = if option & 0x80 == 0 { (10_u64, option) } else { (2, option & 0x7f) };
    base.checked_pow(power.into()).unwrap_or(1_000_000)
}

/// Where a block's packet lies, or what the block says of the packets to come.
fn take_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    pcap_header: &mut usize,
    times: &mut Times,
) -> Option<Place> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let is_nanoseconds = header.is_nanosecond_precision() || times.are_nanoseconds;
            let resolution = if is_nanoseconds { 1_000_000_000 } else { 1_000_000 };
            // The upper half says whether a checksum follows each packet.
            let link = Link(header.network.0 & 0xffff);
            interfaces.push(Interface { link, resolution, offset_s: i64::from(header.thiszone) });
            if header.is_modified_format() {
                *pcap_header = PCAP_HEADER_MODIFIED;
            }
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = interfaces.first()?;
            let ticks = u64::from(packet.ts_sec) * interface.resolution + u64::from(packet.ts_usec);
            let (at_ns, captured) = (interface.at_ns(ticks), packet.data.len());
            let (link, length, header) = (interface.link, packet.origlen, *pcap_header);
            Some(Place { at_ns, has_time: true, link, length, header, captured, program: None })
        }
        PcapBlockOwned::NG(block) => take_pcapng_block(block, interfaces, times),
    }
}

/// The program that a comment names.
fn program(options: &[PcapNGOption<'_>]) -> Option<String> {
    let comments = options.iter().filter(|option| option.code == OptionCode::Comment);
    let named = |option: &PcapNGOption<'_>| Some(option.as_str().ok()?.strip_prefix(PROGRAM)?.to_owned());
    let name = comments.filter_map(named).next()?;
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_LETTERS).collect();
    Some(name).filter(|name| !name.is_empty())
}

fn take_pcapng_block(block: &Block<'_>, interfaces: &mut Vec<Interface>, times: &mut Times) -> Option<Place> {
    match block {
        Block::SectionHeader(_) => interfaces.clear(),
        Block::InterfaceDescription(description) if interfaces.len() < MAX_INTERFACES => {
            let is_foreign = description.block_type != IDB_MAGIC;
            let offset_s = description.if_tsoffset;
            interfaces.push(Interface {
                link: description.linktype,
                resolution: resolution(description.if_tsresol),
                // The library takes this number for little-endian whatever the section is.
                offset_s: if is_foreign { offset_s.swap_bytes() } else { offset_s },
            });
        }
        Block::EnhancedPacket(packet) => {
            let interface = interfaces.get_mut(packet.if_id as usize)?;
            let ticks = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
            if is_nanoseconds(ticks, interface.resolution) {
                (interface.resolution, times.are_nanoseconds) = (1_000_000_000, true);
            }
            let at_ns = interface.at_ns(ticks);
            let captured = packet.data.len().min(packet.caplen as usize);
            return Some(Place {
                at_ns,
                has_time: true,
                link: interface.link,
                length: packet.origlen,
                header: ENHANCED_HEADER,
                captured,
                program: program(&packet.options),
            });
        }
        // It has no time of its own.
        Block::SimplePacket(packet) => {
            let captured = packet.data.len().min(packet.origlen as usize);
            let (link, at_ns, length) = (interfaces.first()?.link, times.last_ns(), packet.origlen);
            let (header, program) = (SIMPLE_HEADER, None);
            return Some(Place { at_ns, has_time: false, link, length, header, captured, program });
        }
        _ => {}
    }
    None
}
