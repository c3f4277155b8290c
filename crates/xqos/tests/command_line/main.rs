// SPDX-License-Identifier: MIT
//! The command line as users call it, with servers and clients as they come from the distribution.
//!
//! | file | what |
//! |---|---|
//! | `usage` | without xqos in any server: usage, exit statuses, what a stock server is told about |
//! | `served` | the commands on a server with xqos in it |
//! | `inside` | `top`, `trace` and `replay` |
//! | `boost` | processor time, and that nobody stays raised |
//! | `rules` | rule files, and the daemon that keeps them |
//! | `rules_followed` | the tutorial of rules, from its files to its tests, and the way back from a hand to the rules |
//! | `rules_misused` | rules that nobody would write on purpose, and a clock that jumps |
//! | `kept` | that rules are carried out, and what may happen to the daemon |
//! | `exporter` | all X servers of a host, for Prometheus |
//! | `prometheus` | a real Prometheus with the exporter, the alert rules and the dashboard |
//! | `shipped` | that each rule which comes with xqos is worth its place |
//! | `documents` | commands of the documents, as they stand there |
//! | `siblings` | commands that are programs of their own |
//! | `tigervnc` | the recipe of README for TigerVNC's wrapper script |
//! | `tune` | reservations that are found by measurement: `suggest`, and auto |
//! | `fixture` | servers, programs and folders that go with the test |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod attach;
mod boost;
mod documents;
mod exporter;
mod fixture;
mod grabs;
mod inside;
mod kept;
mod prometheus;
mod recordings;
mod rules;
mod rules_followed;
mod rules_misused;
mod served;
mod shipped;
mod siblings;
mod tigervnc;
mod tune;
mod usage;
mod xwayland;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos");
