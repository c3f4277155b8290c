// SPDX-License-Identifier: MIT
//! Parses a line of the kernel's trace.

/// A system call of the server's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Thread that made the call.
    pub pid: i32,
    /// Time on the kernel's monotonic clock.
    pub at_ns: u64,
    pub call: Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read(i32),
    /// Opened a file (not a connection) as this descriptor.
    Opened(i32),
    Close(i32),
    /// Waits for any client.
    Wait,
    /// Returned from a wait.
    Woken,
}

/// System calls that wait for any client.
pub const WAITS: [&str; 7] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "select", "pselect6", "poll", "ppoll"];

impl Event {
    /// Parses `Xvfb-1651 [001] ..... 21126.746307: sys_recvmsg(fd: 8, msg: 0x7ffd2047aca0, flags: 0)`. The line starts
    /// with the name of the program, which may be any text. The end of a call reads `sys_epoll_wait -> 0x1`. Returns
    /// `None` for any other line.
    pub fn parse(line: &str) -> Option<Event> {
        let (before, call) = line.rsplit_once(": sys_")?;
        // In reverse: the time, flags, the processor, and the program with its thread id.
        let mut words = before.split_ascii_whitespace().rev();
        let (seconds, fraction) = words.next()?.split_once('.')?;
        let pid = words.nth(2).and_then(|word| word.rsplit_once('-')?.1.parse().ok())?;
        let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
        let at_ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)?;
        if let Some((name, result)) = call.split_once(" -> ") {
            if name == "openat" {
                // An error is a negative number, which does not parse here.
                let opened = i32::from_str_radix(result.trim_end().trim_start_matches("0x"), 16).ok()?;
                return Some(Event { pid, at_ns, call: Call::Opened(opened) });
            }
            return WAITS.contains(&name).then_some(Event { pid, at_ns, call: Call::Woken });
        }
        let (name, arguments) = call.split_once('(')?;
        let descriptor = || {
            let number = arguments.strip_prefix("fd: ")?.split([',', ')']).next()?;
            i32::from_str_radix(number.trim_start_matches("0x"), 16).ok()
        };
        let call = match name {
            "recvmsg" | "recvfrom" | "read" | "readv" => Call::Read(descriptor()?),
            "close" => Call::Close(descriptor()?),
            _ if WAITS.contains(&name) => Call::Wait,
            _ => return None,
        };
        Some(Event { pid, at_ns, call })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_lines_are_parsed_into_events() {
        let read = "  Xvfb-16511   [001] ..... 21126.746307: sys_recvmsg(fd: 8, msg: 0x7ffd2047aca0, flags: 0)";
        assert_eq!(Event::parse(read), Some(Event { pid: 16_511, at_ns: 21_126_746_307_000, call: Call::Read(8) }));
        let wide = "Xvfb-1 [0] ..... 1.000000: sys_read(fd: 0x1f, buf: 0x0, count: 0x10)";
        assert_eq!(Event::parse(wide), Some(Event { pid: 1, at_ns: 1_000_000_000, call: Call::Read(31) }));
        let close = "Xvfb-1 [0] ..... 1.000000: sys_close(fd: a)";
        assert_eq!(Event::parse(close), Some(Event { pid: 1, at_ns: 1_000_000_000, call: Call::Close(10) }));
        let opened = "Xvfb-1 [0] ..... 1.000000: sys_openat -> 0xa";
        assert_eq!(Event::parse(opened), Some(Event { pid: 1, at_ns: 1_000_000_000, call: Call::Opened(10) }));
        assert_eq!(Event::parse("Xvfb-1 [0] ..... 1.000000: sys_openat -> 0xfffffffffffffffe"), None);
        let wait = "X: sys_read(-7 [0] ..... 2.5: sys_epoll_wait(epfd: 3, events: 0x0, maxevents: 0x100)";
        assert_eq!(Event::parse(wait), Some(Event { pid: 7, at_ns: 2_500_000_000, call: Call::Wait }));
        let woken = "Xvfb-1 [0] ..... 2.5: sys_epoll_wait -> 0x1";
        assert_eq!(Event::parse(woken), Some(Event { pid: 1, at_ns: 2_500_000_000, call: Call::Woken }));
    }

    #[test]
    fn other_lines_are_ignored() {
        let whole = "Xvfb-16511 [001] ..... 21126.746307: sys_recvmsg(fd: 8, msg: 0x7ffd2047aca0, flags: 0)";
        for length in 0..whole.len() {
            // A line that is cut within the arguments may still be an event. A shorter line must not panic.
            let event = Event::parse(&whole[..length]);
            assert!(event.is_none() || length > whole.find("fd: ").unwrap(), "{}", &whole[..length]);
        }
        let bad = [
            "",
            ": sys_",
            ": sys_read(",
            "1.5: sys_read(fd: zz)",
            "1.5: sys_read(fd: ffffffffff)",
            "99999999999999999999.5: sys_poll()",
            "18446744073709551615.9: sys_poll()",
            "1.ä: sys_poll()",
            "1.5: sys_write(fd: 3)",
            "CPU:0 [LOST 12 EVENTS]",
        ];
        for line in bad {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
