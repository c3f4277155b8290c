//! What the server calls. Each function here is a panic boundary: behind it is safe Rust, before it C.
//!
//! There is one [`Engine`] for each generation of the server (from start or reset to the next reset), used on the
//! server's thread only. The server may call a hook from within a call of ours (events that we cause, say): such a
//! nested call finds the engine busy and does nothing.

use crate::host::dix::client::{self, Client};
use crate::host::dix::entry;
use crate::host::dix::symbols::{ClientPtr, ExtensionEntry, Host, host, x_error};
use crate::host::dix::sync_priority;
use crate::mechanism::engine::Engine;
use crate::mechanism::extension;
use crate::mechanism::fault;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use xqos_core::PolicyKind;

struct Place {
    engine: Option<Box<Engine>>,
    /// Why there is none any more.
    aside: Option<String>,
    busy: bool,
}

struct OnServerThread(UnsafeCell<Place>);

// SAFETY: the server calls all hooks on its main thread.
unsafe impl Sync for OnServerThread {}

static PLACE: OnServerThread = OnServerThread(UnsafeCell::new(Place { engine: None, aside: None, busy: false }));

/// Runs `work` on the engine; a panic or an error in it makes xqos step aside. `None`: no engine, busy, or a fault.
pub fn with_engine<T>(work: impl FnOnce(&mut Engine) -> Result<T, String>) -> Option<T> {
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
    let result = fault::guarded(|| work(engine)).and_then(|result| result);
    // SAFETY: the reference above is not used any more.
    unsafe { (*place).busy = false };
    match result {
        Ok(value) => Some(value),
        Err(reason) => {
            step_aside(reason);
            None
        }
    }
}

/// Why xqos stepped aside, if it did.
pub fn aside() -> Option<String> {
    // SAFETY: on the server's thread; nobody holds a reference into the place here.
    unsafe { (*PLACE.0.get()).aside.clone() }
}

/// The server sets up its extensions: at start, and after each reset.
pub unsafe extern "C" fn init_extension() {
    let Ok(host) = host() else { return };
    if let Err(reason) = fault::guarded(|| start(host)).and_then(|result| result) {
        host.log(&format!("not started: {reason}; this server is left untouched"));
    }
}

fn start(host: &'static Host) -> Result<(), String> {
    let settings = entry::settings().ok_or("it was not registered")?;
    // SAFETY: a name that lives for ever and procedures of the types of extnsionst.h.
    let extension = unsafe {
        (host.add_extension)(
            c"XQOS".as_ptr(),
            xqos_abi::EVENTS.into(),
            xqos_abi::ERRORS.into(),
            dispatch,
            dispatch,
            close_down,
            host.standard_minor_opcode,
        )
        .as_ref()
    };
    let extension = extension.ok_or("the server has no room for another extension")?;
    let engine = Engine::new(host, settings, extension)?;
    // SAFETY: on the server's thread, and no engine exists: it was dropped when the last generation closed down.
    unsafe {
        (*PLACE.0.get()).aside = None;
        (*PLACE.0.get()).engine = Some(Box::new(engine));
        (host.register_handlers)(block, wakeup, null_mut());
        (host.add_callback)(host.client_state_callback, client_state, null_mut());
        (host.add_callback)(host.event_callback, event, null_mut());
        (host.add_callback)(host.server_grab_callback, server_grab, null_mut());
        if !host.selection_callback.is_null() {
            (host.add_callback)(host.selection_callback, selection, null_mut());
        }
    }
    with_engine(|engine| engine.hook(sync_request, release_timer));
    Ok(())
}

fn unhook(host: &Host) {
    // SAFETY: the very functions that `start` gave; the server allows it within its handlers and callbacks.
    unsafe {
        (host.remove_handlers)(block, wakeup, null_mut());
        (host.delete_callback)(host.client_state_callback, client_state, null_mut());
        (host.delete_callback)(host.event_callback, event, null_mut());
        (host.delete_callback)(host.server_grab_callback, server_grab, null_mut());
        if !host.selection_callback.is_null() {
            (host.delete_callback)(host.selection_callback, selection, null_mut());
        }
    }
}

