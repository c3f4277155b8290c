// SPDX-License-Identifier: MIT
//! The laboratory: real X servers, loads, measuring clients, and the experiments that use them.
//!
//! A result about response times is only as good as the measurement, so this crate consists of parts that can be
//! reviewed one by one:
//!
//! | module | what |
//! |---|---|
//! | [`server`] | the fixture: Xvfb, Xephyr, Xtigervnc, Xorg, and Xwayland under four compositors, stock or with xqos |
//! | [`load`] | real x11perf clients that draw without a pause, and a reliable count of their work |
//! | [`flood`] | hundreds of our own clients: requests of a set length, plaids, or drawing for a part of the time |
//! | `canvas` | a window of such a client |
//! | [`tiles`] | places the windows of the load side by side, so that every client draws |
//! | [`light`] | the measuring client: draws 200 lines every 10 ms and times the answer |
//! | [`mpv`] | a film, and when each of its frames was drawn |
//! | [`actor`] | our own programs that must be separate processes |
//! | `input` | programs that show a window, and their user's input |
//! | `composited`, `desk`, `onscreen` | window managers, desktop programs, and when changes appear on the screen |
//! | `processor`, `boost` | pinning a thread to a processor, and reservations of processor time |
//! | [`viewer`] | a viewer of a remote desktop: it moves the pointer and receives every picture |
//! | [`line`] | a client of Packard's paper: a line that follows the [`pointer`], which may be a `device` |
//! | [`periodic`] | Packard's animation, and ocbench, the client of the QoS paper |
//! | `waiting`, `system_calls` | a client that waits for a counter of SYNC, and the costs of system calls |
//! | [`process`], [`tree`] | the processes that we start and end, and the kernel's figures for any process |
//! | [`program`] | programs that experiments need, with their Debian packages |
//! | [`statistics`], [`machine`], [`disturbance`], `os_noise` | statistics, and the conditions of measurements |
//! | `results` | stored results, and the conclusions and tables that they give |
//! | [`mod@bench`] | runs experiments, renders and compares results |
//! | `workbench` | what an experiment uses while it runs: its progress line, its finished parts |
//! | [`fleet`] | sessions of many hosts and users, simulated, as traces, captures and tables |
//! | [`papers`] | published figures and their sources: `lab/papers` |
//! | [`goals`] | the goals of verdicts, with dates and reasons: `lab/goals.toml` |
//! | [`file`](mod@file) | an experiment, which is a file: measures its cases, and evaluates them |
//! | [`experiments`] | the experiments of the program, from `lab/experiments` |
//! | [`study`], [`render`], `page` | findings as types, as text, and as a web page |
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
mod boost;
mod canvas;
pub mod chaos;
mod composited;
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
mod onscreen;
mod os_noise;
mod page;
mod pages;
mod papers;
mod periodic;
mod pointer;
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
mod tree;
pub mod viewer;
mod waiting;
mod workbench;
