// SPDX-License-Identifier: MIT
//! Tests that a fleet is reproducible and that its tables agree with the traces.

use super::*;
use crate::folder::Folder;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Row, RowAccessor};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use xqos_trace::model::Model;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut all): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| files(folder)));
    all.sort();
    all
}

fn rows(folder: &Path, table: &str) -> Vec<Row> {
    let open = |path: &PathBuf| SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let read = |path: &PathBuf| open(path).get_row_iter(None).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    files(&folder.join("fleet.parquet").join(table)).iter().flat_map(read).collect()
}

/// Server time of each program, computed from the traces.
fn server_times(folder: &Path) -> BTreeMap<String, i64> {
    let mut times = BTreeMap::new();
    for file in files(&folder.join("traces")) {
        let mut model = Model::new();
        Trace::open(&file).unwrap().events().for_each(|event| drop(model.take(&event)));
        for client in model.clients() {
            *times.entry(client.identity.program.clone()).or_default() += client.total.server_time_ns as i64;
        }
    }
    times
}

#[test]
fn generating_a_fleet_again_gives_the_same_bytes() {
    let (one, other) = (Folder::create().unwrap(), Folder::create().unwrap());
    let folders = [&one, &other].map(|folder| folder.path(""));
    let made = [0, 1].map(|place| make(&folders[place], 3).unwrap());
    assert_eq!(made[0].records, made[1].records);
    let names = [0, 1].map(|place: usize| {
        files(&folders[place]).iter().map(|path| path.strip_prefix(&folders[place]).unwrap().to_owned()).collect()
    });
    let [first, second]: [Vec<PathBuf>; 2] = names;
    assert_eq!(first, second);
    assert_eq!(first.len(), 3 * (2 + 6), "each session has a trace, a capture and six tables");
    for name in first {
        let bytes = [0, 1].map(|place: usize| fs::read(folders[place].join(&name)).unwrap());
        assert!(bytes[0] == bytes[1], "{} differs", name.display());
    }
}

#[test]
fn tables_agree_with_traces_and_captures() {
    let folder = Folder::create().unwrap();
    let folder = folder.path("");
    let made = make(&folder, 5).unwrap();
    let mut times: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows(&folder, "clients") {
        *times.entry(row.get_string(2).unwrap().clone()).or_default() += row.get_long(5).unwrap();
    }
    assert_eq!(times, server_times(&folder));
    let records: i64 = rows(&folder, "sessions").iter().map(|row| row.get_long(6).unwrap()).sum();
    assert_eq!(records, made.records as i64);
    let waited: BTreeMap<(String, i64), i64> = rows(&folder, "bursts")
        .iter()
        .map(|row| ((row.get_string(0).unwrap().clone(), row.get_long(1).unwrap()), row.get_long(8).unwrap()))
        .collect();
    let mut caused: BTreeMap<(String, i64), i64> = BTreeMap::new();
    for row in rows(&folder, "waits") {
        let key = (row.get_string(0).unwrap().clone(), row.get_long(1).unwrap());
        *caused.entry(key).or_default() += row.get_long(5).unwrap();
    }
    for (burst, ns) in &caused {
        assert_eq!(waited[burst], *ns, "{burst:?} waited as long as its causes add up to");
    }
    let connections = rows(&folder, "connections");
    let sums = [7, 8].map(|column| connections.iter().map(|row| row.get_long(column).unwrap()).sum::<i64>());
    assert!(sums[1] > 100 && sums[0] > 2 * sums[1], "round trips and avoidable ones: {sums:?}");
}

/// Uses the DuckDB that scripts/fleet installs.
#[test]
#[ignore = "make test-lab: needs DuckDB"]
fn duckdb_queries_agree_with_the_traces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = root.join("target/fleet-python/bin/python");
    if !python.exists() {
        return xqos_testkit::left_out("DuckDB is missing: run scripts/fleet --setup");
    }
    let folder = Folder::create().unwrap();
    make(&folder.path(""), 5).unwrap();
    let ask = root.join("docs/fleet/ask.py");
    let answer = Command::new(python).arg(ask).arg("duckdb").arg(folder.path("fleet.parquet")).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let answers: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    let rows = answers["programs"]["rows"].as_array().unwrap();
    let times = rows.iter().map(|row| (row[0].as_str().unwrap().to_owned(), row[3].as_i64().unwrap()));
    assert_eq!(times.collect::<BTreeMap<_, _>>(), server_times(&folder.path("")));
    assert_eq!(answers["p99-by-day"]["rows"].as_array().unwrap().len(), 5, "each session has its own day");
    assert_eq!(answers["worst-waits"]["rows"][0][1], ":10", "the display is kept");
}
