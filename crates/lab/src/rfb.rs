// SPDX-License-Identifier: MIT
//! A small viewer of a VNC server: what somebody at the other end of a remote desktop does and sees, and when.
//!
//! Input that comes through the server's own door, and a picture that leaves it: both are stamped here, so that the whole
//! way from a key to its echo on the screen can be timed from outside, on any server, without a word to its clients. RFB
//! 3.8 on a Unix socket, no security, raw pixels of 32 bits; the pointer's shape is asked for and thrown away, so that
//! the server does not draw it into the picture. A thread of its own reads, and asks for the next update as soon as one
//! begins to arrive, as TigerVNC's viewer does: there is always a request waiting in the server.
//!
//! Whatever the other end sends, no length of it is believed beyond the size of the screen: an absurd message ends the
//! viewer with a sentence, which the next call returns.

mod wire;

use anyhow::{Context, Result, anyhow, bail};
use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::Piece;

/// Rows; several seconds of a video that fills the screen.
const MOST_CHANGES: usize = 1 << 17;
/// For an answer that a server gives at once, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// A rectangle of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl Area {
    pub fn new(x: u16, y: u16, width: u16, height: u16) -> Area {
        Area { x, y, width, height }
    }

    fn columns(&self) -> std::ops::Range<usize> {
        usize::from(self.x)..usize::from(self.x) + usize::from(self.width)
    }

    fn rows(&self) -> std::ops::Range<usize> {
        usize::from(self.y)..usize::from(self.y) + usize::from(self.height)
    }

    fn is_within(&self, width: u16, height: u16) -> bool {
        self.columns().end <= usize::from(width) && self.rows().end <= usize::from(height)
    }
}

