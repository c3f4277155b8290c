// SPDX-License-Identifier: MIT
//! State that only the server's thread uses, in particular the engine of this process.
//!
//! [`with`](OnServerThread::with) is a panic boundary: any failure inside is a fault that makes the host step aside.
//! Afterwards `with` carries out the engine's actions. The server may call xqos while xqos calls the server, for
//! example because of an event that xqos sends. No reference to the engine is held during such a call.

use crate::mechanism::action::Action;
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use crate::mechanism::host::Host;
use std::cell::UnsafeCell;
use xqos_core::Time;

/// A host that carries out actions.
pub trait Acts: Host {
    /// A call into the server, which may call xqos.
    type Call;

    /// Carries out an action, or returns the call that carries it out.
    fn carry_out(&mut self, action: Action) -> Option<Self::Call>;
    fn call(call: Self::Call);
    /// Undoes every change of the host that the server would notice. Can be called in any state.
    fn step_back(&mut self);
}

/// Carries out actions, up to the next one that calls the server.
fn next_call<H: Acts>(engine: &mut Engine<H>) -> Option<H::Call> {
    while let Some(action) = engine.actions.pop_front() {
        if let Some(call) = engine.host.carry_out(action) {
            return Some(call);
        }
    }
    None
}

/// Undoes every change that the server would notice. No other code may have access to the engine. A fault in one step
/// does not prevent the others.
pub fn step_back<H: Acts>(engine: &mut Engine<H>, now: Time) {
    let _ = fault::guarded(|| engine.at(now).step_back());
    loop {
        match fault::guarded(|| next_call(engine)) {
            Ok(Some(call)) => H::call(call),
            Ok(None) => break,
            // The failed action is no longer in the queue.
            Err(_) => {}
        }
    }
    let _ = fault::guarded(|| engine.host.step_back());
}

/// A value that only the server's thread uses.
#[derive(Debug)]
pub struct OnServerThread<T>(UnsafeCell<T>);

// SAFETY: the pointer that `get` returns is used on the server's thread only.
unsafe impl<T> Sync for OnServerThread<T> {}

impl<T> OnServerThread<T> {
    pub const fn new(value: T) -> Self {
        OnServerThread(UnsafeCell::new(value))
    }

    /// A pointer to the value. Use it only on the server's thread and in one function at a time.
    pub fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// The engine, and the data that the host keeps after xqos has stepped aside.
#[derive(Debug)]
pub struct EngineCell<H, A> {
    pub engine: Option<Box<Engine<H>>>,
    pub aside: A,
    busy: bool,
}

impl<H, A> EngineCell<H, A> {
    pub const fn new(aside: A) -> Self {
        EngineCell { engine: None, aside, busy: false }
    }
}

impl<H: Acts, A> OnServerThread<EngineCell<H, A>> {
    /// Runs `work` on the engine, and carries out the actions. Returns `None` if there is no engine or it is busy.
    ///
    /// # Safety
    /// Must be called on the server's thread.
    pub unsafe fn with<T>(
        &self,
        work: impl FnOnce(&mut Engine<H>) -> Result<T, Fault<H::Error>>,
    ) -> Option<Result<T, Fault<H::Error>>> {
        let mut is_idle = false;
        let and_look = |engine: &mut Engine<H>| {
            let worked = work(engine);
            is_idle = engine.actions.is_empty();
            worked
        };
        // SAFETY: guaranteed by the caller.
        let worked = unsafe { self.borrowed(and_look) }?;
        if is_idle {
            return Some(worked);
        }
        // Actions that were queued before a fault are carried out before the host steps aside.
        loop {
            // SAFETY: guaranteed by the caller.
            match unsafe { self.borrowed(|engine| Ok(next_call(engine))) } {
                Some(Ok(Some(call))) => H::call(call),
                Some(Err(fault)) if worked.is_ok() => return Some(Err(fault)),
                Some(Err(_)) => {}
                Some(Ok(None)) | None => return Some(worked),
            }
        }
    }

    /// # Safety
    /// Must be called on the server's thread.
    unsafe fn borrowed<T>(
        &self,
        work: impl FnOnce(&mut Engine<H>) -> Result<T, Fault<H::Error>>,
    ) -> Option<Result<T, Fault<H::Error>>> {
        let cell = self.get();
        // SAFETY: guaranteed by the caller. `busy` prevents a second reference to the engine in a nested call.
        let engine = unsafe {
            if (*cell).busy {
                return None;
            }
            let engine = (*cell).engine.as_deref_mut()?;
            (*cell).busy = true;
            engine
        };
        let result = fault::guarded(|| work(engine)).unwrap_or_else(|panic| Err(Fault::panicked(panic.as_ref())));
        // SAFETY: the reference from above is no longer used.
        unsafe { (*cell).busy = false };
        Some(result)
    }
}
