// SPDX-License-Identifier: MIT
//! Functions that the server calls. Each is a panic boundary between the C server and safe Rust.
//!
//! Each generation of the server (from start or reset to the next reset) has one [`Engine`], used on the server's
//! thread only.

use crate::host::dix::cell::{self, aside_reason, tables, update, with_engine};
use crate::host::dix::client::{self, ClientPtr, ConnectionState, LiveClient};
use crate::host::dix::cut;
use crate::host::dix::error::Error;
use crate::host::dix::symbols::{Callback, ExtensionEntry, Symbols, symbols, x_error};
use crate::host::dix::{Dix, clients, order_of, per_request};
use crate::host::engine_cell::step_back;
use crate::host::kernel::{self, now};
use crate::host::libc::instance;
use crate::host::{control, startup};
use crate::mechanism::engine::Engine;
use crate::mechanism::fault::{self, Fault};
use crate::mechanism::requests::{self, Format, Refused};
use crate::mechanism::settings::FaultPlace;
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use xqos_core::PolicyKind;

/// Called when the server sets up its extensions, at start and after each reset.
pub unsafe extern "C" fn init_extension() {
    let Ok(symbols) = symbols() else { return };
    if instance::is_enabled() {
        return;
    }
    let started = fault::guarded(|| start(symbols).map_err(Fault::from));
    let started = started.unwrap_or_else(|panic| Err(Fault::panicked(panic.as_ref())));
    if let Err(reason) = started {
        symbols.log(&format!("not started: {reason}; the server keeps its own scheduling"));
    }
}

fn start(symbols: &'static Symbols) -> Result<(), Error> {
    let settings = startup::settings().ok_or(Error::NotRegistered)?;
    // SAFETY: the name is static, and the procedures have the types in extnsionst.h.
    let extension = unsafe {
        (symbols.add_extension)(
            c"XQOS".as_ptr(),
            xqos_abi::EVENTS.into(),
            xqos_abi::ERRORS.into(),
            dispatch,
            dispatch,
            close_down,
            symbols.standard_minor_opcode,
        )
        .as_ref()
    };
    let extension = extension.ok_or(Error::NoRoom)?;
    tables().set_wrappers(per_request::native, per_request::swapped);
    cell::begin(Engine::new(Dix::new(symbols, extension, settings)?, settings, now()), step_aside);
    // SAFETY: the functions have the types that the server expects, and `unhook` removes them.
    unsafe {
        (symbols.register_handlers)(block, wakeup, null_mut());
        for (list, callback) in callbacks(symbols) {
            (symbols.add_callback)(list, callback, null_mut());
        }
    }
    with_engine(|engine| Ok(engine.host.hook(wakeup_timer, control_asked)?));
    Ok(())
}

fn unhook(symbols: &Symbols) {
    // SAFETY: the same functions as in `start`. The server allows a handler or callback to be removed while it runs.
    unsafe {
        (symbols.remove_handlers)(block, wakeup, null_mut());
        for (list, callback) in callbacks(symbols) {
            (symbols.delete_callback)(list, callback, null_mut());
        }
    }
}

/// The server's callback lists and our callback for each.
fn callbacks(symbols: &Symbols) -> impl Iterator<Item = (*mut c_void, Callback)> {
    let all: [(_, Callback); 4] = [
        (symbols.client_state_callback, client_state),
        (symbols.event_callback, event),
        (symbols.server_grab_callback, server_grab),
        (symbols.selection_callback, selection),
    ];
    all.into_iter().filter(|(list, _)| !list.is_null())
}

/// Leaves the server as if xqos had never been there, except for the extension, which reports the reason. A server with
/// unknown records is served through libc instead, if no client has connected yet.
fn step_aside(fault: &Fault<Error>) {
    let Ok(symbols) = symbols() else { return };
    let reason = fault.to_string();
    unhook(symbols);
    let engine = cell::take_engine();
    let is_unknown = matches!(fault, Fault::Host(Error::UnknownServer(..) | Error::UnknownRecord));
    let is_new = engine.as_ref().is_some_and(|engine| engine.host.has_no_clients());
    if is_unknown && is_new && startup::serve_through_libc() {
        symbols.log(&format!("{reason}; the server is served through libc instead"));
        symbols.hide_extension(c"XQOS");
    } else {
        symbols.log(&fault::line(&reason));
    }
    cell::set_aside(reason);
    if let Some(mut engine) = engine {
        // A second fault, in this code, must not reach the server either.
        step_back(&mut engine, now());
        let _ = fault::guarded(|| drop(engine));
    }
    if cut::has_rests() {
        // A cut request waits for its client's next dispatch, unless the client disconnects first.
        // SAFETY: as in `start`.
        unsafe { (symbols.add_callback)(symbols.client_state_callback, client_state, null_mut()) };
    }
}

/// Called when a generation ends, because the server resets or exits.
unsafe extern "C" fn close_down(_extension: *mut ExtensionEntry) {
    let Ok(symbols) = symbols() else { return };
    if let Some(mut engine) = cell::take_engine() {
        unhook(symbols);
        step_back(&mut engine, now());
        let _ = fault::guarded(|| drop(engine));
    }
    cut::forget();
}

unsafe extern "C" fn block(_data: *mut c_void, _timeout: *mut c_void) {
    cut::slice_ended();
    with_engine(|engine| engine.at(now()).block());
}

