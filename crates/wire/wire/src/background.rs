// SPDX-License-Identifier: MIT
//! Background threads that run until they are stopped, and their clock. The relay, the link and the proxy use them.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

/// A background thread and its result. Dropping it stops the thread.
#[derive(Debug)]
pub struct Background<T> {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread. `run` gets a socket that becomes readable when the thread must end.
    pub fn start(name: &str, run: impl FnOnce(UnixStream) -> T + Send + 'static) -> io::Result<Background<T>> {
        let (ours, theirs) = UnixStream::pair()?;
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(theirs))?;
        Ok(Background { stop: Some(ours), thread: Some(thread) })
    }

    /// Stops the thread and returns its result.
    pub fn finish(mut self) -> io::Result<T> {
        self.end().ok_or_else(|| io::Error::other("the background thread panicked"))
    }
}

impl<T> Background<T> {
    fn end(&mut self) -> Option<T> {
        self.stop = None;
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Clock in nanoseconds since 1970 that never goes backwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    since_1970_ns: i64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock { since_1970_ns: xqos_sys::realtime_offset_ns() }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        xqos_sys::monotonic_ns().wrapping_add_signed(self.since_1970_ns)
    }
}
