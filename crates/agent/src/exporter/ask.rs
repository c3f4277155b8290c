// SPDX-License-Identifier: MIT
//! Asks one server, in a thread of its own: what may take long (a server that hangs, a home folder that does not answer) takes
//! that thread and nobody else's time.

use super::authority;
use crate::displays;
use crate::sample::Readings;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use xqos_client::{Control, Error, Peer, Socket};

/// All that a question needs; a host with many displays has as many threads for a moment.
const STACK_BYTES: usize = 256 << 10;

/// What came of a question.
#[derive(Debug)]
pub struct Answer {
    pub display: u32,
    /// Of the question.
    pub number: u64,
    pub took: Duration,
    /// Who listens at the display, where somebody does.
    pub server: Option<ServerProcess>,
    /// `Ok(None)`: an X server without xqos.
    pub told: Result<Option<Readings>, Error>,
}

#[derive(Clone, Debug)]
pub struct ServerProcess {
    pub peer: Peer,
    /// As the kernel shows it.
    pub program: String,
}

/// The answer comes over the channel; false: there is no thread to be had.
pub fn ask(display: u32, number: u64, patience: Duration, answers: Sender<Answer>) -> bool {
    let asking = thread::Builder::new().name(format!("display {display}")).stack_size(STACK_BYTES);
    let work = move || {
        let begin = Instant::now();
        let mut server = None;
        let told = visit(display, begin + patience, &mut server);
        let _ = answers.send(Answer { display, number, took: begin.elapsed(), server, told });
    };
    asking.spawn(work).is_ok()
}

/// Nothing of it stays: it would keep a server from ending with its last client.
fn visit(display: u32, until: Instant, server: &mut Option<ServerProcess>) -> Result<Option<Readings>, Error> {
    let mut met = |peer: Peer| {
        *server = Some(ServerProcess { peer, program: displays::program(peer.pid).unwrap_or_default() });
        peer
    };
    let control = match Control::at_socket(display, Some(until))? {
        Some(control) => {
            control.peer().map(met);
            Some(control)
        }
        None => {
            let door = Socket::of_x(display, until)?;
            let authority = door.peer().map(|peer| authority::of(met(peer), display));
            Control::enter(door, display, authority.unwrap_or_default())?
        }
    };
    control.as_ref().map(Readings::of).transpose()
}
