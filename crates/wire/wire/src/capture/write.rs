// SPDX-License-Identifier: MIT
//! Writes pcapng files, little-endian with nanoseconds. Wireshark can open them.

use super::{Link, Record};
use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Prefixes of packet comments that contain a program name, and a checkpoint.
pub const PROGRAM: &str = "program: ";
pub const CHECKPOINT: &str = "xqos checkpoint: ";
/// Magic number that shows the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const OPTION_COMMENT: u16 = 1;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_APPLICATION: u16 = 4;
const OPTION_RESOLUTION: u16 = 9;
/// Time resolution of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

#[derive(Debug)]
pub struct CaptureWriter<W> {
    out: W,
    /// Reused for each block to avoid allocations.
    block: Vec<u8>,
    interfaces: Vec<Link>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file. `application` names the writing program.
    pub fn new(out: W, application: &str) -> io::Result<CaptureWriter<W>> {
        let mut writer = CaptureWriter { out, block: Vec::new(), interfaces: Vec::new() };
        writer.block.extend(BYTE_ORDER.to_le_bytes());
        // Version 1.0. The length of the section is not known yet.
        writer.block.extend([1, 0, 0, 0]);
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(OPTION_APPLICATION, application.as_bytes());
        writer.finish_block(SECTION)?;
        Ok(writer)
    }

    /// Adds an interface. Packets use the first interface with their link type. A snap length of 0 means no limit.
    pub fn add_interface(&mut self, link: Link, name: &str, snap_bytes: u32) -> io::Result<()> {
        self.block.extend((link.0 as u16).to_le_bytes());
        self.block.extend([0, 0]);
        self.block.extend(snap_bytes.to_le_bytes());
        self.option(OPTION_INTERFACE_NAME, name.as_bytes());
        self.option(OPTION_RESOLUTION, &[NANOSECONDS]);
        self.finish_block(INTERFACE)?;
        self.interfaces.push(link);
        Ok(())
    }

    /// Writes a packet. If there is no interface for its link type yet, writes that first.
    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let interface = match self.interfaces.iter().position(|&link| link == record.link) {
            Some(interface) => interface,
            None => {
                self.add_interface(record.link, "xqos", 0)?;
                self.interfaces.len() - 1
            }
        };
        let captured = record.bytes.len() as u32;
        for word in
            [interface as u32, (record.at_ns >> 32) as u32, record.at_ns as u32, captured, record.length.max(captured)]
        {
            self.block.extend(word.to_le_bytes());
        }
        self.block.extend(record.bytes);
        self.pad();
        for (prefix, comment) in [(PROGRAM, record.program), (CHECKPOINT, record.checkpoint)] {
            if let Some(comment) = comment {
                self.option(OPTION_COMMENT, format!("{prefix}{comment}").as_bytes());
            }
        }
        self.finish_block(PACKET)
    }

    pub fn into_inner(self) -> W {
        self.out
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Options have 16-bit lengths. Longer values are cut.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn finish_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&length)
    }
}
