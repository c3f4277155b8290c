// SPDX-License-Identifier: MIT
//! Tests the proxy between a scripted program and a mock server.

mod captures;
mod early;
mod faulty_peers;
mod fonts;
mod harness;
mod random;
mod windows;
