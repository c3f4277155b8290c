// SPDX-License-Identifier: MIT
//! Finds a client's reservation by measurement: its period and the server time that it needs in each period.
//!
//! Like core, this crate has no clock, no I/O and no unsafe code. It takes bursts of service with their times and
//! returns advice. The same bursts give the same advice, from a trace file, the simulator or a live server.
//!
//! | file | content |
//! |---|---|
//! | `jobs` | joins bursts that belong together, such as those of one frame, into jobs |
//! | `period` | finds the period of a client that is driven by a clock |
//! | `closed_loop` | finds the rest of a client that waits for replies |
//! | `detector` | accepts a period or rest when two estimates agree |
//! | `demand` | estimates the server time that a job needs |
//! | `follow` | checks that a client keeps its period |
//! | `client` | the states of one client, from gathering to silent |
//! | `share` | divides the server's capacity among several clients |
//! | `tuner` | all clients, and the advice for them |
//! | `order` | medians and quantiles |

#![forbid(unsafe_code)]

mod client;
mod closed_loop;
mod demand;
mod detector;
mod follow;
mod jobs;
mod order;
mod period;
mod share;
mod tuner;

pub use client::{ClientAnalysis, Need, RhythmReport, RhythmState};
pub use closed_loop::LoopFit;
pub use detector::Beat;
pub use jobs::Burst;
pub use period::Fit;
pub use share::Room;
pub use tuner::{Advice, Tuner};
