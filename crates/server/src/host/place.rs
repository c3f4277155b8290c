// SPDX-License-Identifier: MIT
//! What a host keeps for the server's thread alone: first of all the engine of this process.
//!
//! Behind [`with`](OnServerThread::with) is a panic boundary: whatever goes wrong there is a fault, for which the host steps
//! aside. The server may call us from within a call of ours (events that we cause, say): such a nested call finds the engine
//! busy and does nothing.

use crate::host::Host;
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use std::cell::UnsafeCell;

/// A value that only the server's thread touches.
#[derive(Debug)]
pub struct OnServerThread<T>(UnsafeCell<T>);

// SAFETY: whoever uses the pointer that `get` returns is on the server's thread.
unsafe impl<T> Sync for OnServerThread<T> {}

impl<T> OnServerThread<T> {
    pub const fn new(value: T) -> Self {
        OnServerThread(UnsafeCell::new(value))
    }

    /// The value: to be used on the server's thread, and by one function at a time.
    pub fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// The engine, and what its host keeps once it has stepped aside.
#[derive(Debug)]
pub struct Place<H, A> {
    pub engine: Option<Box<Engine<H>>>,
    pub aside: A,
    busy: bool,
}

impl<H, A> Place<H, A> {
    pub const fn new(aside: A) -> Self {
        Place { engine: None, aside, busy: false }
    }
}

impl<H: Host, A> OnServerThread<Place<H, A>> {
    /// Runs `work` on the engine. `None`: there is no engine, or it is busy.
    ///
    /// # Safety
    /// On the server's thread.
    pub unsafe fn with<T>(
        &self,
        work: impl FnOnce(&mut Engine<H>) -> Result<T, Fault<H::Error>>,
    ) -> Option<Result<T, Fault<H::Error>>> {
        let place = self.get();
        // SAFETY: as the caller says, and `busy` keeps a nested call from a second reference to the engine.
        let engine = unsafe {
            if (*place).busy {
                return None;
            }
            let engine = (*place).engine.as_deref_mut()?;
            (*place).busy = true;
            engine
        };
        let result = fault::guarded(|| work(engine)).unwrap_or_else(|panic| Err(Fault::panicked(panic.as_ref())));
        // SAFETY: the reference above is not used any more.
        unsafe { (*place).busy = false };
        Some(result)
    }
}
