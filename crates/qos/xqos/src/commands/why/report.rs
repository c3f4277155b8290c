// SPDX-License-Identifier: MIT
//! The folder of a report: the explanation, the trace and its page.

use super::text;
use anyhow::{Context, Result, bail};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use xqos_abi::trace::Event;
use xqos_agent::why::Recording;
use xqos_cli::output;
use xqos_text::time;
use xqos_trace::export::page;
use xqos_trace::file::TraceWriter;
use xqos_trace::names::Names;
use xqos_trace::why::diagnose;

const FILES: [&str; 3] = ["why.txt", "why.html", "why.trace"];

/// Makes the folders of a run, and removes the oldest ones.
#[derive(Debug)]
pub struct Folders {
    parent: PathBuf,
    keep: usize,
    made: VecDeque<PathBuf>,
}

impl Folders {
    pub fn new(parent: &Path, keep: usize) -> Result<Folders> {
        let is_made = std::fs::create_dir_all(parent).is_ok();
        if !is_made || rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_err() {
            bail!("cannot make a folder in {}: name another place with --output", parent.display());
        }
        Ok(Folders { parent: parent.to_owned(), keep, made: VecDeque::new() })
    }

    /// Explains the records, prints the explanation, and makes a folder.
    pub fn write(&mut self, recording: &Recording) -> Result<PathBuf> {
        let Recording { header, records, question } = recording;
        let names = Names::new(header.extensions.clone());
        let events = || records.iter().filter_map(|&words| Event::decode(words));
        let diagnosis = diagnose(events(), &names, question);
        let text = text::explained(&diagnosis, header, question.limit_ns);
        let span = diagnosis.worst.map(|(wait, _)| (wait.from, wait.to));
        let explanation = Some(page::Explanation { text: text.clone(), span });
        let additions = page::Additions { explanation, ..page::Additions::default() };
        output::print(&text)?;
        let folder = self.create()?;
        let written = || -> Result<()> {
            output::write(&folder.join(FILES[0]), 0o666, text.as_bytes())?;
            let page = page::render(header, events(), &names, additions)?;
            output::write(&folder.join(FILES[1]), 0o666, page.as_bytes())?;
            let mut writer = TraceWriter::new(output::recording(&folder.join(FILES[2]), 0o666)?, header)?;
            records.iter().try_for_each(|&words| writer.add(words))?;
            writer.flush()
        };
        if let Err(error) = written() {
            remove(&folder);
            return Err(error.context(format!("cannot write {}", folder.display())));
        }
        self.made.push_back(folder.clone());
        while self.made.len() > self.keep {
            self.made.pop_front().iter().for_each(|oldest| remove(oldest));
        }
        Ok(folder)
    }

    fn create(&self) -> Result<PathBuf> {
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as i64);
        let name = time::local(now, "xqos-why-%F-%H%M%S");
        let names = std::iter::once(name.clone()).chain((2..1000).map(|number| format!("{name}-{number}")));
        for folder in names.map(|name| self.parent.join(name)) {
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => {
                    return made.map(|()| folder.clone()).with_context(|| format!("cannot make {}", folder.display()));
                }
            }
        }
        bail!("there are too many folders of this second in {}", self.parent.display())
    }
}

/// Removes a folder, unless it contains other files.
fn remove(folder: &Path) {
    FILES.iter().for_each(|name| _ = fs::remove_file(folder.join(name)));
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::trace::Entry;
    use xqos_core::Time;

    #[test]
    fn the_oldest_folders_of_a_run_are_removed_and_those_of_others_stay() {
        let parent = std::env::temp_dir().join(format!("xqos-why-folders-{}", std::process::id()));
        fs::create_dir_all(parent.join("xqos-why-of-others")).unwrap();
        let mut folders = Folders::new(&parent, 2).unwrap();
        let end = Event { at: Time(1), what: Entry::End }.encode();
        let mut write = || folders.write(&Recording { records: vec![end], ..Recording::default() }).unwrap();
        let made: Vec<PathBuf> = (0..4).map(|_| write()).collect();
        let count = || fs::read_dir(&parent).unwrap().count();
        assert_eq!((count(), made[2].exists(), made[3].exists()), (3, true, true));
        fs::write(made[2].join("note"), "of the user").unwrap();
        let last = write();
        assert_eq!((count(), fs::read_dir(&made[2]).unwrap().count()), (4, 1), "a folder with another file stays");
        assert!(FILES.iter().all(|name| last.join(name).is_file()) && parent.join("xqos-why-of-others").exists());
        let is_refused = |place: PathBuf| Folders::new(&place, 1).is_err();
        assert!(is_refused(last.join(FILES[0])) && is_refused(last.join(FILES[0]).join("below-a-file")));
        assert!(!is_refused(parent.join("new")) && parent.join("new").is_dir());
        fs::remove_dir_all(&parent).unwrap();
    }
}
