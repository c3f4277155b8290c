// SPDX-License-Identifier: MIT
//! The engine of this process, created when the server adds its first client and used on the server's thread only.

use super::Libc;
use super::clients::pending_events;
use crate::host::control;
use crate::host::engine_cell::{EngineCell, OnServerThread, step_back};
use crate::host::kernel::now;
use crate::host::real_libc::{self, CLIENTS};
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use crate::mechanism::settings::{FaultPlace, Settings};
use std::convert::Infallible;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// The engine. After xqos stepped aside: the events that the server has not received yet, with their descriptors.
static ENGINE: OnServerThread<EngineCell<Libc, Vec<(RawFd, libc::epoll_event)>>> =
    OnServerThread::new(EngineCell::new(Vec::new()));
/// The server's settings; not set if this host is not used.
static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// The thread that added the first client; 0 before that.
static THREAD: AtomicUsize = AtomicUsize::new(0);
static EPOLL: AtomicI32 = AtomicI32::new(-1);
const NO_DISPLAY: u32 = u32::MAX;
static DISPLAY: AtomicU32 = AtomicU32::new(NO_DISPLAY);

/// Makes this host serve the process.
pub fn enable(settings: Settings) {
    let _ = SETTINGS.set(settings);
}

pub fn is_enabled() -> bool {
    SETTINGS.get().is_some()
}

/// Makes the calling thread the server's thread, with this epoll. For tests with one server at a time.
#[cfg(test)]
pub fn serve(epoll: RawFd, settings: &Settings) {
    let _ = SETTINGS.set(settings.clone());
    THREAD.store(this_thread(), Ordering::Relaxed);
    EPOLL.store(epoll, Ordering::Relaxed);
    let engine = Engine::new(Libc::new(epoll, settings.chunk_ns).unwrap(), settings, now());
    // SAFETY: no other thread uses it.
    unsafe {
        *ENGINE.get() = EngineCell::new(Vec::new());
        (*ENGINE.get()).engine = Some(Box::new(engine));
    }
}

/// Returns true if there is an engine, that is, xqos has not stepped aside.
#[cfg(test)]
pub fn is_served() -> bool {
    // SAFETY: as above.
    unsafe { (*ENGINE.get()).engine.is_some() }
}

/// Ends the server started by [`serve`], so that its descriptors may be reused. Returns false if xqos stepped aside.
#[cfg(test)]
pub fn end() -> bool {
    // SAFETY: as above.
    let engine = unsafe { (*ENGINE.get()).engine.take() };
    engine.iter().for_each(|engine| real_libc::leave_own(engine.host.epoll));
    engine.is_some()
}

pub fn is_server_thread() -> bool {
    let thread = THREAD.load(Ordering::Relaxed);
    thread != 0 && thread == this_thread()
}

/// Returns true if this is the server's epoll and the caller is the server's thread.
pub fn serves(epoll: RawFd) -> bool {
    EPOLL.load(Ordering::Relaxed) == epoll && is_server_thread()
}

fn this_thread() -> usize {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// The server listens for clients of this display.
pub fn listens_for(display: u32) {
    DISPLAY.store(display, Ordering::Relaxed);
    if is_server_thread() {
        update(listen);
    }
}

/// The server is adding a client to this epoll. Creates the engine for the first client, and again for a client that
/// connects after xqos stepped aside and all clients left.
pub fn begin(epoll: RawFd) {
    let Some(settings) = SETTINGS.get() else { return };
    if DISPLAY.load(Ordering::Relaxed) == NO_DISPLAY {
        // The server began to listen before its calls were interposed.
        DISPLAY.store(real_libc::display_of_process().unwrap_or(NO_DISPLAY), Ordering::Relaxed);
    }
    let is_first = THREAD.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // SAFETY: the cell is read on the server's thread only.
    let is_again = || serves(epoll) && unsafe { (*ENGINE.get()).engine.is_none() } && CLIENTS.is_empty();
    if !is_first && !is_again() {
        return;
    }
    EPOLL.store(epoll, Ordering::Relaxed);
    match Libc::new(epoll, settings.chunk_ns) {
        Ok(host) => {
            let mut engine = Engine::new(host, settings, now());
            listen(&mut engine);
            // SAFETY: this runs on the server's thread, before there is an engine.
            unsafe { (*ENGINE.get()).engine = Some(Box::new(engine)) };
        }
        Err(error) => eprintln!("xqos: not started: {error}; the server keeps its own scheduling"),
    }
}

fn listen(engine: &mut Engine<Libc>) {
    let (epoll, display) = (engine.host.epoll, DISPLAY.load(Ordering::Relaxed));
    if display == NO_DISPLAY || engine.host.control.is_listening(display) {
        return;
    }
    if let Err(error) = engine.host.control.listen(epoll, display) {
        eprintln!("xqos: the control socket for display {display} was not created: {error}");
    }
}

/// Runs `work` on the engine. A panic or error makes xqos step aside. Returns `None` if there is no engine, if it is in
/// use, or after a fault.
pub fn with_engine<T>(work: impl FnOnce(&mut Engine<Libc>) -> Result<T, Fault<Infallible>>) -> Option<T> {
    let work = |engine: &mut Engine<Libc>| engine.fail_on_purpose(FaultPlace::Call).and_then(|()| work(engine));
    // SAFETY: this runs on the server's thread.
    unsafe { ENGINE.with(work) }?.map_err(|fault| step_aside(&fault)).ok()
}

/// Like [`with_engine`], for work that returns nothing and cannot fail.
pub fn update(work: impl FnOnce(&mut Engine<Libc>)) {
    with_engine(|engine| {
        work(engine);
        Ok(())
    });
}

/// Steps aside: the server receives the pending events of all clients, and from then on every new event.
fn step_aside(fault: &Fault<Infallible>) {
    eprintln!("xqos: {}", fault::line(&fault.to_string()));
    // SAFETY: this runs on the server's thread, and `busy` is false.
    let Some(mut engine) = (unsafe { (*ENGINE.get()).engine.take() }) else { return };
    step_back(&mut engine, now());
    let pending = fault::guarded(|| pending_events(&engine));
    // SAFETY: as above.
    unsafe { (*ENGINE.get()).aside = pending.unwrap_or_default() };
    real_libc::leave_own(engine.host.epoll);
    let _ = fault::guarded(|| drop(engine));
}

/// Returns true if there are events that the server must still receive.
pub fn has_pending() -> bool {
    // SAFETY: as below.
    unsafe { !(*ENGINE.get()).aside.is_empty() }
}

/// The next event that the server must still receive. There are such events only after xqos stepped aside.
pub fn next_pending() -> Option<libc::epoll_event> {
    // SAFETY: this runs on the server's thread, without another reference to the engine cell.
    unsafe { (*ENGINE.get()).aside.pop() }.map(|(_, event)| event)
}

/// Drops pending event bits of a descriptor that the server has closed or stopped listening to.
pub fn drop_pending(fd: RawFd, bits: u32) {
    // SAFETY: as above.
    let pending = unsafe { &mut (*ENGINE.get()).aside };
    for (_, event) in pending.iter_mut().filter(|(other, _)| *other == fd) {
        event.events &= !bits;
    }
    pending.retain(|(_, event)| event.events != 0);
}

pub fn answer_control() {
    let Some(epoll) = with_engine(|engine| Ok(engine.host.epoll)) else { return };
    control::answer_all(|work| update(|engine| work(engine)), epoll, |host| &mut host.control);
}
