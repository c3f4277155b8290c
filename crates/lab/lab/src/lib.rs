// SPDX-License-Identifier: MIT
//! The laboratory: real X servers, loads, measuring clients, and the experiments that use them.
//!
//! A result about response times is only as good as the measurement, so each part of it is a module that can be
//! reviewed by itself; its first line says what it is.
//!
//! The experiments keep these rules:
//!
//! - **Only ratios are claimed.** The compared cases are measured in one run, one after the other, in alternating
//!   order. The median of the pairs is quoted with its range. Absolute figures are shown with facts about the machine.
//! - **Work is counted, not estimated**: x11perf's own operations between two instants, even on a stock server.
//! - **The kernel's share is separated** from the X server's: each response records for how long a runnable server or
//!   client had no processor.
//! - **Raw data are stored** with their evaluation, so the evaluation can be repeated.
//! - **A missed goal is a finding** and is printed as one.
//! - Nothing outlives its owner: servers and clients are ended by their process id when they are dropped.

#![forbid(unsafe_code)]

pub mod actor;
pub mod bench;
mod canvas;
pub mod chaos;
mod desk;
mod device;
mod disturbance;
pub mod experiments;
mod file;
pub mod fleet;
mod flood;
pub mod folder;
mod goals;
mod input;
pub mod light;
mod line;
pub mod load;
mod machine;
pub mod mpv;
mod names;
mod onscreen;
mod page;
mod papers;
mod periodic;
mod pointer;
mod poll;
pub mod process;
mod processor;
pub mod program;
mod render;
mod results;
pub mod server;
pub mod statistics;
mod study;
mod system_calls;
pub mod tiles;
mod trace;
pub mod viewer;
mod waiting;
mod workbench;
