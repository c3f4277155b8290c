//! lib
pub mod control;
pub mod light;
pub mod load;
pub mod machine;
pub mod process;
pub mod server;
pub mod statistics;
