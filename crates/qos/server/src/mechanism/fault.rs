// SPDX-License-Identifier: MIT
//! Stepping aside: if anything goes wrong in xqos, the server continues with its own scheduling.
//!
//! A fault is a panic caught by [`guarded`], a failed check, or a thread that ended. xqos then removes all its hooks,
//! releases all held clients, restores the priorities that clients have set, and reports the reason in the server's log
//! and in GetServerInfo.

use crate::mechanism::settings::{FaultPlace, PlannedFault};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why xqos steps aside. `E` is the host's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault<E> {
    #[error("{0}")]
    Panicked(String),
    /// A test requested this fault ([`FaultPlace::Check`]).
    #[error("a test asked for a failed check")]
    Planned,
    #[error("{0}")]
    Host(E),
}

impl<E> From<E> for Fault<E> {
    fn from(error: E) -> Fault<E> {
        Fault::Host(error)
    }
}

impl<E> Fault<E> {
    /// Converts the panic that [`guarded`] caught.
    pub fn panicked(payload: &(dyn Any + Send)) -> Fault<E> {
        let text =
            payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref().cloned());
        Fault::Panicked(text.unwrap_or_else(|| "a panic without a message".to_owned()))
    }
}

/// Runs our code on one of the server's threads and catches any panic. (Rust prints the panic and its location to
/// standard error, which may be the server's log.)
pub fn guarded<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    catch_unwind(AssertUnwindSafe(work))
}

/// The line for the server's log.
pub fn line(reason: &str) -> String {
    format!("stepped aside: {reason}; the server continues with its own scheduling")
}

/// Counts passages of the place of a planned fault, to cause deliberate faults in tests.
#[derive(Clone, Copy, Debug)]
pub struct FaultCounter {
    planned: Option<PlannedFault>,
    passages: u64,
}

impl FaultCounter {
    pub fn new(planned: Option<PlannedFault>) -> Self {
        FaultCounter { planned, passages: 0 }
    }

    /// Fails if this is the passage at which the test requested a fault.
    pub fn pass<E>(&mut self, place: FaultPlace) -> Result<(), Fault<E>> {
        let Some(fault) = self.planned.filter(|fault| fault.place == place) else { return Ok(()) };
        self.passages += 1;
        if self.passages != fault.count {
            return Ok(());
        }
        assert!(place == FaultPlace::Check, "a test asked for a fault in {place:?}");
        Err(Fault::Planned)
    }
}
