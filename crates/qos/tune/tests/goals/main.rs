// SPDX-License-Identifier: MIT
//! The tuner's goals, tested in virtual time with exact figures that are the same on every machine.

mod aperiodic;
mod arsim;
mod conflicts;
mod hostile;
mod load;
mod loops;
mod periodic;
mod preempted;