/// A connected viewer; the connection ends when this is dropped.
#[derive(Debug)]
pub struct Viewer {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

impl Viewer {
    /// Connects to a server's socket and returns when its whole screen is here.
    pub fn connect(path: &Path) -> Result<Viewer> {
        let opened = UnixStream::connect(path);
        let mut stream = opened.with_context(|| format!("no VNC server listens at {}", path.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (width, height) = wire::shake_hands(&mut stream).context("the VNC server refuses the viewer")?;
        stream.set_read_timeout(None)?;
        stream.write_all(&wire::wishes(width, height))?;
        let input = stream.try_clone()?;
        let shared = Arc::new(Shared {
            output: Mutex::new(stream),
            frame: Mutex::new(Frame::new(width, height)),
            news: Condvar::new(),
            bytes: AtomicU64::new(0),
        });
        let readers = Arc::clone(&shared);
        let viewer = Viewer { shared, reader: Some(std::thread::spawn(move || readers.follow(input))) };
        let whole = viewer.wait(PATIENCE, |frame| (frame.updates > 0).then_some(()))?;
        whole.ok_or_else(|| anyhow!("the VNC server does not show its screen"))?;
        Ok(viewer)
    }

    /// Width and height of the screen.
    pub fn size(&self) -> (u16, u16) {
        self.shared.frame().size()
    }

    /// Moves the pointer, no button down; the instant is that of the write, as in the next two.
    pub fn point(&self, x: u16, y: u16) -> Result<Instant> {
        self.press(x, y, 0)
    }

    /// Moves the pointer with these buttons down: the lowest bit is the left one.
    pub fn press(&self, x: u16, y: u16, buttons: u8) -> Result<Instant> {
        let ([x0, x1], [y0, y1]) = (x.to_be_bytes(), y.to_be_bytes());
        self.shared.send(&[5, buttons, x0, x1, y0, y1])
    }

    /// A key goes down or up, named by its keysym.
    pub fn key(&self, keysym: u32, down: bool) -> Result<Instant> {
        let [a, b, c, d] = keysym.to_be_bytes();
        self.shared.send(&[4, u8::from(down), 0, 0, a, b, c, d])
    }

    /// When the bytes had been read that first changed the picture in an area after an instant; `None` when nothing did
    /// until the time was out. In each row of an update, what lies between the first and the last pixel that are
    /// different counts as changed.
    pub fn changed(&self, area: Area, since: Instant, timeout: Duration) -> Result<Option<Instant>> {
        self.wait(timeout, |frame| frame.first_change(area, since))
    }

    /// As 0xrrggbb; `None` outside the screen.
    pub fn pixel(&self, x: u16, y: u16) -> Option<u32> {
        let frame = self.shared.frame();
        let inside = x < frame.width && y < frame.height;
        inside.then(|| {
            let at = 4 * (usize::from(y) * usize::from(frame.width) + usize::from(x));
            u32::from_le_bytes([frame.pixels[at], frame.pixels[at + 1], frame.pixels[at + 2], 0])
        })
    }

    /// Read from the server so far, after the handshake.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    fn wait<T>(&self, timeout: Duration, found: impl Fn(&Frame) -> Option<T>) -> Result<Option<T>> {
        let limit = Instant::now() + timeout;
        let mut frame = self.shared.frame();
        loop {
            if let Some(found) = found(&frame) {
                return Ok(Some(found));
            }
            if let Some(end) = &frame.end {
                bail!("the VNC server's picture ended: {end}");
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            frame = self.shared.news.wait_timeout(frame, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // Errors say that the other end is gone already; the reader ends in either case.
        let _ = self.shared.output().shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// What the caller and the reading thread have in common.
#[derive(Debug)]
struct Shared {
    output: Mutex<UnixStream>,
    frame: Mutex<Frame>,
    /// With `frame`: it changed, or there is nothing more to come.
    news: Condvar,
    /// A count that nothing else depends on: relaxed.
    bytes: AtomicU64,
}

impl Shared {
    fn frame(&self) -> MutexGuard<'_, Frame> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, UnixStream> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &[u8]) -> Result<Instant> {
        let mut output = self.output();
        let at = Instant::now();
        output.write_all(message).context("the VNC server takes no more input")?;
        Ok(at)
    }

    /// Reads until the connection ends.
    fn follow(&self, input: UnixStream) {
        let screen = self.frame().size();
        let mut input = BufReader::with_capacity(1 << 18, Counted { input, bytes: &self.bytes });
        let mut pixels = Vec::new();
        let end = loop {
            if let Err(error) = wire::message(&mut input, screen, &mut pixels, &mut |piece| self.take(piece)) {
                break error;
            }
        };
        self.frame().end = Some(format!("{end:#}"));
        self.news.notify_all();
    }

    fn take(&self, piece: Piece<'_>) -> Result<()> {
        match piece {
            Piece::Begins => {
                let (width, height) = self.frame().size();
                self.send(&wire::request(true, width, height)).map(drop)
            }
            Piece::Pixels(area, pixels) => {
                let at = Instant::now();
                self.frame().apply(area, pixels, at);
                self.news.notify_all();
                Ok(())
            }
            Piece::Ends => {
                self.frame().updates += 1;
                self.news.notify_all();
                Ok(())
            }
        }
    }
}

struct Counted<'a> {
    input: UnixStream,
    bytes: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(bytes)?;
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// The picture, and what changed in it lately.
#[derive(Debug)]
struct Frame {
    width: u16,
    height: u16,
    /// Four bytes each: blue, green, red and nothing.
    pixels: Vec<u8>,
    /// In the order of their instants; the oldest are forgotten.
    changes: VecDeque<Change>,
    updates: u64,
    /// Why nothing more will come.
    end: Option<String>,
}

/// Of a part of one row.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Instant,
    row: u16,
    from: u16,
    to: u16,
}

impl Frame {
    fn new(width: u16, height: u16) -> Frame {
        let pixels = vec![0; 4 * usize::from(width) * usize::from(height)];
        Frame { width, height, pixels, changes: VecDeque::new(), updates: 0, end: None }
    }

    fn size(&self) -> (u16, u16) {
        (self.width, self.height)
    }

    /// The area is within the screen, and the pixels are as many as it has.
    fn apply(&mut self, area: Area, pixels: &[u8], at: Instant) {
        if area.width == 0 {
            return;
        }
        for (row, new) in area.rows().zip(pixels.chunks_exact(4 * usize::from(area.width))) {
            let start = 4 * (row * usize::from(self.width) + area.columns().start);
            let old = &mut self.pixels[start..start + new.len()];
            if old == new {
                continue;
            }
            let differs = |(old, new): (&[u8], &[u8])| old != new;
            let pairs = || old.chunks_exact(4).zip(new.chunks_exact(4));
            let first = pairs().position(differs).unwrap_or_default() as u16;
            let last = pairs().rposition(differs).unwrap_or_default() as u16;
            self.changes.push_back(Change { at, row: row as u16, from: area.x + first, to: area.x + last });
            old.copy_from_slice(new);
        }
        let surplus = self.changes.len().saturating_sub(MOST_CHANGES);
        self.changes.drain(..surplus);
    }

    fn first_change(&self, area: Area, since: Instant) -> Option<Instant> {
        let later = self.changes.partition_point(|change| change.at <= since);
        let (rows, columns) = (area.rows(), area.columns());
        let touches = |change: &&Change| {
            rows.contains(&change.row.into())
                && usize::from(change.from) < columns.end
                && usize::from(change.to) >= columns.start
        };
        self.changes.range(later..).find(touches).map(|change| change.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(area: Area, value: u8) -> Vec<u8> {
        vec![value; 4 * usize::from(area.width) * usize::from(area.height)]
    }

    #[test]
    fn only_pixels_that_differ_count_as_changed() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut frame = Frame::new(20, 10);
        let all = Area::new(0, 0, 20, 10);
        frame.apply(all, &filled(all, 0), at(1));
        assert_eq!(frame.first_change(all, start), None);
        let part = Area::new(5, 2, 4, 3);
        frame.apply(part, &filled(part, 9), at(2));
        frame.apply(part, &filled(part, 9), at(3));
        frame.apply(all, &filled(all, 9), at(4));
        assert_eq!(frame.first_change(all, start), Some(at(2)));
        assert_eq!(frame.first_change(Area::new(8, 4, 1, 1), start), Some(at(2)));
        for beside in [Area::new(4, 2, 1, 3), Area::new(9, 2, 1, 3), Area::new(5, 1, 4, 1), Area::new(5, 5, 4, 1)] {
            assert_eq!(frame.first_change(beside, start), Some(at(4)), "{beside:?}");
        }
        assert_eq!(frame.first_change(all, at(2)), Some(at(4)));
        assert_eq!(frame.first_change(all, at(4)), None);
    }

    #[test]
    fn changes_that_nobody_asks_for_are_forgotten() {
        let mut frame = Frame::new(1, 1000);
        let all = Area::new(0, 0, 1, 1000);
        for round in 0..200 {
            frame.apply(all, &filled(all, round as u8 + 1), Instant::now());
        }
        assert_eq!(frame.changes.len(), MOST_CHANGES);
    }
}
