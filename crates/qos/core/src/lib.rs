// SPDX-License-Identifier: MIT
//! The scheduler, which decides which X client runs next: policies, reservations, admission and accounting.
//!
//! The same code runs inside the server, in the simulator and in replay. It is therefore pure: no clock, no I/O, no
//! dependencies, no unsafe code. The caller passes [`Fact`]s with the time at which they happened and gets decisions
//! back. The same facts always give the same decisions.
//!
//! The server's main loop makes these calls for each decision:
//!
//! 1. [`Fact::Replenish`] until its outcome is [`FactOutcome::None`]: release clients and groups whose hold has ended.
//! 2. [`Fact::Arrived`] for each client that became ready since the last decision.
//! 3. [`Scheduler::decide`]: the client to serve, and the latest time at which its slice ends.
//! 4. [`Scheduler::next_to_watch`] until `None`: the idle clients that would end this slice early if they became ready.
//! 5. [`Fact::Served`] when the slice has ended.
//! 6. [`Scheduler::next_request_of`]: the client to wait for before the next decision, if any.
//!
//! A decision allocates nothing and costs O(log n) in the number of clients. Memory is allocated when a client
//! connects.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

/// Declares enumerations whose variants have numbers and names.
#[macro_export]
macro_rules! named {
    ($($(#[$meta:meta])* $type:ident { $($(#[$of:meta])* $item:ident $name:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$of])* $item),* }

        impl $type {
            /// All variants, in the order of their declaration.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$item),*];

            pub fn code(self) -> u8 {
                self as u8
            }

            pub fn from_code(code: u8) -> Option<$type> {
                Self::ALL.get(usize::from(code)).copied()
            }

            pub fn name(self) -> &'static str {
                match self { $($type::$item => $name),* }
            }

            pub fn from_name(name: &str) -> Option<$type> {
                Self::ALL.into_iter().find(|item| item.name() == name)
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                out.write_str(self.name())
            }
        }
    )*};
}

mod admission;
mod blocking;
mod caps;
mod contention;
mod decision;
mod desktop;
mod fact;
mod heap;
mod pacing;
mod policy;
#[macro_use]
mod range;
mod reservation;
mod reservations;
mod scheduler;
pub mod setting;
mod supply;
mod time;
mod usage;
mod waiting;
mod words;

pub use admission::{Admission, Holder, Term};
pub use caps::CAP_PERIOD_NS;
pub use contention::{BEGINS_AFTER_NS, BUSY_PERCENT, BusyTime, Contention};
pub use decision::{Choice, Contest, Mode, Parameters, Rank, Service, Slice};
pub use desktop::{
    CALLED_GAP_NS, CALLED_TURNS, DEFAULT_SHARE_PPM, DEFERRAL_FACTOR, FRAME_NS, MANAGERS_NS, MAX_SHARE_PPM, RESTED_NS,
    Role, WAIT_NS,
};
pub use fact::{Fact, FactOutcome};
pub use pacing::Pacing;
pub use policy::PolicyKind;
pub use range::{Range, Unit};
pub use reservation::{Reservation, ReservationKind, ReservationState};
pub use scheduler::Scheduler;
pub use supply::Supply;
pub use time::Time;
pub use usage::{LONG_GRAB_NS, Usage, WAIT_BOUNDS_NS};

/// A client of the server: its index in the server's client table, below [`ClientId::LIMIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u16);

impl ClientId {
    /// The largest number of clients of an X server (`MAXCLIENTS`).
    pub const LIMIT: usize = 2048;

    pub(crate) fn slot(self) -> usize {
        usize::from(self.0)
    }
}

/// A group of clients that share one account: the policy charges their server time together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

impl GroupId {
    /// A client with this group id is in no group and has its own account.
    pub const NONE: GroupId = GroupId(0);
}
