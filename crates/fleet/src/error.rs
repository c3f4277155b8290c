// SPDX-License-Identifier: MIT
//! Errors from the disk or from the Parquet library.

use parquet::errors::ParquetError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Each variant names the file that could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    File(PathBuf, io::Error),
    Parquet(PathBuf, ParquetError),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File(path, why) => write!(out, "cannot write {}: {why}", path.display()),
            Error::Parquet(path, why) => write!(out, "cannot write {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
