// SPDX-License-Identifier: MIT
//! The programs to raise with --only-named: a line `PID` on standard input adds a program, and `-PID` removes it.
//!
//! The writer, such as `xqos rules run`, decides which programs to raise. When the writer exits, the input ends, and
//! this command exits.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Longest line; a line holds one number.
const MAX_LINE: usize = 32;

#[derive(Debug, Default)]
pub struct Named {
    pids: BTreeSet<i32>,
    /// The part of the current line that has been read.
    line: Vec<u8>,
}

impl Named {
    pub fn from_input() -> io::Result<Named> {
        let input = io::stdin();
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Named::default())
    }

    pub fn has(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }

    /// Reads the pending input and returns the removed programs; `None` at the end of the input.
    pub fn update(&mut self) -> io::Result<Option<Vec<i32>>> {
        let (mut chunk, mut no_longer) = ([0; 1024], Vec::new());
        loop {
            match read(io::stdin(), &mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => no_longer.extend(self.take(&chunk[..count])?),
                Err(Errno::AGAIN) => return Ok(Some(no_longer)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<Vec<i32>> {
        let mut no_longer = Vec::new();
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
            } else if let Some(pid) = self.end_line()? {
                no_longer.push(pid);
            }
            if self.line.len() > MAX_LINE {
                return Err(no_pid(&self.line));
            }
        }
        Ok(no_longer)
    }

    fn end_line(&mut self) -> io::Result<Option<i32>> {
        let line = std::mem::take(&mut self.line);
        let number: Option<i32> = std::str::from_utf8(&line).ok().and_then(|line| line.parse().ok());
        let number = number.filter(|&number| number > i32::MIN).ok_or_else(|| no_pid(&line))?;
        if number > 0 {
            self.pids.insert(number);
            return Ok(None);
        }
        Ok(self.pids.remove(&-number).then_some(-number))
    }
}

impl AsRawFd for Named {
    fn as_raw_fd(&self) -> RawFd {
        io::stdin().as_raw_fd()
    }
}

fn no_pid(line: &[u8]) -> io::Error {
    let line = String::from_utf8_lossy(line).escape_debug().to_string();
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("standard input has the line '{line}': write one process id per line"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_added_and_removed_however_the_input_is_split() {
        let mut named = Named::default();
        assert!(named.take(b"12\n3").unwrap().is_empty());
        assert!(named.has(12) && !named.has(3));
        assert_eq!(named.take(b"4\n-12\n-99\n").unwrap(), [12]);
        assert!(named.has(34) && !named.has(12));
    }

    #[test]
    fn other_input_is_an_error() {
        for bytes in [&b"x\n"[..], b"\n", b"1 2\n", b"\xff\n", &[b'1'; 40], b"-2147483648\n"] {
            assert!(Named::default().take(bytes).is_err(), "{bytes:?}");
        }
    }
}
