//! The command line as users call it, with servers and clients as they come from the distribution.
//!
//! | file | what |
//! |---|---|
//! | `usage` | without xqos in any server: usage, exit statuses, what a stock server is told about |
//! | `served` | the commands on a server with xqos in it |
//! | `inside` | `top`, `trace` and `replay` |
//! | `boost` | processor time, and that nobody stays raised |
//! | `cap` | captures of programs and of interfaces, with what they are to leave out |
//! | `link` | programs on a slow link, and that nothing is left of it |
//! | `plot` | plots of a capture, and what cannot be drawn |
//! | `bench` | benchmarks that are interrupted, go on, and miss a program |
//! | `grid` | one corner of the grid of slow links, and that it goes on
//! | `fixture` | servers, programs and folders that go with the test |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod bench;
mod boost;
mod cap;
mod fixture;
mod grid;
mod inside;
mod link;
mod plot;
mod served;
mod usage;
