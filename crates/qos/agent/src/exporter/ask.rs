// SPDX-License-Identifier: MIT
//! Queries one server in a separate thread, so that a hanging server or home folder blocks only that thread.

use super::authority;
use crate::sample::Readings;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use xqos_client::{Control, Error, Peer, Socket};
use xqos_sys::proc;

/// Stack size of a query's thread. It is small, because a host with many displays briefly has one thread for each.
const STACK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct QueryResult {
    pub display: u32,
    pub number: u64,
    pub took: Duration,
    /// The process that listens on the display, if any.
    pub server: Option<ServerProcess>,
    pub found: Result<Found, Error>,
}

#[derive(Debug)]
pub enum Found {
    /// The server has no clients. If it was checked, it answers.
    Idle,
    /// The server runs without xqos.
    Stock,
    Served(Box<Readings>),
}

#[derive(Clone, Debug)]
pub struct ServerProcess {
    pub peer: Peer,
    /// Name as the kernel shows it.
    pub program: String,
}

/// How to query a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    Query,
    /// For a server without clients: only check whether it answers.
    Check,
    /// Like `Check`, but only over the control socket, because a connection might start, reset or end the server.
    ControlSocket,
}

/// Sends the answer over the channel. Returns false if no thread could be started.
pub fn ask(display: u32, visit: Visit, number: u64, patience: Duration, answers: Sender<QueryResult>) -> bool {
    let asking = thread::Builder::new().name(format!("display {display}")).stack_size(STACK_BYTES);
    let work = move || {
        let begin = Instant::now();
        let mut server = None;
        let until = begin + patience;
        let found = match visit {
            Visit::Query => query(display, until, &mut server),
            Visit::Check | Visit::ControlSocket => check(display, until, visit),
        };
        let _ = answers.send(QueryResult { display, number, took: begin.elapsed(), server, found });
    };
    asking.spawn(work).is_ok()
}

/// Queries the server and closes the connection, which would otherwise keep a server from exiting with its last client.
fn query(display: u32, until: Instant, server: &mut Option<ServerProcess>) -> Result<Found, Error> {
    let mut note_peer = |peer: Peer| {
        *server = Some(ServerProcess { peer, program: proc::name(peer.pid).unwrap_or_default() });
        peer
    };
    let control = match Control::at_socket(display, Some(until))? {
        Some(control) => {
            control.peer().map(note_peer);
            Some(control)
        }
        None => {
            let socket = Socket::for_display(display, until)?;
            let authority = socket.peer().map(|peer| authority::find(note_peer(peer), display));
            Control::enter(socket, display, authority.unwrap_or_default())?
        }
    };
    Ok(match &control {
        Some(control) => Found::Served(Box::new(Readings::of(control)?)),
        None => Found::Stock,
    })
}

/// Finds out whether a server without clients answers, and does not become its client.
fn check(display: u32, until: Instant, visit: Visit) -> Result<Found, Error> {
    if Control::at_socket(display, Some(until))?.is_none() && visit == Visit::Check {
        Socket::for_display(display, until)?.check()?;
    }
    Ok(Found::Idle)
}
