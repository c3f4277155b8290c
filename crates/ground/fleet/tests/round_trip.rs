// SPDX-License-Identifier: MIT
//! Reads written files back and compares values, names, types and version.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::{self, File};
use std::path::PathBuf;
use xqos_fleet::column::{ColumnKind, Instant};
use xqos_fleet::dataset::{Day, Session, SessionFiles};
use xqos_fleet::file::TableWriter;
use xqos_fleet::tables::{self, Wait, Waits};
use xqos_testkit::Folder;

fn files(folder: &Folder) -> Vec<PathBuf> {
    let mut folders = vec![folder.path.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn wait(burst: i64, behind: Option<&str>) -> Wait<'_> {
    Wait {
        session: "s",
        burst,
        program: "mpv",
        uid: Some(1000),
        cause: if behind.is_some() { "client" } else { "server" },
        ns: burst * 1000,
        by_client: behind.map(|_| 3),
        by_program: behind,
        by_uid: None,
        request: behind.map(|_| "GetImage"),
        is_long: behind.map(|_| burst % 2 == 0),
    }
}

#[test]
fn every_row_is_read_back_with_its_nulls() {
    let folder = Folder::new("rows");
    let path = folder.path.join("waits.parquet");
    // More rows than fit into one row group.
    let count = 130_000;
    let row = |burst: i64| wait(burst, (burst % 3 == 0).then_some(if burst % 2 == 0 { "x11perf" } else { "gimp" }));
    let mut writer = TableWriter::<Waits>::create(&path).unwrap();
    (0..count).for_each(|burst| writer.add(&row(burst)).unwrap());
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes, fs::metadata(&path).unwrap().len());
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert!(reader.num_row_groups() > 1);
    let mut rows = 0;
    for (burst, read) in reader.get_row_iter(None).unwrap().enumerate() {
        let (read, row) = (read.unwrap(), row(burst as i64));
        assert_eq!(read.get_string(2).unwrap(), "mpv");
        assert_eq!((read.get_long(1).unwrap(), read.get_long(5).unwrap()), (row.burst, row.ns));
        assert_eq!(read.get_string(7).ok().map(String::as_str), row.by_program);
        assert_eq!(read.get_bool(10).ok(), row.is_long);
        assert!(read.get_long(8).is_err(), "an unknown user is null");
        rows += 1;
    }
    assert_eq!(rows, count);
}

#[test]
fn a_file_contains_its_table_and_schema_version() {
    let folder = Folder::new("schema");
    let path = folder.path.join("waits.parquet");
    TableWriter::<Waits>::create(&path).unwrap().finish().unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let told: Vec<_> =
        metadata.key_value_metadata().unwrap().iter().map(|one| (one.key.as_str(), one.value.as_deref())).collect();
    assert_eq!(told, [("xqos.schema", Some("1")), ("xqos.table", Some("waits"))]);
    let columns = metadata.schema_descr().columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let described = tables::ALL.iter().find(|table| table.name == "waits").unwrap();
    assert_eq!(names, described.columns.iter().map(|column| column.name).collect::<Vec<_>>());
    for (column, described) in columns.iter().zip(described.columns) {
        assert_eq!(column.max_def_level() == 1, described.is_optional, "{}", described.name);
        assert_eq!(
            column.logical_type_ref().is_some(),
            matches!(described.kind, ColumnKind::Text | ColumnKind::Time),
            "{}",
            described.name
        );
    }
}

#[test]
fn exporting_a_session_again_replaces_its_files() {
    let folder = Folder::new("again");
    let session = Session { folder: folder.path.clone(), host: "ts01".to_owned(), name: "one".to_owned() };
    let (first, second) = (Day::of_unix_ns(0), Day::of_unix_ns(86_400_000_000_000));
    for rows in [5, 7] {
        let mut parts = SessionFiles::<Waits>::new(&session);
        (0..rows).for_each(|burst| parts.add(":1", &first, &wait(burst, None)).unwrap());
        parts.add(":2", &second, &wait(9, None)).unwrap();
        let written = parts.finish().unwrap();
        assert_eq!((written.rows, written.files), (rows as u64 + 1, 2));
    }
    let files = files(&folder);
    assert_eq!(files.len(), 2, "{files:?}");
    let reader = SerializedFileReader::new(File::open(&files[0]).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 7);
}

#[test]
fn an_unfinished_file_leaves_nothing() {
    let folder = Folder::new("unfinished");
    let mut writer = TableWriter::<Waits>::create(&folder.path.join("waits.parquet")).unwrap();
    writer.add(&wait(1, None)).unwrap();
    drop(writer);
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

#[test]
fn instants_are_microseconds_and_are_rounded_down() {
    assert_eq!(Instant::of_unix_ns(1_999), Instant(1));
    assert_eq!(Instant::of_unix_ns(-1), Instant(-1));
}
