// SPDX-License-Identifier: MIT
//! A private trace instance in the kernel's tracefs, which starts with all events disabled.
//!
//! The instance does not affect other tracing. If tracefs is not mounted, it is mounted privately, invisible to other
//! processes. Timestamps use the clock of the server's records. The instance is removed on drop; if a process was
//! killed, the next process removes its instance. All of this requires root.

use anyhow::{Context, Result, anyhow};
use rustix::fs::{Access, OFlags, access};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = "xqos-";
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    /// Must be closed before the instance is removed: the kernel refuses to remove an instance that is open.
    pipe: Option<File>,
    rest: Vec<u8>,
    /// Keeps the private mount alive.
    _mount: Option<OwnedFd>,
}

impl Instance {
    pub fn create() -> Result<Instance> {
        let (root, mount) = find_or_mount()?;
        let instances = root.join("instances");
        remove_orphans(&instances);
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("cannot create a trace instance at {}", folder.display()))?;
        let mut instance = Instance { folder, pipe: None, rest: Vec::new(), _mount: mount };
        instance.write("trace_clock", "mono")?;
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(instance.folder.join("trace_pipe"))
            .context("cannot open the kernel's trace")?;
        instance.pipe = Some(pipe);
        Ok(instance)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn write(&self, name: &str, value: &str) -> Result<()> {
        fs::write(self.folder.join(name), value).with_context(|| format!("cannot write {value} to {name}"))
    }

    /// Number of events so far that did not fit into the kernel's buffer.
    pub fn lost(&self) -> u64 {
        let processors = fs::read_dir(self.folder.join("per_cpu")).into_iter().flatten().flatten();
        let lost = |stats: String| {
            let line = stats.lines().find_map(|line| line.strip_prefix("overrun: ")?.trim().parse::<u64>().ok());
            line.unwrap_or(0)
        };
        processors.filter_map(|entry| fs::read_to_string(entry.path().join("stats")).ok()).map(lost).sum()
    }

    /// Passes each complete line that has arrived to `take`, and stops reading when `take` returns false. Lines that
    /// are already read are passed in any case.
    pub fn read(&mut self, mut take: impl FnMut(&str) -> bool) -> Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut chunk = vec![0; 1 << 16];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.rest.extend_from_slice(&chunk[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read the kernel's trace"),
            }
            let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else { continue };
            let lines: Vec<u8> = self.rest.drain(..=end).collect();
            let mut goes_on = true;
            String::from_utf8_lossy(&lines).lines().for_each(|line| goes_on &= take(line));
            if !goes_on {
                return Ok(());
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

fn find_or_mount() -> Result<(PathBuf, Option<OwnedFd>)> {
    if let Some(root) = ROOTS.iter().map(Path::new).find(|root| root.join("instances").exists()) {
        return Ok((root.to_owned(), None));
    }
    let open = || {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
    };
    let mount = open().map_err(|error| match error {
        Errno::PERM | Errno::ACCESS => anyhow!("reading the kernel's trace needs root: run this with sudo"),
        Errno::NODEV => anyhow!("this kernel has no tracefs: it needs CONFIG_FTRACE"),
        error => anyhow!("cannot open tracefs: {error}"),
    })?;
    // The private mount can be reached only through its descriptor.
    let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    access(root.join("instances"), Access::READ_OK).context("tracefs has no instances")?;
    Ok((root, Some(mount)))
}

/// Removes instances of processes that have exited.
fn remove_orphans(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        if owner.is_some_and(|pid| !xqos_sys::exists(pid)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
