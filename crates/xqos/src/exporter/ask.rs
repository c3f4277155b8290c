// SPDX-License-Identifier: MIT
//! Asks one server, in a thread of its own: what may take long (a server that hangs, a home folder that does not answer) takes
//! that thread and nobody else's time.

use super::authority;
use std::fs;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};
use xqos_client::visit::{Peer, Readings, Visit};

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
    pub told: Result<Option<Readings>, String>,
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
        let (server, told) = visit(display, begin + patience);
        let _ = answers.send(Answer { display, number, took: begin.elapsed(), server, told });
    };
    asking.spawn(work).is_ok()
}

/// A server gives its reason with the end of a line, or with whatever else it likes.
fn one_line(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

fn visit(display: u32, until: Instant) -> (Option<ServerProcess>, Result<Option<Readings>, String>) {
    let visit = match Visit::begin(display, until) {
        Ok(visit) => visit,
        Err(error) => return (None, Err(error.to_string())),
    };
    let peer = visit.peer();
    let program = fs::read_to_string(format!("/proc/{}/comm", peer.pid)).unwrap_or_default().trim_end().to_owned();
    let told = visit.enter(authority::of(peer, display)).and_then(|guest| match guest {
        Some(mut guest) => guest.read().map(Some),
        None => Ok(None),
    });
    (Some(ServerProcess { peer, program }), told.map_err(|error| one_line(&error.to_string())))
}
