//! The engine of this process, made when the server adds its first client. Used on the server's thread only.

use super::control::Asked;
use super::{Error, Libc, calls};
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use crate::mechanism::requests::{self, Form};
use crate::mechanism::settings::Settings;
use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use xqos_abi::Order;

struct Place {
    engine: Option<Box<Engine<Libc>>>,
    /// What the server has still to be told after we stepped aside.
    untold: Vec<libc::epoll_event>,
    busy: bool,
}

struct OnServerThread(UnsafeCell<Place>);

// SAFETY: `is_here` keeps all other threads away.
unsafe impl Sync for OnServerThread {}

static PLACE: OnServerThread = OnServerThread(UnsafeCell::new(Place { engine: None, untold: Vec::new(), busy: false }));
/// What the server was started with; none: this host is not wanted.
static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// The thread that added the first client; 0: none yet.
static THREAD: AtomicUsize = AtomicUsize::new(0);
static EPOLL: AtomicI32 = AtomicI32::new(-1);
const NO_DISPLAY: u32 = u32::MAX;
static DISPLAY: AtomicU32 = AtomicU32::new(NO_DISPLAY);

/// This process is a server that is to be served.
pub fn want(settings: Settings) {
    let _ = SETTINGS.set(settings);
}

pub fn is_wanted() -> bool {
    SETTINGS.get().is_some()
}

/// True on the server's thread.
pub fn is_here() -> bool {
    THREAD.load(Ordering::Relaxed) == this_thread()
}

/// True where this epoll is the server's, and it is its thread that waits.
pub fn serves(epoll: RawFd) -> bool {
    EPOLL.load(Ordering::Relaxed) == epoll && is_here()
}

fn this_thread() -> usize {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// The server listens for clients of this display.
pub fn listens_for(display: u32) {
    DISPLAY.store(display, Ordering::Relaxed);
    if is_here() {
        with_engine(|engine| {
            listen(engine);
            Ok(())
        });
    }
}

/// The server adds a client to this epoll: the first one makes the engine, and the first one after we stepped aside and
/// everybody has left makes another.
pub fn begin(epoll: RawFd) {
    let Some(settings) = SETTINGS.get() else { return };
    let is_first = THREAD.compare_exchange(0, this_thread(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // SAFETY: looked at on the server's thread only.
    let is_again = || serves(epoll) && unsafe { (*PLACE.0.get()).engine.is_none() } && calls::has_no_clients();
    if !is_first && !is_again() {
        return;
    }
    EPOLL.store(epoll, Ordering::Relaxed);
    match Libc::new(epoll, settings.chunk_ns) {
        Ok(host) => {
            let mut engine = Engine::new(host, settings);
            listen(&mut engine);
            // SAFETY: on the server's thread, and there is none yet.
            unsafe { (*PLACE.0.get()).engine = Some(Box::new(engine)) };
        }
        Err(error) => eprintln!("xqos: not started: {error}; this server is left untouched"),
    }
}

fn listen(engine: &mut Engine<Libc>) {
    let (epoll, display) = (engine.host.epoll(), DISPLAY.load(Ordering::Relaxed));
    if display == NO_DISPLAY || engine.host.control.is_listening() {
        return;
    }
    if let Err(error) = engine.host.control.listen(epoll, display) {
        eprintln!("xqos: no control socket for display {display}: {error}");
    }
}

/// Runs `work` on the engine; a panic or an error in it makes xqos step aside. `None`: no engine, busy, or a fault.
pub fn with_engine<T>(work: impl FnOnce(&mut Engine<Libc>) -> Result<T, Fault<Error>>) -> Option<T> {
    let place = PLACE.0.get();
    // SAFETY: on the server's thread, and `busy` keeps a nested call from a second reference to the engine.
    let engine = unsafe {
        if (*place).busy {
            return None;
        }
        let engine = (*place).engine.as_deref_mut()?;
        (*place).busy = true;
        engine
    };
    let result = fault::guarded(|| work(engine)).unwrap_or_else(|panic| Err(Fault::Panicked(panic)));
    // SAFETY: the reference above is not used any more.
    unsafe { (*place).busy = false };
    result.map_err(|reason| step_aside(&reason)).ok()
}

/// The server goes on alone: it is told of everybody who has data, and of each edge from then on.
fn step_aside(reason: &Fault<Error>) {
    eprintln!("xqos: {}", fault::line(&reason.to_string()));
    // SAFETY: on the server's thread; `busy` is false.
    let Some(mut engine) = (unsafe { (*PLACE.0.get()).engine.take() }) else { return };
    let untold = fault::guarded(|| {
        engine.step_back();
        engine.untold()
    });
    // SAFETY: as above.
    unsafe { (*PLACE.0.get()).untold = untold.unwrap_or_default() };
    calls::leave_own(engine.host.epoll());
    let _ = fault::guarded(|| drop(engine));
}

/// Whether the server has still to be told of anything.
pub fn has_untold() -> bool {
    // SAFETY: as below.
    unsafe { !(*PLACE.0.get()).untold.is_empty() }
}

/// An event that the server has still to be told; empty unless we stepped aside.
pub fn next_untold() -> Option<libc::epoll_event> {
    // SAFETY: on the server's thread; nobody holds a reference into the place here.
    unsafe { (*PLACE.0.get()).untold.pop() }
}

/// Answers what was asked over the control socket.
pub fn answer_control() {
    let received = with_engine(|engine| {
        let epoll = engine.host.epoll();
        let (asked, gone) = engine.host.control.receive(epoll);
        gone.into_iter().for_each(|id| engine.control_gone(id));
        Ok(asked)
    });
    for asked in received.unwrap_or_default() {
        with_engine(|engine| {
            answer(engine, &asked);
            Ok(())
        });
    }
}

fn answer(engine: &mut Engine<Libc>, asked: &Asked) {
    let form = Form { sequence: asked.sequence, order: Order::Native };
    let answer = requests::answer(engine, asked.asker, &asked.bytes, form);
    engine.host.control.reply(asked, answer);
}
