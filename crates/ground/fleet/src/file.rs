// SPDX-License-Identifier: MIT
//! Writes one Parquet file. Rows are stored by column, and the file gets its final name when it is complete.
//!
//! An incomplete file's name begins with a dot, so readers of the folder ignore it.

use crate::SCHEMA;
use crate::column::Cells;
use crate::error::Error;
use crate::tables::TableSchema;
use parquet::basic::{Compression, Repetition, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::{self, File};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of rows in a row group, which is held in memory. DuckDB and Spark split work into groups of this size.
const GROUP_ROWS: usize = 122_880;

#[derive(Debug)]
pub struct TableWriter<T> {
    /// `None` after [`TableWriter::close`].
    file: Option<SerializedFileWriter<File>>,
    cells: Vec<Cells>,
    rows: usize,
    path: PathBuf,
    unfinished: PathBuf,
    table: PhantomData<T>,
}

impl<T: TableSchema> TableWriter<T> {
    /// Creates the file and its folders.
    pub fn create(path: &Path) -> Result<TableWriter<T>, Error> {
        let failed = |why| Error::File(path.to_owned(), why);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Two programs may export the same session at the same time, so each needs its own file.
        let unfinished = path.with_file_name(format!(".{name}.{}", std::process::id()));
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let file = File::create(&unfinished).map_err(failed)?;
        let begun = begin::<T>(file).map_err(|why| Error::Parquet(path.to_owned(), why))?;
        let cells = T::COLUMNS.iter().map(Cells::of).collect();
        Ok(TableWriter { file: Some(begun), cells, rows: 0, path: path.to_owned(), unfinished, table: PhantomData })
    }

    pub fn add(&mut self, row: &T::Row<'_>) -> Result<(), Error> {
        T::add(row, &mut self.cells);
        self.rows += 1;
        if self.rows < GROUP_ROWS { Ok(()) } else { self.flush() }
    }

    /// Writes the remaining rows. The file keeps its unfinished name.
    pub fn close(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.cells = Vec::new();
        let closed = self.file.take().map(SerializedFileWriter::close).transpose();
        closed.map(drop).map_err(|why| Error::Parquet(self.path.clone(), why))
    }

    /// Completes the file and replaces any file of the same name. Returns its length in bytes.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.close()?;
        let failed = |why| Error::File(self.path.clone(), why);
        fs::rename(&self.unfinished, &self.path).map_err(failed)?;
        Ok(fs::metadata(&self.path).map_err(failed)?.len())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let Some(file) = self.file.as_mut().filter(|_| rows > 0) else { return Ok(()) };
        write(file, &mut self.cells).map_err(|why| Error::Parquet(self.path.clone(), why))
    }
}

impl<T> Drop for TableWriter<T> {
    fn drop(&mut self) {
        // After `finish`, no file has this name, so this does nothing.
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn begin<T: TableSchema>(file: File) -> Result<SerializedFileWriter<File>, ParquetError> {
    let columns = T::COLUMNS.iter().map(|column| column.field()).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(T::NAME).with_repetition(Repetition::REQUIRED).with_fields(columns);
    let told = [("xqos.schema", SCHEMA.to_string()), ("xqos.table", T::NAME.to_owned())];
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("xqos {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(told.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec()));
    SerializedFileWriter::new(file, Arc::new(schema.build()?), Arc::new(properties.build()))
}

fn write(file: &mut SerializedFileWriter<File>, cells: &mut [Cells]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for cells in cells {
        let Some(mut column) = group.next_column()? else { break };
        cells.write(&mut column)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}
