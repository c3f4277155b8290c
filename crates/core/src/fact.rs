// SPDX-License-Identifier: MIT
//! Facts: all that a scheduler is told, as values.
//!
//! One list serves the server's module, trace records (a record encodes a fact), replay, the simulator and the tests. The time
//! at which a fact happened goes with it to [`Scheduler::handle`](crate::Scheduler::handle).

use crate::{
    Admission, ClientId, GroupId, Holder, Pacing, Parameters, PolicyKind, Reservation, Role, Service, Supply, Time,
};

/// Something that happened, or was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A client connected; it is idle. `descriptor` is its socket.
    Connected {
        /// Who.
        client: ClientId,
        /// The order of the 1987 scheduler.
        descriptor: u32,
    },
    /// A client disconnected. Its reservation and its role end.
    Gone {
        /// Who.
        client: ClientId,
    },
    /// A client has work. Nothing happens where that was known.
    Arrived {
        /// Who.
        client: ClientId,
    },
    /// A client turned out to have no work.
    Withdrawn {
        /// Who.
        client: ClientId,
    },
    /// User input was delivered to a client.
    Input {
        /// To whom.
        client: ClientId,
    },
    /// An Expose was delivered to a client. Where it counts as exposing from now on and did not before, [`Outcome::Held`] if the
    /// cause waits for it from now on, else [`Outcome::Changed`].
    Exposed {
        /// To whom.
        client: ClientId,
        /// Whose request caused it.
        cause: Option<ClientId>,
    },
    /// A request of this client made work for one that works for others. [`Outcome::Changed`] where that has an effect: the
    /// client had rested, or got input.
    MadeWork {
        /// Whose request.
        client: ClientId,
    },
    /// What a window manager does from now on is work for this client, whose request made it.
    WorksFor {
        /// The window manager.
        client: ClientId,
        /// Who pays for it.
        whom: ClientId,
    },
    /// A client grabbed the server, or nobody does any more.
    Grabbed {
        /// Who.
        by: Option<ClientId>,
    },
    /// The slice that just ended was to end this much earlier: so long a request in progress took. If a reserved client is
    /// chosen next, this is what blocked it. Whoever drives the scheduler measures it: time in which the kernel ran
    /// something else is no blocking by a request.
    Overran {
        /// Nanoseconds.
        ns: u64,
    },
    /// A slice ended.
    Served(Service),
    /// The time of somebody who is held back may have come: a depleted client gets its budget, or a paced one goes on
    /// ([`Outcome::Resumed`]), or a depleted group gets its budget ([`Outcome::GroupResumed`]). One at each time; it is to be told
    /// again until the outcome is [`Outcome::None`].
    Replenish,
    /// The policy; every client begins in it anew.
    Policy(PolicyKind),
    /// The parameters; the policy begins anew where they concern it.
    Parameters(Parameters),
    /// How clients are paced that uncover others. Who is held is let go.
    Pacing(Pacing),
    /// What the server itself gets of a processor, for admissions from now on.
    Supply(Supply),
    /// The most that clients that work for others get of the server while somebody else waits.
    DesktopShare {
        /// Millionths; 0: the rule is off.
        ppm: u32,
    },
    /// Contention begins or ends ([`Contention`](crate::Contention)). A scheduler that is told nothing takes it for granted.
    Contention {
        /// Whether there is any from now on.
        is_on: bool,
    },
    /// The SYNC priority that a client has now.
    SyncPriority {
        /// Whose.
        client: ClientId,
        /// Larger is first.
        priority: i32,
    },
    /// The weight of a client or a group under `fair`.
    Weight {
        /// Whose; [`GroupId::NONE`] is none.
        holder: Holder,
        /// Hundredths; 0: of a client as 1, of a group that of its heaviest client, as it is until it is told.
        weight: u32,
    },
    /// The group of a client under `fair`, until it is told another or is gone.
    Group {
        /// Whose.
        client: ClientId,
        /// Its group from now on.
        group: GroupId,
    },
    /// The most that a group gets of the server in each [`CAP_PERIOD_NS`](crate::CAP_PERIOD_NS), under any policy.
    GroupCap {
        /// Which; [`GroupId::NONE`] is none.
        group: GroupId,
        /// Millionths; 0: no cap, as it is until it is told.
        ppm: u32,
    },
    /// The priority of a client under `fixed`.
    FixedPriority {
        /// Whose.
        client: ClientId,
        /// Larger is first.
        priority: i32,
    },
    /// The longest slice of a client, where the policy decides and it uses no reservation.
    Slice {
        /// Whose.
        client: ClientId,
        /// Microseconds; 0: as long as the policy's, as it is until it is told.
        us: u32,
    },
    /// What a client does for others.
    Role {
        /// Who.
        client: ClientId,
        /// Its role from now on.
        role: Role,
    },
    /// A reservation was asked for, in place of the one that the client, or the group together, may have.
    /// [`Outcome::Admission`] tells whether it is there now.
    Reserve {
        /// For whom; [`GroupId::NONE`] is none.
        holder: Holder,
        /// What.
        reservation: Reservation,
    },
    /// A reservation ends. [`Outcome::Changed`] where there was one.
    Release {
        /// Whose.
        holder: Holder,
    },
}

impl Fact {
    /// The client that it is about, if it is about one.
    pub fn client(&self) -> Option<ClientId> {
        match *self {
            Fact::Connected { client, .. }
            | Fact::Gone { client }
            | Fact::Arrived { client }
            | Fact::Withdrawn { client }
            | Fact::Input { client }
            | Fact::Exposed { client, .. }
            | Fact::MadeWork { client }
            | Fact::WorksFor { client, .. }
            | Fact::Served(Service { client, .. })
            | Fact::SyncPriority { client, .. }
            | Fact::Weight { holder: Holder::Client(client), .. }
            | Fact::Group { client, .. }
            | Fact::FixedPriority { client, .. }
            | Fact::Slice { client, .. }
            | Fact::Role { client, .. }
            | Fact::Reserve { holder: Holder::Client(client), .. }
            | Fact::Release { holder: Holder::Client(client) } => Some(client),
            Fact::Grabbed { by } => by,
            Fact::Overran { .. } | Fact::Replenish | Fact::Policy(_) | Fact::Parameters(_) => None,
            Fact::Pacing(_)
            | Fact::Supply(_)
            | Fact::DesktopShare { .. }
            | Fact::Contention { .. }
            | Fact::Weight { .. }
            | Fact::GroupCap { .. }
            | Fact::Reserve { .. }
            | Fact::Release { .. } => None,
        }
    }
}

/// What came of a fact, where somebody may want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to tell.
    None,
    /// What the fact says is new.
    Changed,
    /// It is new, and who caused it is held until then at most.
    Held(Time),
    /// This client is no longer held back, or has budget again.
    Resumed(ClientId),
    /// The clients of this group have budget again together.
    GroupResumed(GroupId),
    /// Whether a reservation was admitted.
    Admission(Admission),
}

impl Outcome {
    pub(crate) fn of(changed: bool) -> Outcome {
        if changed { Outcome::Changed } else { Outcome::None }
    }

    /// The outcome of the admission test; `None` for a client that is not connected.
    pub fn admission(self) -> Option<Admission> {
        match self {
            Outcome::Admission(admission) => Some(admission),
            _ => None,
        }
    }

    /// True where a reservation was asked for and the client has it now.
    pub fn is_admitted(self) -> bool {
        matches!(self, Outcome::Admission(Admission::Admitted(_)))
    }
}
