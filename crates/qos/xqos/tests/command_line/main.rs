// SPDX-License-Identifier: MIT
//! Tests the command line as users call it, with servers and clients of the distribution.
//!
//! | file | contents |
//! |---|---|
//! | `usage` | without xqos in any server: usage, exit statuses, messages about a stock server |
//! | `attach` | watching a server without xqos from outside |
//! | `served` | the commands on a server with xqos in it |
//! | `grabs` | servers during a server grab, and servers that have reached their client limit |
//! | `inside` | `top`, `trace` and `replay` |
//! | `screen` | the screen of `top` in a terminal |
//! | `why` | deliberate stutters, and how `why` explains them |
//! | `recordings` | which waits end `trace record --until-wait` |
//! | `boost` | raised priorities, and that no process stays raised |
//! | `rules` | rule files, and the daemon that applies them |
//! | `rules_asked` | `rules status` and `rules reload` |
//! | `rules_followed` | the rules tutorial and its tests, and `rules adopt` |
//! | `rules_misused` | faulty and hostile rule files, and a clock that jumps |
//! | `rules_applied` | that rules take effect, and that a daemon that dies leaves nothing behind |
//! | `exporter` | metrics of all X servers of a host, for Prometheus |
//! | `prometheus` | a real Prometheus with the exporter, the alert rules and the dashboard |
//! | `shipped` | that each shipped rule improves a figure |
//! | `documents` | commands of the documents, exactly as written |
//! | `siblings` | commands that are separate programs |
//! | `tigervnc` | the README's recipe for TigerVNC's wrapper script |
//! | `tune` | measured reservations: `suggest`, and auto |
//! | `xwayland` | `xwayland install`, `status` and `remove` |
//! | `fixture` | servers, programs and folders that are removed after the test |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod attach;
mod boost;
mod documents;
mod exporter;
mod fixture;
mod grabs;
mod inside;
mod prometheus;
mod recordings;
mod rules;
mod rules_applied;
mod rules_asked;
mod rules_followed;
mod rules_misused;
mod screen;
mod served;
mod shipped;
mod siblings;
mod tigervnc;
mod tune;
mod usage;
mod why;
mod xwayland;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_xqos");
