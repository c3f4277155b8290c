// SPDX-License-Identifier: MIT
//! The state of cutting: the requests that are executed in parts, and the facts about the server that this requires.
//! [`cut`](super::cut) uses it; nothing here calls a request procedure.
//!
//! | file | contents |
//! |---|---|
//! | `cost` | the measured cost of each kind of request |
//! | `guard`, `requests.txt` | which requests of other clients may run while a rest is pending |
//! | `presented` | the drawables that Present may use at a later frame |
//! | `server` | the server's records, through the shim |

pub mod cost;
pub mod guard;
pub mod presented;
pub mod server;

use crate::host::dix::client::{Head, LiveClient};
use crate::host::dix::symbols::{RequestProc, Symbols};
use crate::mechanism::host::CutTotals;
use crate::parts::{MAX_HEADER, Parts};
use cost::Costs;
use guard::{Footprint, Guard};
use presented::Presented;
use server::{CutServer, Work};
use std::rc::Rc;

/// When requests are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The time that a part should take, in nanoseconds; 0: nothing is cut.
    pub ns: u64,
    /// For tests: each part is one figure or row, and each request is cut after each part.
    pub always: bool,
}

impl Limit {
    pub const NONE: Limit = Limit { ns: 0, always: false };
}

/// The major opcodes of the extensions that matter here; 0 if the server lacks one.
#[derive(Clone, Copy, Debug)]
pub struct Majors {
    pub render: u8,
    pub present: u8,
    pub composite: u8,
}

#[derive(Debug)]
pub struct Cutting {
    pub server: CutServer,
    pub guard: Rc<Guard>,
    pub majors: Majors,
    pub limit: Limit,
    pub costs: Costs,
    /// The server calls this between slices, and before it frees the requests of a client that disconnects.
    pub leaves: Work,
    pub rests: Vec<Cut>,
    pub presented: Presented,
    /// A request or a disconnecting client has changed windows in this slice. The server may have deferred work, such
    /// as painting a border, until the slice ends.
    pub windows_changed: bool,
    pub totals: CutTotals,
    /// Rests that were executed in another client's slice, not yet charged.
    pub finished: Vec<(LiveClient, u32, u64)>,
    /// The request executed in parts that ended last: its client, its processor time and that of its longest part.
    pub ended: Option<(LiveClient, u64, u64)>,
    /// The client whose request was handed back last, until the slice has ended.
    pub returned: Option<LiveClient>,
    /// The clients for which the server calls `leaves`.
    pub queued: Vec<LiveClient>,
    pub is_grabbed: bool,
}

/// A request that is executed in parts.
#[derive(Debug)]
pub struct Cut {
    pub client: LiveClient,
    pub procedure: RequestProc,
    pub header: [u8; MAX_HEADER],
    pub parts: Parts,
    pub done: u32,
    pub head: Head,
    pub footprint: Footprint,
    /// CopyArea: the graphics context whose exposure events are due with the last part.
    pub exposes: Option<u32>,
    /// The status of the request, once it is finished.
    pub result: Option<i32>,
    /// Processor time up to now, and of the longest part.
    pub used_ns: u64,
    pub longest_ns: u64,
    /// Processor time since the request could last be handed back.
    pub held_ns: u64,
}

impl Cutting {
    pub fn new(symbols: &Symbols, limit: Limit, leaves: Work) -> Option<Cutting> {
        let opcode = |name| symbols.extension(name).and_then(|entry| u8::try_from(entry.base).ok()).unwrap_or(0);
        Some(Cutting {
            server: CutServer::find(symbols)?,
            guard: Rc::new(Guard::new(symbols)),
            majors: Majors { render: opcode(c"RENDER"), present: opcode(c"Present"), composite: opcode(c"Composite") },
            limit,
            leaves,
            costs: Costs::new(limit.ns),
            rests: Vec::new(),
            presented: Presented::default(),
            windows_changed: false,
            totals: CutTotals::default(),
            finished: Vec::new(),
            ended: None,
            returned: None,
            queued: Vec::new(),
            is_grabbed: false,
        })
    }
}
