// SPDX-License-Identifier: MIT
//! The kernel's trace of the server's system calls: an instance of our own, removed when it is dropped.

use super::events::Event;
use anyhow::{Context, Result, anyhow, bail};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "xqos-";
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Reads, and waits with their ends.
const CALLS: [&str; 18] = [
    "enter_recvmsg",
    "enter_recvfrom",
    "enter_read",
    "enter_readv",
    "enter_epoll_wait",
    "enter_epoll_pwait",
    "enter_epoll_pwait2",
    "enter_select",
    "enter_pselect6",
    "enter_poll",
    "enter_ppoll",
    "exit_epoll_wait",
    "exit_epoll_pwait",
    "exit_epoll_pwait2",
    "exit_select",
    "exit_pselect6",
    "exit_poll",
    "exit_ppoll",
];
/// For each processor. A busy server makes some hundred thousand calls a second, each of less than 64 bytes.
const BUFFER_KB: &str = "8192";

#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    pipe: Option<File>,
    rest: Vec<u8>,
    /// Keeps the file system that nobody else sees.
    _mount: Option<OwnedFd>,
}

impl Instance {
    /// Watches the main threads of processes.
    pub fn start(pids: &[i32]) -> Result<Instance> {
        let (place, mount) = tracefs()?;
        let instances = place.join("instances");
        remove_those_left_behind(&instances);
        let folder = instances.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("the kernel makes no trace for us at {}", folder.display()))?;
        let mut instance = Instance { folder, pipe: None, rest: Vec::new(), _mount: mount };
        instance.set_up(pids).context("the kernel does not trace system calls for us")?;
        Ok(instance)
    }

    fn set_up(&mut self, pids: &[i32]) -> Result<()> {
        let write = |name: &str, value: &str| {
            let path = self.folder.join(name);
            fs::write(&path, value).with_context(|| format!("cannot write {value} to {name}"))
        };
        write("trace_clock", "mono")?;
        write("buffer_size_kb", BUFFER_KB)?;
        write("set_event_pid", &pids.iter().map(i32::to_string).collect::<Vec<_>>().join(" "))?;
        for call in CALLS {
            let event = format!("events/syscalls/sys_{call}/enable");
            // Not every machine has all of them.
            if self.folder.join(&event).exists() {
                write(&event, "1")?;
            } else if call == "enter_recvmsg" {
                bail!("it has no events of system calls (CONFIG_FTRACE_SYSCALLS)");
            }
        }
        let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(self.folder.join("trace_pipe"))?;
        self.pipe = Some(pipe);
        Ok(())
    }

    /// The events that have come since.
    pub fn read(&mut self, mut take: impl FnMut(Event)) -> Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut chunk = vec![0; 1 << 16];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.rest.extend_from_slice(&chunk[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the kernel's trace cannot be read"),
            }
            let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else { continue };
            let lines: Vec<u8> = self.rest.drain(..=end).collect();
            String::from_utf8_lossy(&lines).lines().filter_map(Event::parse).for_each(&mut take);
        }
    }

    /// Events that found no room so far.
    pub fn lost(&self) -> u64 {
        let processors = fs::read_dir(self.folder.join("per_cpu")).into_iter().flatten().flatten();
        let lost = |stats: String| {
            let line = stats.lines().find_map(|line| line.strip_prefix("overrun: ")?.trim().parse::<u64>().ok());
            line.unwrap_or(0)
        };
        processors.filter_map(|entry| fs::read_to_string(entry.path().join("stats")).ok()).map(lost).sum()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It cannot be removed while somebody reads it.
        self.pipe = None;
        let _ = fs::write(self.folder.join("events/enable"), "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The kernel's trace files: where they are mounted, else mounted for us alone, which changes nothing for others.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>)> {
    if let Some(place) = PLACES.iter().map(Path::new).find(|place| place.join("instances").exists()) {
        return Ok((place.to_owned(), None));
    }
    let open = || {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    let mount = open().map_err(|error| match error {
        rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => {
            anyhow!("watching a server from outside takes the kernel's trace, which is root's: run it with sudo")
        }
        rustix::io::Errno::NODEV => {
            anyhow!("this kernel has no tracefs (CONFIG_FTRACE): a server cannot be watched from outside")
        }
        error => anyhow!("the kernel's trace files (tracefs) cannot be opened: {error}"),
    })?;
    let place = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    // A mount of ours is reached by its descriptor.
    rustix::fs::access(place.join("instances"), rustix::fs::Access::READ_OK).context("tracefs has no instances")?;
    Ok((place, Some(mount)))
}

/// A process that was killed could not remove its own.
fn remove_those_left_behind(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(NAME)?.parse().ok());
        if pid.is_some_and(|pid| !xqos_proc::exists(pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
