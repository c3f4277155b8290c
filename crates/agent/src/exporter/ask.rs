// SPDX-License-Identifier: MIT
//! Queries one server in a separate thread, so that a hanging server or home folder blocks only that thread.

use super::authority;
use crate::displays;
use crate::sample::Readings;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use xqos_client::{Control, Error, Peer, Socket};

/// Stack size of a query's thread. It is small, because a host with many displays briefly has one thread for each.
const STACK_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct Answer {
    pub display: u32,
    pub number: u64,
    pub took: Duration,
    /// The process that listens on the display, if any.
    pub server: Option<ServerProcess>,
    /// `Ok(None)`: an X server without xqos.
    pub readings: Result<Option<Readings>, Error>,
}

#[derive(Clone, Debug)]
pub struct ServerProcess {
    pub peer: Peer,
    /// Name as the kernel shows it.
    pub program: String,
}

/// Sends the answer over the channel. Returns false if no thread could be started.
pub fn ask(display: u32, number: u64, patience: Duration, answers: Sender<Answer>) -> bool {
    let asking = thread::Builder::new().name(format!("display {display}")).stack_size(STACK_BYTES);
    let work = move || {
        let begin = Instant::now();
        let mut server = None;
        let readings = visit(display, begin + patience, &mut server);
        let _ = answers.send(Answer { display, number, took: begin.elapsed(), server, readings });
    };
    asking.spawn(work).is_ok()
}

/// Queries the server and closes the connection, which would otherwise keep a server from exiting with its last client.
fn visit(display: u32, until: Instant, server: &mut Option<ServerProcess>) -> Result<Option<Readings>, Error> {
    let mut note_peer = |peer: Peer| {
        *server = Some(ServerProcess { peer, program: displays::program(peer.pid).unwrap_or_default() });
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
    control.as_ref().map(Readings::of).transpose()
}
