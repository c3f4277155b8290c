// SPDX-License-Identifier: MIT
//! A viewer of an Xtigervnc: a remote user who moves the pointer and receives every picture.
//!
//! It speaks RFB 3.8 on a Unix socket, without security and with raw pixels. A thread reads and discards the pixels.
//! The thread requests the next update as soon as one begins to arrive, as TigerVNC's viewer does, so a request is
//! always pending. An unknown message ends the viewer, and the next motion then fails.

use anyhow::{Context, Result, ensure};
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time limit for the first picture on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connected viewer. The connection ends when this is dropped.
#[derive(Debug)]
pub struct Viewer {
    stream: UnixStream,
    reader: Option<JoinHandle<io::Result<()>>>,
}

impl Viewer {
    /// Connects to a server's socket, and returns when the first picture begins to arrive.
    pub fn connect(path: &Path) -> Result<Viewer> {
        let opened = UnixStream::connect(path);
        let mut stream = opened.with_context(|| format!("no VNC server listens at {}", path.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (width, height) = shake_hands(&mut stream).context("the VNC server refuses the viewer")?;
        // 32 bits per pixel, depth 24, little endian, true colour, 8 bits per colour at bits 16, 8 and 0; raw pixels.
        stream.write_all(&[0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])?;
        stream.write_all(&[2, 0, 0, 1, 0, 0, 0, 0])?;
        stream.write_all(&request(false, width, height))?;
        stream.set_read_timeout(None)?;
        let input = stream.try_clone()?;
        let (began, begins) = mpsc::channel();
        let reader = Some(thread::spawn(move || follow(input, &request(true, width, height), &began)));
        let viewer = Viewer { stream, reader };
        begins.recv_timeout(PATIENCE).context("the VNC server does not show its screen")?;
        Ok(viewer)
    }

    /// Moves the pointer without pressing a button. Returns the instant just before the write.
    pub fn point(&self, x: u16, y: u16) -> Result<Instant> {
        let ([x0, x1], [y0, y1]) = (x.to_be_bytes(), y.to_be_bytes());
        let at = Instant::now();
        (&self.stream).write_all(&[5, 0, x0, x1, y0, y1]).context("the VNC server takes no more input")?;
        Ok(at)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // An error means that the server has closed the connection already. The reader ends in either case.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Negotiates version and security, and returns the size of the screen.
fn shake_hands(stream: &mut UnixStream) -> Result<(u16, u16)> {
    const NONE: u8 = 1;
    const SHARED: u8 = 1;
    let version: [u8; 12] = read(stream)?;
    ensure!(&version == b"RFB 003.008\n", "it speaks {:?}, not RFB 3.8", String::from_utf8_lossy(&version));
    stream.write_all(&version)?;
    let [count] = read(stream)?;
    let mut kinds = vec![0; usize::from(count)];
    stream.read_exact(&mut kinds)?;
    ensure!(kinds.contains(&NONE), "it asks for a password");
    stream.write_all(&[NONE])?;
    ensure!(read(stream)? == [0; 4], "it refuses every viewer");
    stream.write_all(&[SHARED])?;
    let [w0, w1, h0, h1] = read(stream)?;
    let _format: [u8; 16] = read(stream)?;
    let name = u32::from_be_bytes(read(stream)?);
    skip(stream, name.into())?;
    Ok((u16::from_be_bytes([w0, w1]), u16::from_be_bytes([h0, h1])))
}

/// A request for an update of the whole screen, or of its changes.
fn request(incremental: bool, width: u16, height: u16) -> [u8; 10] {
    let ([w0, w1], [h0, h1]) = (width.to_be_bytes(), height.to_be_bytes());
    [3, u8::from(incremental), 0, 0, 0, 0, w0, w1, h0, h1]
}

/// Reads until the connection ends, and reports each update that begins.
fn follow(mut stream: UnixStream, request: &[u8], begins: &Sender<()>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 18, stream.try_clone()?);
    loop {
        match read(&mut input)? {
            [0] => {
                let [_, c0, c1] = read(&mut input)?;
                stream.write_all(request)?;
                // The receiver waits only for the first update, so later sends fail.
                let _ = begins.send(());
                for _ in 0..u16::from_be_bytes([c0, c1]) {
                    let [_, _, _, _, w0, w1, h0, h1, _, _, _, _] = read(&mut input)?;
                    let sides = [[w0, w1], [h0, h1]].map(|side| u64::from(u16::from_be_bytes(side)));
                    skip(&mut input, 4 * sides[0] * sides[1])?;
                }
            }
            // Bell.
            [2] => {}
            // Clipboard.
            [3] => {
                let [_, _, _, length @ ..]: [u8; 7] = read(&mut input)?;
                skip(&mut input, u32::from_be_bytes(length).into())?;
            }
            [kind] => return Err(io::Error::other(format!("unknown message type {kind}"))),
        }
    }
}

fn read<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn skip(input: &mut impl Read, length: u64) -> io::Result<()> {
    io::copy(&mut input.take(length), &mut io::sink()).map(drop)
}
