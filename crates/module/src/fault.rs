//! Stepping aside: whatever goes wrong in xqos, the server goes on with its own scheduling.
//!
//! A fault is a panic caught at the border ([`guarded`]), a failed check, or a thread that ended. Everything that was
//! hooked is unhooked, every client that was held back is served again, priorities are what clients set, and the reason
//! stands in the server's log and in GetServerInfo.

use crate::host::Host;
use crate::settings::{Fault, FaultPlace};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Where and why the last panic of this thread happened.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps Rust's own report of a panic in our code out of the server's log; the log gets one line from us.
/// Panics of other Rust code in the process are reported as before.
pub fn install_panic_record() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            let why = format!("{} at {place}", message(panic.payload()));
            let inside = INSIDE.with(|inside| inside.get());
            if inside {
                LAST_PANIC.with(|last| *last.borrow_mut() = Some(why));
            } else {
                previous(panic);
            }
        }));
    });
}

thread_local! {
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs our code on a thread of the server's: a panic becomes its reason.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let was_inside = INSIDE.with(|inside| inside.replace(true));
    let result = catch_unwind(AssertUnwindSafe(work));
    INSIDE.with(|inside| inside.set(was_inside));
    result.map_err(|payload| {
        LAST_PANIC.with(|last| last.borrow_mut().take()).unwrap_or_else(|| message(payload.as_ref()))
    })
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