/// Leaves the server as if we had never been there, but for an extension that says why.
fn step_aside(reason: String) {
    let Ok(host) = host() else { return };
    fault::report(host, &reason);
    unhook(host);
    // SAFETY: on the server's thread; `busy` is false and stays so for the callers above us.
    let engine = unsafe {
        (*PLACE.0.get()).aside = Some(reason);
        (*PLACE.0.get()).engine.take()
    };
    if let Some(mut engine) = engine {
        // Even what is left undone by a second fault in here must not reach the server.
        let _ = fault::guarded(|| engine.let_go());
        let _ = fault::guarded(|| drop(engine));
    }
}

/// The generation ends: reset or exit of the server.
unsafe extern "C" fn close_down(_extension: *mut ExtensionEntry) {
    let Ok(host) = host() else { return };
    // SAFETY: on the server's thread, between generations; nothing of ours is on the stack.
    let engine = unsafe { (*PLACE.0.get()).engine.take() };
    if let Some(mut engine) = engine {
        unhook(host);
        let _ = fault::guarded(|| {
            engine.let_go();
            drop(engine);
        });
    }
}

unsafe extern "C" fn block(_data: *mut c_void, _timeout: *mut c_void) {
    with_engine(Engine::block);
}

unsafe extern "C" fn wakeup(_data: *mut c_void, _result: c_int) {
    // Xephyr puts events off that it read while it waited for the server around it: they would wait for a whole slice.
    let decides = with_engine(|engine| Ok(engine.scheduler.policy() != PolicyKind::Stock));
    if let (Some(true), Ok(host)) = (decides, host()) {
        host.do_queued_work();
    }
    with_engine(Engine::wakeup);
}

unsafe extern "C" fn client_state(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: the argument of this callback.
    if let Some(client) = unsafe { client::of_state_info(info) } {
        with_engine(|engine| engine.client_state(client));
    }
}

unsafe extern "C" fn event(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    with_engine(|engine| {
        // SAFETY: the argument of this callback.
        match unsafe { client::of_event_info(info, engine.xinput_opcode()) } {
            (Some(client), Some(is_input)) => engine.noticed(client, is_input),
            (Some(client), None) => engine.told(client),
            (None, _) => {}
        }
        Ok(())
    });
}

unsafe extern "C" fn server_grab(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: the argument of this callback.
    if let (Some(client), Some(grabs)) = unsafe { client::of_grab_info(info) } {
        with_engine(|engine| engine.grabbed(client, grabs));
    }
}

unsafe extern "C" fn selection(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: the argument of this callback.
    let (atom, owner) = unsafe { client::of_selection_info(info) };
    with_engine(|engine| {
        engine.selection(atom, owner);
        Ok(())
    });
}

/// The timer for the end of a hold fired; the wakeup handler that follows does the rest.
unsafe extern "C" fn release_timer(fd: c_int, _ready: c_int, _data: *mut c_void) {
    crate::host::dix::watcher::drain(fd);
}

/// Stands before the requests of SYNC.
unsafe extern "C" fn sync_request(raw: ClientPtr) -> c_int {
    // SAFETY: the client that the server dispatches.
    let Some(client) = (unsafe { Client::new(raw) }) else { return x_error::IMPLEMENTATION };
    let concerned = sync_priority::concerns_priorities(client);
    let original = with_engine(|engine| {
        if concerned {
            engine.show_priorities();
        }
        Ok(engine.original_of_sync(client))
    });
    // Wrapped for good where somebody else wrapped SYNC after us and xqos is gone.
    let Some(original) = original.flatten().or_else(|| sync_priority::last_original(client)) else {
        return x_error::IMPLEMENTATION;
    };
    let result = sync_priority::call(original, raw);
    if concerned {
        with_engine(|engine| {
            engine.take_priorities();
            Ok(())
        });
    }
    result
}

/// A request of XQOS, in either byte order.
unsafe extern "C" fn dispatch(raw: ClientPtr) -> c_int {
    // SAFETY: the client that the server dispatches.
    let Some(client) = (unsafe { Client::new(raw) }) else { return x_error::IMPLEMENTATION };
    match aside() {
        Some(reason) => extension::answer_aside(client, &reason),
        None => with_engine(|engine| Ok(extension::answer(engine, client))).unwrap_or(x_error::IMPLEMENTATION),
    }
}
