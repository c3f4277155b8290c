// SPDX-License-Identifier: MIT
//! Errors from the disk or from the Parquet library.

use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;

/// Each variant names the file that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot write {}: {_1}", .0.display())]
    File(PathBuf, io::Error),
    #[error("cannot write {}: {_1}", .0.display())]
    Parquet(PathBuf, ParquetError),
}
