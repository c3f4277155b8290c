//! Stepping aside: whatever goes wrong in xqos, the server goes on with its own scheduling.
//!
//! A fault is a panic caught at the border ([`guarded`]), a failed check, or a thread that ended. Everything that was
//! hooked is unhooked, every client that was held back is served again, priorities are what clients set, and the reason
//! stands in the server's log and in GetServerInfo.

use crate::host::dix::symbols::Host;
use crate::mechanism::settings::{Fault, FaultPlace};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs our code on a thread of the server's: a panic becomes its reason. (Rust's own report of it, with the place, goes
/// to standard error, which is the server's log or beside it.)
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(payload.as_ref()))
}

/// The line for the server's log.
pub fn report(host: &Host, reason: &str) {
    host.log(&format!("stepped aside: {reason}; the server schedules as if xqos were not there"));
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Deliberate faults, for tests: counts the passages through each place.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    fault: Option<Fault>,
    passages: u64,
}

impl Counted {
    pub fn new(fault: Option<Fault>) -> Self {
        Counted { fault, passages: 0 }
    }

    /// The event at which the watcher is to fail; 0: at none.
    pub fn in_watcher(&self) -> u64 {
        self.fault.filter(|fault| fault.place == FaultPlace::Watcher).map_or(0, |fault| fault.count)
    }

    /// Fails where it was asked for.
    pub fn pass(&mut self, place: FaultPlace) -> Result<(), String> {
        let Some(fault) = self.fault.filter(|fault| fault.place == place) else { return Ok(()) };
        self.passages += 1;
        if self.passages != fault.count {
            return Ok(());
        }
        assert!(place == FaultPlace::Check, "a test asked for a fault in {place:?}");
        Err("a test asked for a failed check".to_owned())
    }
}
