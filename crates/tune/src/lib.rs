// SPDX-License-Identifier: MIT
//! What to reserve for a client, found by measurement: its period and the server time that it needs in each.
//!
//! Pure, as core is: no clock, no input or output, no unsafe code. Bursts of service go in with their times, advice comes out.
//! The same bursts give the same advice, so one text runs on trace files, in the simulator and beside a live server.
//!
//! | file | what |
//! |---|---|
//! | `jobs` | bursts that belong together, such as those of one frame, become one job |
//! | `period` | the period of a client that a clock drives |
//! | `closed_loop` | the rest of a client that waits for its answer first |
//! | `detector` | two looks at jobs that agree on either |
//! | `demand` | the server time that its jobs need |
//! | `follow` | whether it keeps its period |
//! | `client` | one client: gathering, periodic, aperiodic, given up, silent |
//! | `share` | what each of several clients gets, where there is not enough for all |
//! | `tuner` | all clients, and what is to be done about them |
//! | `order` | medians and quantiles |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

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

pub use client::{Client, Report, State, Wish};
pub use closed_loop::{Rest, rest};
pub use detector::Beat;
pub use jobs::{Burst, Job, Joined, Joiner};
pub use period::{Fit, fit};
pub use share::{AUTO_LIMIT_PPM, Asked, Room, divide};
pub use tuner::{Advice, Tuner};
