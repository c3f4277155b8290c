// SPDX-License-Identifier: MIT
//! Stepping aside: whatever goes wrong in xqos, the server goes on with its own scheduling.
//!
//! A fault is a panic caught at the border ([`guarded`]), a failed check, or a thread that ended. Everything that was
//! hooked is unhooked, every client that was held back is served again, priorities are what clients set, and the reason
//! stands in the server's log and in GetServerInfo.

use crate::mechanism::settings::{FaultPlace, PlannedFault};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why xqos steps aside. `E`: why the host cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault<E> {
    Panicked(String),
    /// A test asked for it ([`FaultPlace::Check`]).
    Planned,
    Host(E),
}

impl<E> From<E> for Fault<E> {
    fn from(error: E) -> Fault<E> {
        Fault::Host(error)
    }
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Fault::Panicked(message) => f.write_str(message),
            Fault::Planned => f.write_str("a test asked for a failed check"),
            Fault::Host(error) => error.fmt(f),
        }
    }
}

impl<E> Fault<E> {
    /// What came of [`guarded`] work.
    pub fn panicked(payload: &(dyn Any + Send)) -> Fault<E> {
        let text =
            payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref().cloned());
        Fault::Panicked(text.unwrap_or_else(|| "a panic without a message".to_owned()))
    }
}

/// Runs our code on a thread of the server's: a panic ends it, and no more. (Rust's own report of it, with the place, goes
/// to standard error, which is the server's log or beside it.)
pub fn guarded<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    catch_unwind(AssertUnwindSafe(work))
}

/// The line for the server's log.
pub fn line(reason: &str) -> String {
    format!("stepped aside: {reason}; the server schedules as if xqos were not there")
}

/// Deliberate faults, for tests: counts the passages through each place.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    planned: Option<PlannedFault>,
    passages: u64,
}

impl Counted {
    pub fn new(planned: Option<PlannedFault>) -> Self {
        Counted { planned, passages: 0 }
    }

    /// Fails where it was asked for.
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
