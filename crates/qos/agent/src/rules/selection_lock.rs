// SPDX-License-Identifier: MIT
//! The lock of a display's rules daemon: a manager selection (ICCCM 2.8), which only one client can own.
//!
//! The owner's window has the pid of its process as a property. To end the daemon, a client takes the selection. The
//! server notifies the daemon, which undoes its settings and exits. The daemon's window is destroyed when its
//! connection closes, so the client learns that the daemon has finished.
//!
//! A client asks the daemon a [`DaemonQuery`] by converting the selection (ICCCM 2.4). The answer is a property of the
//! client's window.

use crate::error::{Result, asking, bail, refused};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask,
    PropMode, SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;
use x11rb::{COPY_DEPTH_FROM_PARENT, COPY_FROM_PARENT, CURRENT_TIME, NONE};
use xqos_sys as sys;

/// The selection is one per display, regardless of the number of screens.
const SELECTION: &[u8] = b"_XQOS_RULES_S0";
const PID: &[u8] = b"_NET_WM_PID";
/// Undoing settings takes a few requests, so a daemon that takes longer is assumed to hang.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer in one request; every server accepts requests of this size.
const CHUNK: usize = 1 << 17;
/// Maximum size of an answer, in units of four bytes.
const MAX_ANSWER: u32 = 1 << 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    window: Window,
    /// 0 if the window has no such property.
    pub pid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonQuery {
    Status,
    /// Read the rule files again; the answer is the status afterwards.
    Reload,
}

impl DaemonQuery {
    const ALL: [DaemonQuery; 2] = [DaemonQuery::Status, DaemonQuery::Reload];

    /// The name of the target to which the selection is converted.
    fn target(self) -> &'static [u8] {
        match self {
            DaemonQuery::Status => b"_XQOS_RULES_STATUS",
            DaemonQuery::Reload => b"_XQOS_RULES_RELOAD",
        }
    }
}

/// The selection. It is ours until the connection ends or another client takes it.
#[derive(Debug)]
pub struct SelectionLock {
    window: Window,
    selection: Atom,
    targets: [Atom; 2],
}

impl SelectionLock {
    /// Takes the selection. The error says which process has it.
    pub fn acquire(connection: &RustConnection, display: &str) -> Result<SelectionLock> {
        let selection = atom(connection, SELECTION)?;
        let window = window(connection)?;
        let pid = atom(connection, PID)?;
        connection.change_property32(PropMode::REPLACE, window, pid, AtomEnum::CARDINAL, &[std::process::id()])?;
        // During a server grab, no other client can take the selection between our query and our request.
        connection.grab_server()?;
        let held = holder(connection);
        let taken = match &held {
            Ok(None) => connection.set_selection_owner(window, selection, CURRENT_TIME).map(|_| ()),
            _ => Ok(()),
        };
        connection.ungrab_server()?;
        taken?;
        if let Some(holder) = held? {
            let who = if holder.pid == 0 { "another client".to_owned() } else { format!("pid {}", holder.pid) };
            bail!("{who} already applies rules on the X server {display}: `xqos rules off` ends it");
        }
        connection.flush()?;
        let [status, reload] = DaemonQuery::ALL.map(|question| atom(connection, question.target()));
        Ok(SelectionLock { window, selection, targets: [status?, reload?] })
    }

    /// Returns true if this event reports that another client has taken the selection.
    pub fn is_lost_by(&self, event: &Event) -> bool {
        matches!(event, Event::SelectionClear(clear) if clear.owner == self.window && clear.selection == self.selection)
    }

    /// The client and its settings that this event returns to the rules ([`return_settings`]).
    pub fn returned_by(&self, event: &Event) -> Option<(u32, u32)> {
        match event {
            Event::ClientMessage(said) if said.window == self.window && said.type_ == self.selection => {
                let [client, settings, ..] = said.data.as_data32();
                Some((client, settings)).filter(|_| said.format == 32)
            }
            _ => None,
        }
    }

    /// The question that a client asks with this event; the inner `None` is an unknown question.
    pub fn asked_by(&self, event: &Event) -> Option<(SelectionRequestEvent, Option<DaemonQuery>)> {
        let Event::SelectionRequest(asked) = event else { return None };
        let at = self.targets.iter().position(|&target| target == asked.target);
        let is_ours = asked.owner == self.window && asked.selection == self.selection;
        is_ours.then(|| (*asked, at.map(|at| DaemonQuery::ALL[at])))
    }
}

