// SPDX-License-Identifier: MIT
//! The programs to raise with --only-named: a line `PID` on standard input adds a program, and `-PID` removes it.
//!
//! The writer, such as `xqos rules run`, decides which programs to raise. When the writer exits, the input ends, and
//! this command exits.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};
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
        self.take(&mut io::stdin().lock())
    }

    fn take(&mut self, input: &mut impl BufRead) -> io::Result<Option<Vec<i32>>> {
        let mut no_longer = Vec::new();
        loop {
            match input.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut self.line) {
                Ok(0) => return Ok(None),
                Ok(_) if self.line.ends_with(b"\n") => no_longer.extend(self.end_line()?),
                Ok(_) if self.line.len() >= MAX_LINE => return Err(no_pid(&self.line)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(no_longer)),
                Err(error) => return Err(error),
            }
        }
    }

    fn end_line(&mut self) -> io::Result<Option<i32>> {
        let mut line = std::mem::take(&mut self.line);
        line.pop();
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

    /// An input on which nothing more is pending.
    struct Pending;

    impl Read for Pending {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn take(named: &mut Named, bytes: &[u8]) -> io::Result<Vec<i32>> {
        named.take(&mut io::BufReader::new(bytes.chain(Pending))).map(|removed| removed.expect("it has not ended"))
    }

    #[test]
    fn programs_are_added_and_removed_however_the_input_is_split() {
        let mut named = Named::default();
        assert!(take(&mut named, b"12\n3").unwrap().is_empty());
        assert!(named.has(12) && !named.has(3));
        assert_eq!(take(&mut named, b"4\n-12\n-99\n").unwrap(), [12]);
        assert!(named.has(34) && !named.has(12));
        assert!(named.take(&mut &b""[..]).unwrap().is_none(), "the input has ended");
    }

    #[test]
    fn other_input_is_an_error() {
        for bytes in [&b"x\n"[..], b"\n", b"1 2\n", b"\xff\n", &[b'1'; 40], b"-2147483648\n"] {
            assert!(take(&mut Named::default(), bytes).is_err(), "{bytes:?}");
        }
    }
}
