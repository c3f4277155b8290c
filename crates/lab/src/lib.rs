// SPDX-License-Identifier: MIT
//! The laboratory: real servers, loads and measuring clients, and experiments that use them.
//!
//! A result about response times is only as good as its measurement, so this crate consists of parts that can be
//! reviewed one by one:
//!
//! | module | what |
//! |---|---|
//! | [`server`] | the fixture: Xvfb, Xephyr, Xtigervnc, Xorg, and Xwayland under four compositors, stock or with xqos, on a display of their own |
//! | [`load`] | real x11perf clients that draw without a pause, and an honest count of their work |
//! | [`flood`] | clients of our own that draw without a pause: requests of a set length, by the hundred, or Packard's plaids; or for a part of the time |
//! | `canvas` | a window of such a client |
//! | [`tiles`] | the windows of the load side by side, so that every client draws |
//! | [`light`] | the client that measures: 200 lines every 10 ms, and how long the answer takes |
//! | [`mpv`] | a film, and when each of its frames was drawn |
//! | [`actor`] | programs of our own that have to be processes |
//! | `hand` | programs that show a window, and who uses them: pointer and keys |
//! | `composited`, `desk`, `onscreen` | window managers, programs of a desktop, and when something is on the screen |
//! | `processor`, `boost` | which processor a thread runs on, and who lends it |
//! | [`rfb`] | a viewer of a remote desktop: input through the server's own door, and when its picture changed |
//! | [`scheduler`] | the schedulers of the papers, beside each other on one server |
//! | [`line`] | a client of Packard's paper: a line that follows the [`pointer`] |
//! | [`periodic`] | its other client, an animation; ocbench, that of the QoS paper; and a player |
//! | [`process`], [`tree`] | processes of our own, ended by their id, and what the kernel counts for any |
//! | [`program`] | what experiments need to be installed, and Debian's packages |
//! | [`statistics`], [`machine`], [`disturbance`], `pauses` | figures, and the circumstances in which they were measured |
//! | [`mod@bench`] | runs experiments, keeps raw data, renders them |
//! | [`fleet`] | sessions of many hosts and users, simulated, as traces, captures and tables |
//! | [`papers`] | published figures and their sources: `lab/papers` |
//! | [`goals`] | the goals of verdicts, since when and why: `lab/goals.toml` |
//! | `experiments` | one file each: `run` measures, `study` evaluates, nothing else |
//! | [`study`], [`render`], `page` | findings as types, as text, and as a web page |
//!
//! They keep these rules:
//!
//! - **Only ratios are claimed.** The compared cases are measured in one run, one after the other, in alternating
//!   order. The median of the pairs is quoted with its range. Absolute figures are shown with the facts of the machine.
//! - **Work is counted, not estimated**: x11perf's own operations between two instants, also on a stock server.
//! - **The kernel's share is separated** from the X server's: each response includes the time in which a runnable
//!   server or client had no processor.
//! - **Raw data are stored** with their evaluation, which can be repeated from them.
//! - **A missed goal is a finding** and is printed as one.
//! - Nothing outlives its owner: servers and clients are ended by their own id when they are dropped.

#![forbid(unsafe_code)]

pub mod actor;
pub mod bench;
mod boost;
mod canvas;
pub mod chaos;
mod composited;
mod desk;
pub mod disturbance;
pub mod experiments;
pub mod file;
pub mod fleet;
pub mod flood;
pub mod folder;
pub mod goals;
mod hand;
pub mod light;
pub mod line;
pub mod load;
pub mod machine;
pub mod mpv;
mod onscreen;
pub mod order;
mod page;
mod pages;
pub mod papers;
mod pauses;
pub mod periodic;
pub mod pointer;
pub mod process;
mod processor;
pub mod program;
pub mod render;
pub mod scheduler;
pub mod server;
pub mod statistics;
pub mod study;
pub mod tiles;
pub mod tree;
pub mod viewer;
