// SPDX-License-Identifier: MIT
//! What /proc shows of processes and threads.
//!
//! A process is identified by its pid and start time, because pids are reused. Each function reads one file. `None` or
//! an empty value means that the process has exited, or that this user may not read the file.
//!
//! The crate `procfs` would not make this shorter: its table of Unix sockets lacks the flag of listening sockets, it
//! rejects a whole table because of one unknown line, and it opens a folder for each process.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// USER_HZ, the unit of times in /proc, is 100 on all architectures of Debian.
const TICKS_PER_S: u64 = 100;

/// Suffix that the kernel adds to the path of a program whose file was replaced, for example by an upgrade.
const DELETED: &str = " (deleted)";

/// A process that is running, or that has exited but has not been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: i32,
    /// Start time, in clock ticks since boot.
    pub started: u64,
    /// It has exited; only its entry is left.
    pub zombie: bool,
    /// Processor time in clock ticks, including that of its children that have exited.
    pub ticks: u64,
}

/// A source of processes: /proc, or a model of it in tests.
pub trait Processes {
    fn look(&self, pid: i32) -> Option<Process>;
    fn all(&self) -> HashMap<i32, Process>;
}

#[derive(Clone, Copy, Debug)]
pub struct Procfs;

impl Processes for Procfs {
    fn look(&self, pid: i32) -> Option<Process> {
        parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn all(&self) -> HashMap<i32, Process> {
        pids().into_iter().filter_map(|pid| Some((pid, self.look(pid)?))).collect()
    }
}

pub fn pids() -> Vec<i32> {
    numbers("/proc")
}

/// The threads of a process; empty if the process has exited.
pub fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// True if the process exists. A pid from another pid namespace may be 0 or unknown here.
pub fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The user that a process runs as.
pub fn owner(pid: i32) -> io::Result<u32> {
    Ok(fs::metadata(format!("/proc/{pid}"))?.uid())
}

/// The name of a process as the kernel shows it to all users: the first 15 bytes of its program's name.
pub fn name(pid: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// The arguments of a process, each with a zero byte after it.
pub fn command_line(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// The path of a process's program. The file may have been replaced since the process started.
pub fn program_path(pid: i32) -> Option<PathBuf> {
    let path = fs::read_link(program_file(pid)).ok()?;
    Some(path.to_str().and_then(|path| path.strip_suffix(DELETED)).map(PathBuf::from).unwrap_or(path))
}

/// A path that opens the running program, even if its file was replaced.
pub fn program_file(pid: i32) -> PathBuf {
    format!("/proc/{pid}/exe").into()
}

/// The working folder of a process, as a path that leads to it.
pub fn working_folder(pid: i32) -> PathBuf {
    format!("/proc/{pid}/cwd").into()
}

/// The memory map of a process. Each line describes a mapping and ends with the path of its file.
pub fn maps(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default()
}

/// The control group in the unified hierarchy, or else in systemd's own hierarchy.
pub fn control_group(pid: i32) -> Option<String> {
    parse_control_group(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

fn parse_control_group(text: &str) -> Option<String> {
    let of = |head: &str| text.lines().find_map(|line| line.strip_prefix(head));
    let path = of("0::").or_else(|| text.lines().find_map(|line| Some(line.split_once(":name=systemd:")?.1)))?;
    Some(path.to_owned())
}

/// The process of a thread.
pub fn process_of(thread: u32) -> Option<u32> {
    field(&fs::read_to_string(format!("/proc/{thread}/status")).ok()?, "Tgid:")?.parse().ok()
}

/// True if this process ignores a signal.
pub fn ignores(signal: i32) -> bool {
    is_ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = field(status, "SigIgn:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// What a descriptor of a process refers to: a path, or words such as `socket:[INODE]`.
pub fn open_file(pid: i32, descriptor: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()
}

/// The open descriptors of this process.
pub fn own_descriptors() -> Vec<RawFd> {
    numbers("/proc/self/fd")
}

/// The fdinfo files of all epolls of this process.
pub fn own_epolls() -> impl Iterator<Item = File> {
    let is_epoll = |fd: &RawFd| {
        fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|to| to == Path::new("anon_inode:[eventpoll]"))
    };
    let epolls = own_descriptors().into_iter().filter(is_epoll);
    epolls.filter_map(|fd| File::open(format!("/proc/self/fdinfo/{fd}")).ok())
}

/// The descriptors that an epoll watches, from its fdinfo: lines such as `tfd:        5 events:       19 data: 7f01a8`.
pub fn epoll_targets(info: &str) -> impl Iterator<Item = RawFd> {
    let targets = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    targets.filter_map(|rest| rest.split_whitespace().next()?.parse().ok())
}

/// What the open descriptors of a process refer to.
pub fn open_files(pid: i32) -> impl Iterator<Item = PathBuf> {
    numbers(&format!("/proc/{pid}/fd")).into_iter().filter_map(move |descriptor| open_file(pid, descriptor))
}

/// Inodes of the sockets that a process has open.
pub fn sockets(pid: i32) -> HashSet<u64> {
    let inode = |path: PathBuf| path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    open_files(pid).filter_map(inode).collect()
}

/// How often a thread stopped running. Each wakeup of a sleeping thread is followed by at least one such switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSwitches {
    pub tid: i32,
    pub name: String,
    pub voluntary: u64,
    pub involuntary: u64,
}

/// The switches of each thread of a process; empty if the process has exited.
pub fn switches(pid: i32) -> Vec<ThreadSwitches> {
    let of_thread = |tid| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let name = field(&status, "Name:").unwrap_or("?").to_owned();
        let voluntary = number(&status, "voluntary_ctxt_switches:").ok()?;
        Some(ThreadSwitches { tid, name, voluntary, involuntary: number(&status, "nonvoluntary_ctxt_switches:").ok()? })
    };
    threads(pid).into_iter().filter_map(of_thread).collect()
}

/// Memory of a process. Private dirty memory is what the process costs beyond the files that it shares with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    pub rss_kb: u64,
    pub pss_kb: u64,
    pub private_dirty_kb: u64,
}

pub fn memory(pid: i32) -> io::Result<MemoryUse> {
    let text = read(format!("/proc/{pid}/smaps_rollup"))?;
    let [rss_kb, pss_kb, private_dirty_kb] = ["Rss:", "Pss:", "Private_Dirty:"].map(|name| number(&text, name));
    Ok(MemoryUse { rss_kb: rss_kb?, pss_kb: pss_kb?, private_dirty_kb: private_dirty_kb? })
}

/// Bytes that a process has written so far to files, pipes and sockets.
pub fn written(pid: i32) -> io::Result<u64> {
    number(&read(format!("/proc/{pid}/io"))?, "wchar:")
}

fn read(path: String) -> io::Result<String> {
    fs::read_to_string(&path).map_err(|error| io::Error::new(error.kind(), format!("cannot read {path}: {error}")))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn number(text: &str, name: &str) -> io::Result<u64> {
    let value = field(text, name).and_then(|value| value.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("/proc has no number {name}")))
}

/// Processor time that a process has used so far, without its children.
pub fn processor_time(pid: i32) -> Option<Duration> {
    parse_processor_time(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_processor_time(stat: &[u8]) -> Option<Duration> {
    let mut times = fields_after_name(stat)?.skip(11).map(|field| field.parse::<u64>().ok());
    let ticks = times.next()??.checked_add(times.next()??)?;
    Some(Duration::from_millis(ticks.checked_mul(1000 / TICKS_PER_S)?))
}

/// How long a thread has run, and how long it has waited for a processor. The file stays open, so that a reading is one
/// system call.
#[derive(Debug)]
pub struct RunTimes(File);

impl RunTimes {
    pub fn of(thread: i32) -> Option<RunTimes> {
        File::open(format!("/proc/{thread}/schedstat")).ok().map(RunTimes)
    }

    pub fn of_this_thread() -> Option<RunTimes> {
        File::open("/proc/thread-self/schedstat").ok().map(RunTimes)
    }

    /// Nanoseconds that the thread has waited for a processor; 0 if the kernel does not report it.
    pub fn delayed_ns(&self) -> u64 {
        self.read_ns().map_or(0, |(_, delayed_ns)| delayed_ns)
    }

    /// Nanoseconds that the thread has run, and that it has waited for a processor.
    pub fn read_ns(&self) -> Option<(u64, u64)> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse_run_times(std::str::from_utf8(&text[..length]).ok()?)
    }
}

fn parse_run_times(schedstat: &str) -> Option<(u64, u64)> {
    let mut fields = schedstat.split_whitespace().map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

/// The fields of /proc/PID/stat from field 3 on. Field 2 is the program's name in parentheses; the name can contain
/// spaces and parentheses.
fn fields_after_name(stat: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    Some(std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace())
}

fn parse_stat(stat: &[u8]) -> Option<Process> {
    let mut fields = fields_after_name(stat)?;
    // Fields 3 (state), 4 (parent), 14 to 17 (ticks) and 22 (start).
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
    let ticks = number(9)? + number(0)? + number(0)? + number(0)?;
    let started = number(4)?;
    Some(Process { parent, started, zombie: matches!(state, "Z" | "X"), ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_shift_the_fields() {
        let stat = b"42 (a ) S 7 (b) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 0";
        assert_eq!(parse_stat(stat), Some(Process { parent: 17, started: 98765, zombie: false, ticks: 26 }));
        let stat = b"42 (x) Z 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10 0";
        assert!(parse_stat(stat).unwrap().zombie);
        assert_eq!(parse_stat(b"42 (x"), None);
        assert_eq!(parse_stat(b"42 (x) S 1"), None);
    }

    #[test]
    fn the_time_of_a_process_is_read_whatever_its_name() {
        let stat = b"12 (a) R 1 2) S 1 2 3 4 5 6 7 8 9 10 250 50 7 8 20 0 1 0 5";
        assert_eq!(parse_processor_time(stat), Some(Duration::from_secs(3)));
        assert_eq!((parse_processor_time(b"12 (a) S 1"), parse_processor_time(b"")), (None, None));
        assert!(processor_time(std::process::id() as i32).is_some() && processor_time(i32::MAX).is_none());
    }

    #[test]
    fn the_control_group_is_that_of_the_unified_hierarchy() {
        assert_eq!(parse_control_group("1:cpu:/x\n0::/user.slice/a.scope\n").as_deref(), Some("/user.slice/a.scope"));
        assert_eq!(parse_control_group("1:name=systemd:/b.scope\n").as_deref(), Some("/b.scope"));
        assert_eq!(parse_control_group("12:cpu:/app-x-1.scope\n0::/\n").as_deref(), Some("/"));
        assert_eq!(parse_control_group(""), None);
    }

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\txqos\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, libc::SIGHUP));
        assert!(!is_ignored(status, libc::SIGINT) && !is_ignored("", libc::SIGHUP));
    }

    #[test]
    fn only_target_lines_are_parsed() {
        let info = "pos:\t0\nflags:\t02\nmnt_id:\t15\ntfd:        5 events:       19 data: 7f01a8  pos:0\n\
                    tfd:       12 events: 80000019 data:  1\ntfd: x\n";
        assert_eq!(epoll_targets(info).collect::<Vec<_>>(), [5, 12]);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "Name:\tXvfb\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(text, "Name:"), Some("Xvfb"));
        assert_eq!(number(text, "voluntary_ctxt_switches:").unwrap(), 12);
        assert_eq!(number(text, "nonvoluntary_ctxt_switches:").unwrap(), 3);
        assert!(number(text, "VmRSS:").is_err());
        assert_eq!((parse_run_times("5 7 1\n"), parse_run_times("")), (Some((5, 7)), None));
    }

    #[test]
    fn figures_of_this_process_can_be_read() {
        let pid = std::process::id() as i32;
        assert!(memory(pid).unwrap().rss_kb > 100);
        assert!(switches(pid).iter().any(|thread| thread.tid == pid));
        assert!(RunTimes::of(pid).is_some_and(|times| times.read_ns().is_some()));
    }

    #[test]
    fn this_process_is_listed() {
        let me = std::process::id() as i32;
        let process = Procfs.look(me).expect("/proc is mounted");
        assert_eq!(process.parent, std::os::unix::process::parent_id() as i32);
        assert_eq!(Procfs.all().get(&me).map(|one| one.started), Some(process.started));
        assert_eq!(Procfs.look(-1), None);
        assert!(threads(me).contains(&me) && threads(-1).is_empty());
        assert!(exists(me) && !exists(0));
    }
}
