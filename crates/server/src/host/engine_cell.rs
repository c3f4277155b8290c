// SPDX-License-Identifier: MIT
//! State that only the server's thread uses, in particular the engine of this process.
//!
//! [`with`](OnServerThread::with) is a panic boundary: any failure inside is a fault that makes the host step aside.
//! The server may call xqos from within one of xqos's own calls, for example because of an event that xqos sends. Such
//! a nested call finds the engine busy and does nothing.

use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use crate::mechanism::host::Host;
use std::cell::UnsafeCell;

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

impl<H: Host, A> OnServerThread<EngineCell<H, A>> {
    /// Runs `work` on the engine. Returns `None` if there is no engine or it is busy.
    ///
    /// # Safety
    /// Must be called on the server's thread.
    pub unsafe fn with<T>(
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
