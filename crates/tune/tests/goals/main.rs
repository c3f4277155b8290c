// SPDX-License-Identifier: MIT
//! What the tuner has to show, in virtual time: exact figures, the same on every machine.

mod aperiodic;
mod arsim;
mod conflicts;
mod hostile;
mod load;
mod loops;
mod periodic;
mod preempted;
