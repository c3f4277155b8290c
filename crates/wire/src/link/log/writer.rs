// SPDX-License-Identifier: MIT
//! Writes the log of a link on a thread of its own, so that a slow disk delays no packet.

use super::{Entry, Fate, TITLE};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Entries that are handed over at once: a lock and a wakeup for each would be felt at 100,000 packets a second.
const BATCH: usize = 256;
/// Batches that may wait for the disk, 20 MB; then the packets wait too, as a log with holes is no truth.
const WAITING_BATCHES: usize = 1024;
/// After such a pause the file has all that happened, for those who read along or end us by force.
const PAUSE: Duration = Duration::from_millis(100);

/// Counts what happened in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub packets: u64,
    pub bytes: u64,
    pub delivered: u64,
    /// Of all that were taken, on the line.
    pub lost: u64,
    /// Since the queue was full.
    pub dropped: u64,
    /// How long the line was sending.
    pub busy_ns: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Packet(record) => {
                self.packets += 1;
                self.bytes += u64::from(record.bytes);
                match record.fate {
                    Fate::Delivered => self.delivered += 1,
                    Fate::Lost => self.lost += 1,
                    Fate::Dropped => self.dropped += 1,
                    Fate::Unfinished => {}
                }
            }
            Entry::Busy(busy) => self.busy_ns += busy.to_ns.saturating_sub(busy.from_ns),
        }
    }
}

/// The emulator's end of the log.
#[derive(Debug)]
pub struct Writer {
    batch: Vec<Entry>,
    sender: SyncSender<Vec<Entry>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// `about` is for people.
    pub fn create(path: &Path, about: &str) -> io::Result<Writer> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "{TITLE}\n# {about}\n# packet direction number bytes arrival start end delivery fate")?;
        file.flush()?;
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let write = move || write(file, &receiver);
        let thread = thread::Builder::new().name("link log".to_owned()).spawn(write)?;
        Ok(Writer { batch: Vec::new(), sender, thread })
    }

    pub fn add(&mut self, entry: Entry) {
        self.batch.push(entry);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// Nothing else is to be done for now.
    pub fn rest(&mut self) {
        if !self.batch.is_empty() {
            self.hand_over();
        }
    }

    /// Everything is in the file, or this says why not.
    pub fn finish(mut self) -> io::Result<()> {
        self.rest();
        drop(self.sender);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the log panicked")))
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // The thread ends early on an error only, which `finish` tells.
        let _ = self.sender.send(batch);
    }
}

fn write(mut file: BufWriter<File>, entries: &Receiver<Vec<Entry>>) -> io::Result<()> {
    loop {
        match entries.recv_timeout(PAUSE) {
            Ok(batch) => {
                for entry in batch {
                    writeln!(file, "{entry}")?;
                }
            }
            Err(RecvTimeoutError::Timeout) => file.flush()?,
            Err(RecvTimeoutError::Disconnected) => return file.flush(),
        }
    }
}
