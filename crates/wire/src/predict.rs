// SPDX-License-Identifier: MIT
//! How a program's start would go over a link that is not there, from one capture of it over a fast one.
//!
//! ```text
//! capture ──Recorder──▶ Script ──foretell(Shape)──▶ Foretold
//!                       thoughts, waits,            seconds until quiet,
//!                       services, bytes             total network delay
//! ```
//!
//! | file | what |
//! |---|---|
//! | [`script`] | what of a capture stays as it is on any link |
//! | `run` | a script over two lines of the emulator, in virtual time |
//! | `stream`, `congestion` | what TCP does between the two |
//! | [`grid`], [`figures`] | the links of the paper's grid; what is foretold, for a report |
//!
//! Pure: the same capture and link give the same figures. Not foretold is what a program does otherwise on a slow link, such as
//! fewer steps of an animation, and what the network loses.

mod congestion;
pub mod figures;
pub mod grid;
mod run;
pub mod script;
mod stream;
#[cfg(test)]
mod tests;

use crate::analysis::spans::seconds;
use crate::link::shape::Shape;
use script::Script;
use serde::{Serialize, Serializer};

/// A start over a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Foretold {
    /// From the first packet to the last one before the program is quiet, at the program's end of the link.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub elapsed_ns: u64,
    /// In which a reply was waited for, or either direction of the link was busy, or TCP held something back.
    #[serde(rename = "network_delay_s", serialize_with = "as_seconds")]
    pub delay_ns: u64,
    #[serde(rename = "reply_wait_s", serialize_with = "as_seconds")]
    pub wait_ns: u64,
    pub round_trips: u64,
    /// Whole IP packets, from the program and to it; a report has them together.
    #[serde(serialize_with = "as_sum")]
    pub link_bytes: [u64; 2],
}

fn as_seconds<S: Serializer>(ns: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(seconds(*ns))
}

fn as_sum<S: Serializer>(both: &[u64; 2], out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(both.iter().sum())
}

/// Plays a start over a link. `None`: the link drops so much that it does not come to an end. Jitter and loss of `shape` are
/// taken as nothing.
pub fn foretell(script: &Script, shape: &Shape) -> Option<Foretold> {
    run::play(script, &Shape { jitter_ns: 0, loss_ppm: 0, ..*shape })
}
