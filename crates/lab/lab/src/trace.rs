// SPDX-License-Identifier: MIT
//! Reads a trace during a measurement, as the recorder does, so that the measurement includes the cost of reading it,
//! or reads its events afterwards.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Event, Level};
use xqos_client::Control;

/// The interval that the recorder uses.
const READ_EVERY: Duration = Duration::from_millis(20);

/// All events that the trace holds now, and the number of lost records.
pub(crate) fn events(trace: &mut RingReader) -> (Vec<Event>, u64) {
    let (mut events, mut lost) = (Vec::new(), 0);
    loop {
        match trace.read() {
            Next::Record(words) => events.extend(Event::decode(words)),
            Next::Lost(records) => lost += records,
            Next::Nothing | Next::Ended => return (events, lost),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Traced {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<(u64, u64)>,
}

impl Traced {
    pub fn begin(control: &Control, level: Level) -> Result<Traced> {
        let mut reader = control.start_trace(level, 0)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = std::thread::spawn(move || {
            let (mut records, mut lost) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                match reader.read() {
                    Next::Record(_) => records += 1,
                    Next::Lost(more) => lost += more,
                    Next::Nothing => std::thread::sleep(READ_EVERY),
                    Next::Ended => break,
                }
            }
            (records, lost)
        });
        Ok(Traced { stop, reader })
    }

    pub fn end(self) -> [(&'static str, f64); 2] {
        self.stop.store(true, Ordering::Relaxed);
        let (records, lost) = self.reader.join().unwrap_or_default();
        [("records", records as f64), ("lost", lost as f64)]
    }
}
