// SPDX-License-Identifier: MIT
//! Which X client runs next: policies, reservations, admission and accounting.
//!
//! One text that runs inside the server, in a simulator and in replay, so it is pure: no clock, no input or output, no
//! dependency, no unsafe code. [`Fact`]s go in with the time at which they happened; decisions come out. The same facts give
//! the same decisions.
//!
//! Order of calls for one decision, as the server's main loop gives them:
//!
//! 1. [`Fact::Replenish`] until its outcome is [`Outcome::None`]: clients and groups whose hold ends.
//! 2. [`Fact::Arrived`] for each client that became ready since the last decision.
//! 3. [`Scheduler::decide`]: whom to serve, and until when at most.
//! 4. [`Scheduler::next_to_watch`] until `None`: idle clients whose arrival would end this slice early.
//! 5. [`Fact::Served`] when the slice ended.
//! 6. [`Scheduler::next_request_of`]: whose next request is to be waited for before the next decision.
//!
//! Decisions allocate nothing and cost O(log n) in the number of clients; memory is taken when a client connects.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

/// Enumerations whose items have names.
#[macro_export]
macro_rules! named {
    ($($(#[$meta:meta])* $type:ident { $($(#[$of:meta])* $item:ident $name:literal),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$of])* $item),* }

        impl $type {
            /// All of them, in their order.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$item),*];

            /// What it is called.
            pub fn name(self) -> &'static str {
                match self { $($type::$item => $name),* }
            }

            /// The one that is called so.
            pub fn from_name(name: &str) -> Option<$type> {
                Self::ALL.into_iter().find(|item| item.name() == name)
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
mod reservation;
mod reservations;
mod scheduler;
mod supply;
mod time;
mod usage;
mod waiting;
mod words;

pub use admission::{Admission, Holder, Term};
pub use caps::CAP_PERIOD_NS;
pub use contention::{BEGINS_AFTER_NS, BUSY_PERCENT, Contention};
pub use decision::{Choice, Contest, Mode, Parameters, Rank, Service, Slice};
pub use desktop::{
    CALLED_GAP_NS, CALLED_TURNS, DEFAULT_SHARE_PPM, EASY_TIMES, FRAME_NS, MANAGERS_NS, MAX_SHARE_PPM, RESTED_NS, Role,
    WAIT_NS,
};
pub use fact::{Fact, Outcome};
pub use pacing::Pacing;
pub use policy::PolicyKind;
pub use reservation::{Reservation, ReservationKind, ReservationState};
pub use scheduler::Scheduler;
pub use supply::Supply;
pub use time::Time;
pub use usage::{LONG_GRAB_NS, Usage, WAIT_BOUNDS_NS};

/// A client of the server: its index in the server's table, below [`ClientId::LIMIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u16);

impl ClientId {
    /// X servers have at most this many clients (`MAXCLIENTS`).
    pub const LIMIT: usize = 2048;

    pub(crate) fn slot(self) -> usize {
        usize::from(self.0)
    }
}

/// Clients that are served as one: what they use is paid together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

impl GroupId {
    /// Of clients that are in no group: each stands for itself.
    pub const NONE: GroupId = GroupId(0);
}
