// SPDX-License-Identifier: MIT
//! The state of this host in the server's process: the engine, the request tables, and the requests that are being cut.
//!
//! The tables and the cut requests outlive the engine: after xqos has stepped aside, the server may still call a
//! wrapper, and a request that was handed back must be completed. No reference to any of it is held during a call into
//! the server, which may call xqos.

use crate::host::dix::Dix;
use crate::host::dix::client::Head;
use crate::host::dix::cutting::Cutting;
use crate::host::dix::error::Error;
use crate::host::dix::tables::Tables;
use crate::host::engine_cell::{EngineCell, OnServerThread};
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::Fault;
use std::cell::{Cell, RefCell};
use xqos_abi::trace::Entry;
use xqos_core::{ClientId, Time};

struct HostState {
    /// The engine of this generation, and the reason why xqos stepped aside, if it did.
    engine: OnServerThread<EngineCell<Dix, Option<String>>>,
    /// Called after a fault, to make xqos step aside.
    on_fault: Cell<fn(&Fault<Error>)>,
    tables: Tables,
    /// `None` if nothing was ever cut, or if the server's requests cannot be cut.
    cutting: RefCell<Option<Cutting>>,
}

static STATE: OnServerThread<HostState> = OnServerThread::new(HostState {
    engine: OnServerThread::new(EngineCell::new(None)),
    on_fault: Cell::new(|_| {}),
    tables: Tables::new(),
    cutting: RefCell::new(None),
});

fn state() -> &'static HostState {
    // SAFETY: this runs on the server's thread, on which there are only shared references to it.
    unsafe { &*STATE.get() }
}

/// Runs `work` on the engine, then carries out its actions. A panic or error makes xqos step aside. Returns `None` if
/// there is no engine, if it is in use, or after a fault.
pub fn with_engine<T>(work: impl FnOnce(&mut Engine<Dix>) -> Result<T, Fault<Error>>) -> Option<T> {
    // SAFETY: the server calls all hooks on its main thread.
    unsafe { state().engine.with(work) }?.map_err(|fault| state().on_fault.get()(&fault)).ok()
}

/// Like [`with_engine`], for work that returns nothing and cannot fail.
pub fn update(work: impl FnOnce(&mut Engine<Dix>)) {
    with_engine(|engine| {
        work(engine);
        Ok(())
    });
}

/// Starts a generation. `on_fault` is called after a fault, and takes the engine.
pub fn begin(engine: Engine<Dix>, on_fault: fn(&Fault<Error>)) {
    state().on_fault.set(on_fault);
    // SAFETY: this runs on the server's thread, and the last engine was taken at the end of its generation.
    unsafe {
        (*state().engine.get()).aside = None;
        (*state().engine.get()).engine = Some(Box::new(engine));
    }
}

/// Takes the engine when xqos steps aside or a generation ends.
pub fn take_engine() -> Option<Box<Engine<Dix>>> {
    // SAFETY: this runs on the server's thread, after the last call with a reference to the engine.
    unsafe { (*state().engine.get()).engine.take() }
}

/// Why xqos stepped aside, if it did.
pub fn aside_reason() -> Option<String> {
    // SAFETY: this runs on the server's thread, without another reference to the engine's cell.
    unsafe { (*state().engine.get()).aside.clone() }
}

pub fn set_aside(reason: String) {
    // SAFETY: as above.
    unsafe { (*state().engine.get()).aside = Some(reason) };
}

pub fn tables() -> &'static Tables {
    &state().tables
}

/// Runs `work` on the requests that are being cut, if there are any. `work` must not call into the server, which may
/// call xqos: this state would be inaccessible in such a call.
pub fn with_cutting<T>(work: impl FnOnce(&mut Cutting) -> T) -> Option<T> {
    state().cutting.try_borrow_mut().ok()?.as_mut().map(work)
}

pub fn set_cutting(cutting: Option<Cutting>) {
    state().cutting.replace(cutting);
}

/// Records an event in the trace, if there is one.
pub fn note(at: Time, what: Entry) {
    update(|engine| engine.scheduler.trace.note(at, what));
}

/// Records a request, if requests are timed.
pub fn note_request(head: &Head, now: Time, ns: u64) {
    if tables().times.get() {
        let &Head { index, request, bytes, .. } = head;
        note(now, Entry::Request { client: ClientId(index as u16), request, bytes, ns });
    }
}
