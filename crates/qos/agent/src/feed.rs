// SPDX-License-Identifier: MIT
//! Delivers the clients' bursts as they end, from the ring to which the server writes its trace.
//!
//! Reading costs the server nothing, because the ring is shared memory. Records that were overwritten before they were
//! read are lost. The trace then restarts with a snapshot, which takes one request to the server.

use crate::error::Result;
use crate::session::Session;
use std::time::Instant;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Event, Level};
use xqos_core::Time;
use xqos_trace::model::Model;
use xqos_tune::Burst;

#[derive(Debug)]
pub struct Feed {
    /// `None` before the trace starts and after it has ended.
    reader: Option<RingReader>,
    pub model: Model,
    pub level: Level,
    /// Time of the last record: on the server's clock, and on ours.
    last: (Time, Instant),
    /// Records were lost in the last read, so the clients' activity since then is unknown.
    has_gap: bool,
}

impl Feed {
    pub fn closed() -> Feed {
        let (model, last) = (Model::without_causes(), (Time(0), Instant::now()));
        Feed { reader: None, model, level: Level::Slices, last, has_gap: false }
    }

    /// Starts a trace at this level. An existing reader continues with the new records.
    pub fn trace(&mut self, session: &Session, level: Level) -> Result<()> {
        let reader = session.control.start_trace(level, 0)?;
        self.level = level;
        self.reader.get_or_insert(reader);
        Ok(())
    }

    /// Bursts that have ended since the last call, each with its client.
    pub fn read(&mut self, session: &Session) -> Result<Vec<(u32, Burst)>> {
        let (mut bursts, mut lost) = (Vec::new(), false);
        while let Some(reader) = &mut self.reader {
            match reader.read() {
                Next::Record(words) => {
                    let Some(event) = Event::decode(words) else { continue };
                    let burst = self.model.take(&event);
                    let base = |key: usize| self.model.clients().get(key).map_or(0, |client| client.identity.base);
                    bursts.extend(burst.map(|burst| {
                        let (start, end, served_ns) = (burst.activation, burst.end, burst.worked_ns);
                        (base(burst.key), Burst { start, end, served_ns })
                    }));
                }
                Next::Lost(records) => {
                    self.model.lost += records;
                    lost = true;
                }
                Next::Nothing => break,
                Next::Ended => self.reader = None,
            }
        }
        if self.model.now > self.last.0 {
            self.last = (self.model.now, Instant::now());
        }
        self.model.forget_gone();
        self.has_gap = lost;
        if lost && self.is_open() {
            session.control.renew_trace(self.level, 0)?;
        }
        Ok(bursts)
    }

    /// Clients that have work or are being served; after lost records, all clients.
    pub fn working(&self) -> impl Iterator<Item = u32> + '_ {
        let working = self.model.present().filter(|client| self.has_gap || client.waits_since().is_some());
        working.map(|client| client.identity.base)
    }

    /// Estimated current time on the server's clock.
    pub fn now(&self) -> Time {
        let (server, ours) = self.last;
        server.after(u64::try_from(ours.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns true while the server writes a trace.
    pub fn is_open(&self) -> bool {
        self.reader.is_some()
    }
}
