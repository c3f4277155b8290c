//! xqos, the command line: presentation only.

fn main() {}