/// Answers a question; without a text, refuses it. If the client has disconnected, nothing happens.
pub fn answer(connection: &RustConnection, asked: &SelectionRequestEvent, text: Option<&str>) -> Result<()> {
    let &SelectionRequestEvent { time, requestor, selection, target, property, .. } = asked;
    let text = text.filter(|_| property != NONE);
    for (at, part) in text.iter().flat_map(|text| text.as_bytes().chunks(CHUNK)).enumerate() {
        let mode = if at == 0 { PropMode::REPLACE } else { PropMode::APPEND };
        connection.change_property8(mode, requestor, property, target, part)?.ignore_error();
    }
    let property = if text.is_some() { property } else { NONE };
    let response_type = SELECTION_NOTIFY_EVENT;
    let event = SelectionNotifyEvent { response_type, sequence: 0, time, requestor, selection, target, property };
    connection.send_event(false, requestor, EventMask::NO_EVENT, event)?.ignore_error();
    Ok(connection.flush()?)
}

/// Asks the daemon of a display a question; `None` if there is no daemon.
pub fn ask(connection: &RustConnection, question: DaemonQuery) -> Result<Option<String>> {
    let Some(holder) = holder(connection)? else { return Ok(None) };
    let (window, target) = (window(connection)?, atom(connection, question.target())?);
    connection.convert_selection(window, atom(connection, SELECTION)?, target, target, CURRENT_TIME)?;
    connection.flush()?;
    let property = wait(connection, holder, |event| match event {
        Event::SelectionNotify(answer) if answer.requestor == window => Some(answer.property),
        _ => None,
    })?;
    if property == NONE {
        bail!("the rules daemon (pid {}) gives no answer: it has exited, or is of another version", holder.pid);
    }
    let text = connection.get_property(true, window, property, AtomEnum::ANY, 0, MAX_ANSWER)?.reply()?;
    Ok(Some(String::from_utf8_lossy(&text.value).into_owned()))
}

/// Notifies the daemon of a display that the rules control these settings of a client again. Returns the daemon.
pub fn return_settings(connection: &RustConnection, client: u32, settings: u32) -> Result<Option<Holder>> {
    let Some(holder) = holder(connection)? else { return Ok(None) };
    let event = ClientMessageEvent::new(32, holder.window, atom(connection, SELECTION)?, [client, settings, 0, 0, 0]);
    // Wait for the reply, because a server may lose the last request of a client that disconnects immediately. If the
    // daemon exits now, the next one starts with the current settings.
    let _ = connection.send_event(false, holder.window, EventMask::NO_EVENT, event)?.check();
    Ok(Some(holder))
}

/// Ends the daemon of a display and waits until it has undone its settings; `None` if there is none.
pub fn end_daemon(connection: &RustConnection) -> Result<Option<Holder>> {
    let Some(holder) = holder(connection)? else { return Ok(None) };
    let events = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
    // If the daemon exits now, that is the intended result.
    let is_there = connection.change_window_attributes(holder.window, &events)?.check().is_ok();
    connection.set_selection_owner(window(connection)?, atom(connection, SELECTION)?, CURRENT_TIME)?;
    connection.flush()?;
    if is_there {
        let is_gone = |event| matches!(event, Event::DestroyNotify(gone) if gone.window == holder.window).then_some(());
        wait(connection, holder, is_gone)?;
    }
    Ok(Some(holder))
}

/// Waits for an event that the daemon causes.
fn wait<T>(connection: &RustConnection, holder: Holder, wanted: impl Fn(Event) -> Option<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match connection.poll_for_event()?.map(&wanted) {
            Some(Some(found)) => return Ok(found),
            Some(None) => {}
            None if Instant::now() > end => bail!("the rules daemon (pid {}) does not answer: kill it", holder.pid),
            None => {
                let left = end.saturating_duration_since(Instant::now());
                sys::poll(&[connection.stream().as_raw_fd()], Some(left))
                    .map_err(asking("cannot wait for the X server"))?;
            }
        }
    }
}

pub fn holder(connection: &RustConnection) -> Result<Option<Holder>> {
    let window = connection.get_selection_owner(atom(connection, SELECTION)?)?.reply()?.owner;
    if window == NONE {
        return Ok(None);
    }
    let pid = connection.get_property(false, window, atom(connection, PID)?, AtomEnum::CARDINAL, 0, 1)?.reply();
    let pid = pid.ok().and_then(|pid| pid.value32()?.next());
    Ok(Some(Holder { window, pid: pid.unwrap_or(0) }))
}

fn atom(connection: &RustConnection, name: &[u8]) -> Result<Atom> {
    Ok(connection.intern_atom(false, name)?.reply()?.atom)
}

/// Creates an invisible window that owns the selection.
fn window(connection: &RustConnection) -> Result<Window> {
    let root = connection.setup().roots.first().ok_or_else(|| refused!("the X server has no screen"))?.root;
    let window = connection.generate_id()?;
    let nothing = CreateWindowAux::new().override_redirect(1);
    connection.create_window(
        COPY_DEPTH_FROM_PARENT,
        window,
        root,
        -1,
        -1,
        1,
        1,
        0,
        WindowClass::INPUT_ONLY,
        COPY_FROM_PARENT,
        &nothing,
    )?;
    Ok(window)
}
