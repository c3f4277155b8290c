// SPDX-License-Identifier: MIT
//! Writes the log of a link on a separate thread, so that a slow disk delays no packet.

use super::{LogEntry, PacketFate, TITLE};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Entries per batch. A lock and a wakeup for each entry would be noticeable at 100,000 packets per second.
const BATCH: usize = 256;
/// Batches that may wait for the disk, 20 MB. Beyond that, packets wait, because a log with gaps is useless.
const WAITING_BATCHES: usize = 1024;
/// Idle time after which the file is flushed, for readers that follow it, and in case this process is killed.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTotals {
    pub packets: u64,
    pub bytes: u64,
    pub delivered: u64,
    pub lost: u64,
    pub dropped: u64,
    /// Time during which the link was sending.
    pub busy_ns: u64,
}

impl LinkTotals {
    pub(crate) fn add(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::Packet(record) => {
                self.packets += 1;
                self.bytes += u64::from(record.bytes);
                match record.outcome {
                    PacketFate::Delivered => self.delivered += 1,
                    PacketFate::Lost => self.lost += 1,
                    PacketFate::Dropped => self.dropped += 1,
                    PacketFate::Unfinished => {}
                }
            }
            LogEntry::Busy(busy) => self.busy_ns += busy.to_ns.saturating_sub(busy.from_ns),
        }
    }
}

#[derive(Debug)]
pub struct LogWriter {
    batch: Vec<LogEntry>,
    sender: SyncSender<Vec<LogEntry>>,
    thread: JoinHandle<io::Result<()>>,
}

impl LogWriter {
    /// Creates the file; `about` becomes a comment in it.
    pub fn create(path: &Path, about: &str) -> io::Result<LogWriter> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "{TITLE}\n# {about}\n# packet direction number bytes arrival start end delivery fate")?;
        file.flush()?;
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let write = move || write(file, &receiver);
        let thread = thread::Builder::new().name("link log".to_owned()).spawn(write)?;
        Ok(LogWriter { batch: Vec::new(), sender, thread })
    }

    pub fn add(&mut self, entry: LogEntry) {
        self.batch.push(entry);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// Hands over the current batch. Call it while there is nothing else to do.
    pub fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.hand_over();
        }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        drop(self.sender);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the log thread panicked")))
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // The thread ends early only after an error, which `finish` returns.
        let _ = self.sender.send(batch);
    }
}

fn write(mut file: BufWriter<File>, entries: &Receiver<Vec<LogEntry>>) -> io::Result<()> {
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
