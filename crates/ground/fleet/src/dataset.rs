// SPDX-License-Identifier: MIT
//! The folder of a data set: `TABLE/host=HOST/display=DISPLAY/day=DAY/SESSION.parquet`, partitioned as Hive, Spark and
//! DuckDB expect.
//!
//! Host, display and day are only in the path, so a query for one day or one host opens only its files.

use crate::error::Error;
use crate::file::TableWriter;
use crate::tables::TableSchema;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use xqos_text::time;

/// A day, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(String);

impl Day {
    pub fn of_unix_ns(ns: i64) -> Day {
        Day(time::utc(ns, "%F"))
    }

    /// `2026-01-31`.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// A session and the folder that its rows are written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub folder: PathBuf,
    pub host: String,
    /// Unique name of the session, and of its files.
    pub name: String,
}

impl Session {
    /// Path of the file for a table, a display and a day.
    pub fn path(&self, table: &str, display: &str, day: &Day) -> PathBuf {
        let parts = [("host", self.host.as_str()), ("display", display), ("day", day.name())];
        let folder = parts.iter().fold(self.folder.join(table), |path, (name, value)| {
            path.join(format!("{name}={}", escaped(if value.is_empty() { "unknown" } else { value })))
        });
        folder.join(format!("{}.parquet", escaped(&self.name)))
    }
}

/// Escapes a value as Hive does: bytes with a special meaning in paths become a percent sign and their code.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

/// Files of one session and one table; each display and day has its own file.
#[derive(Debug)]
pub struct SessionFiles<T> {
    session: Session,
    files: BTreeMap<PathBuf, TableWriter<T>>,
    /// Files that are complete, but still have their unfinished names.
    closed: Vec<TableWriter<T>>,
    written: Written,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl Written {
    pub fn plus(self, other: Written) -> Written {
        Written { files: self.files + other.files, rows: self.rows + other.rows, bytes: self.bytes + other.bytes }
    }
}

impl<T: TableSchema> SessionFiles<T> {
    pub fn new(session: &Session) -> SessionFiles<T> {
        let (files, closed, written) = (BTreeMap::new(), Vec::new(), Written::default());
        SessionFiles { session: session.clone(), files, closed, written }
    }

    pub fn add(&mut self, display: &str, day: &Day, row: &T::Row<'_>) -> Result<(), Error> {
        let path = self.session.path(T::NAME, display, day);
        let file = match self.files.get_mut(&path) {
            Some(file) => file,
            None => self.files.entry(path.clone()).or_insert(TableWriter::create(&path)?),
        };
        self.written.rows += 1;
        file.add(row)
    }

    /// Writes the remaining rows to all open files. [`SessionFiles::finish`] then renames the files into the folder.
    /// Renaming needs no disk space, so several tables appear together or not at all. No rows of the same day may be
    /// added later.
    pub fn close(&mut self) -> Result<(), Error> {
        for mut file in std::mem::take(&mut self.files).into_values() {
            file.close()?;
            self.closed.push(file);
        }
        Ok(())
    }

    /// Completes all files.
    pub fn finish(&mut self) -> Result<Written, Error> {
        self.close()?;
        for file in std::mem::take(&mut self.closed) {
            self.written.bytes += file.finish()?;
            self.written.files += 1;
        }
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn paths_are_hive_partitions() {
        let session = Session { folder: "out".into(), host: "ts01".to_owned(), name: "a:1".to_owned() };
        let noon = 1_767_225_600_000_000_000 + 12 * 3_600_000_000_000;
        let path = session.path("bursts", "host/b:10.0", &Day::of_unix_ns(noon));
        let expected = "out/bursts/host=ts01/display=host%2Fb%3A10.0/day=2026-01-01/a%3A1.parquet";
        assert_eq!(path, Path::new(expected));
    }

    #[test]
    fn days_change_at_midnight_also_before_1970() {
        assert_eq!(Day::of_unix_ns(86_400_000_000_000 - 1).name(), "1970-01-01");
        assert_eq!(Day::of_unix_ns(86_400_000_000_000).name(), "1970-01-02");
        assert_eq!(Day::of_unix_ns(-1).name(), "1969-12-31");
    }
}
