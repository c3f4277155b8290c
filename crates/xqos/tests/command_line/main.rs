//! The command line as users call it, with servers and clients as they come from the distribution.
//!
//! | file | what |
//! |---|---|
//! | `usage` | without xqos in any server: usage, exit statuses, what a stock server is told about |
//! | `served` | the commands on a server with xqos in it |
//! | `inside` | `top`, `trace` and `replay` |
//! | `boost` | processor time, and that nobody stays raised |
//! | `link` | programs on a slow link, and that nothing is left of it |
//! | `bench` | benchmarks that are interrupted, go on, and miss a program |
//! | `fixture` | servers, programs and folders that go with the test |
//!
//! The module is found through XQOS_MODULE, or in target/release.

mod bench;
mod boost;
mod fixture;
mod inside;
mod link;
mod served;
mod usage;
