// SPDX-License-Identifier: MIT
//! A proxy between a program and a server, neither of which is there.

mod captures;
mod fonts;
mod lies;
mod random;
mod world;
