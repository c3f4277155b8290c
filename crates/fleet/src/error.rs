// SPDX-License-Identifier: MIT
//! What can go wrong: the disk, or the library.

use parquet::errors::ParquetError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// With the file that could not be written.
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
