// SPDX-License-Identifier: MIT
//! Services for a running experiment: the thoroughness, the module, the progress line, and its finished parts.

mod progress;

pub(crate) use progress::{Pace, Plan, Progress, clear_line, line};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The services that the benchmark offers to an experiment.
#[derive(Debug)]
pub(crate) struct Bench {
    pub quick: bool,
    pub pairs: u32,
    pub module: PathBuf,
    pub progress: Progress,
    /// Path of the file of the experiment's parts, and the description of the run to which the parts belong; see
    /// [`Parts::open`].
    pub parts: (PathBuf, String),
}

/// Finished parts of an experiment that takes hours. After an interruption, it continues with the next part.
///
/// The first line of the file describes the run. If it does not match this run (another server, module or
/// thoroughness), the file is emptied. Each further line is a part; an unfinished line is ignored.
#[derive(Debug)]
pub(crate) struct Parts<T> {
    list: Vec<T>,
    file: File,
}

impl<T: Serialize + DeserializeOwned> Parts<T> {
    pub fn open(path: &Path, of: &str) -> Result<Parts<T>> {
        let cannot = || format!("cannot write {}", path.display());
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let is_ours = lines.next() == Some(of);
        // Parts that this version cannot read are measured again.
        let list: Vec<T> = lines.filter(|_| is_ours).filter_map(|line| serde_json::from_str(line).ok()).collect();
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).with_context(cannot)?;
        let mut parts = Parts { list: Vec::new(), file };
        writeln!(parts.file, "{of}").with_context(cannot)?;
        for part in list {
            parts.add(part)?;
        }
        Ok(parts)
    }

    pub fn list(&self) -> &[T] {
        &self.list
    }

    pub fn into_list(self) -> Vec<T> {
        self.list
    }

    pub fn add(&mut self, part: T) -> Result<()> {
        writeln!(self.file, "{}", serde_json::to_string(&part)?).context("cannot store a measurement")?;
        self.list.push(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    #[test]
    fn parts_of_the_same_run_are_read_again() {
        let folder = Folder::create().unwrap();
        let path = folder.path("grid.parts");
        let open = |of: &str| Parts::<u32>::open(&path, of).unwrap();
        let mut parts = open("quick");
        parts.add(1).unwrap();
        parts.add(2).unwrap();
        assert_eq!(open("quick").list(), [1, 2]);
        // Simulate a machine that stopped in the middle of writing a line.
        fs::write(&path, "quick\n1\n2\n3").unwrap();
        assert_eq!(open("quick").into_list(), [1, 2]);
        fs::write(&path, "quick\n1\n\"other\"\n3\n").unwrap();
        assert_eq!(open("quick").list(), [1, 3], "unreadable parts are skipped");
        assert_eq!(open("full").list(), [0; 0], "from another run");
        assert_eq!(open("quick").list(), [0; 0], "started again");
    }
}