unsafe extern "C" fn wakeup(_data: *mut c_void, _result: c_int) {
    // Xephyr queues events that it read while it waited for its host server. Handle them before the next slice.
    let decides = with_engine(|engine| Ok(engine.scheduler.policy() != PolicyKind::Stock));
    if let (Some(true), Ok(symbols)) = (decides, symbols()) {
        symbols.do_queued_work();
    }
    let now = now();
    let decided = with_engine(|engine| {
        if let Some(server) = engine.host.check()? {
            engine.server_is_known(&server);
        }
        engine.at(now).wakeup()?;
        // The actions of `wakeup` may change which clients are ready.
        let can_decide = engine.actions.is_empty();
        if can_decide {
            engine.decide()?;
        }
        Ok(can_decide)
    });
    if decided == Some(false) {
        with_engine(|engine| engine.at(now).decide());
    }
    with_engine(|engine| {
        if let Some(at) = engine.host.watcher.missed().and_then(|missed| engine.missed_end(missed)) {
            engine.host.watcher.end_at(at);
        }
        Ok(())
    });
}

unsafe extern "C" fn client_state(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: `info` is the argument of this callback.
    if let Some(client) = unsafe { client::of_state_info(info) } {
        let state = client.state();
        if matches!(state, ConnectionState::Retained | ConnectionState::Gone) {
            cut::gone(client, state == ConnectionState::Gone);
        }
        with_engine(|engine| clients::state_changed(engine.at(now()), client));
        if let (Some(_), false, Ok(symbols)) = (aside_reason(), cut::has_rests(), symbols()) {
            // `step_aside` has kept this callback for the rests.
            // SAFETY: as in `start`.
            unsafe { (symbols.delete_callback)(symbols.client_state_callback, client_state, null_mut()) };
        }
    }
}

unsafe extern "C" fn event(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    with_engine(|engine| {
        engine.fail_on_purpose(FaultPlace::Event)?;
        // SAFETY: `info` is the argument of this callback.
        let (client, is_input) = unsafe { client::of_event_info(info, engine.host.checked.xinput_opcode) };
        let Some(id) = client.and_then(|client| engine.host.id_of(client)) else { return Ok(()) };
        match is_input {
            Some(is_input) => engine.at(now()).input_or_expose(id, is_input),
            None if engine.is_desktop_client(id) => engine.at(now()).delivered(id),
            None => {}
        }
        Ok(())
    });
}

unsafe extern "C" fn server_grab(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: `info` is the argument of this callback.
    if let (Some(client), Some(grabs)) = unsafe { client::of_grab_info(info) } {
        update(|engine| {
            engine.host.grabbed = grabs;
            cut::grabbed(grabs);
            if let Some(id) = engine.host.id_of(client) {
                engine.at(now()).grabbed(id, grabs);
            }
        });
    }
}

unsafe extern "C" fn selection(_list: *mut *mut c_void, _data: *mut c_void, info: *mut c_void) {
    // SAFETY: `info` is the argument of this callback.
    let (atom, owner) = unsafe { client::of_selection_info(info) };
    update(|engine| {
        if let Some(name) = engine.host.symbols.atom_name(atom) {
            let owner = owner.and_then(|owner| engine.host.id_of(owner));
            engine.at(now()).selection(&name, owner);
        }
    });
}

/// Called when the timer for the end of a hold expires. The wakeup handler, which runs next, ends the hold.
unsafe extern "C" fn wakeup_timer(fd: c_int, _ready: c_int, _data: *mut c_void) {
    kernel::drain(fd);
}

/// Called when a request arrives on the control socket.
unsafe extern "C" fn control_asked(_fd: c_int, _ready: c_int, _data: *mut c_void) {
    let Some(epoll) = with_engine(|engine| Ok(engine.host.control_epoll.as_raw_fd())) else { return };
    control::answer_all(|work| update(|engine| work(engine)), epoll, |host| &mut host.control);
}

/// Handles an XQOS request in either byte order.
unsafe extern "C" fn dispatch(raw: ClientPtr) -> c_int {
    // SAFETY: the server passes the client whose request it dispatches.
    let Some(client) = (unsafe { LiveClient::new(raw) }) else { return x_error::IMPLEMENTATION };
    let (request, format) = (client.request(), Format { sequence: client.sequence() as u16, order: order_of(client) });
    let answer = match aside_reason() {
        Some(reason) => requests::answer_aside(&request, format, &reason, now(), kernel::thread_cpu_ns()).map(Some),
        None => with_engine(|engine| {
            let asker = engine.host.id_of(client);
            Ok(asker.map_or(Err(Refused::Implementation), |asker| {
                requests::answer(engine.at(now()), asker, &request, format)
            }))
        })
        .unwrap_or(Err(Refused::Implementation)),
    };
    match (answer, symbols()) {
        (Ok(Some(reply)), Ok(symbols)) => symbols.send(client, &reply),
        (Ok(_), _) => {}
        (Err(refused), _) => {
            let first_error = with_engine(|engine| Ok(engine.host.first_error)).unwrap_or_default();
            let (code, value) = refused.code(first_error);
            client.set_error_value(value);
            return code.into();
        }
    }
    x_error::SUCCESS
}
