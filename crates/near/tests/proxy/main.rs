// SPDX-License-Identifier: MIT
//! Tests of the proxy between a scripted program and a mock server.

mod captures;
mod fonts;
mod lies;
mod random;
mod world;
