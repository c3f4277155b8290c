// SPDX-License-Identifier: MIT
//! Facts: all that a scheduler is told, as values.
//!
//! One list serves the server's module, trace records (a record encodes a fact), replay, the simulator and the tests. The time
//! at which a fact happened goes with it to [`Scheduler::handle`](crate::Scheduler::handle).

use crate::{
    Admission, ClientId, GroupId, Holder, Pacing, Parameters, PolicyKind, Reservation, Role, Service, Supply, Time,
};

/// Something that happened, or was set. `client` is who it is about.
#[allow(missing_docs, reason = "a variant's text says what its fields are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A client connected; it is idle. `descriptor` is its socket: the order of the 1987 scheduler.
    Connected { client: ClientId, descriptor: u32 },
    /// A client disconnected. Its reservation and its role end.
    Gone { client: ClientId },
    /// A client has work. Nothing happens where that was known.
    Arrived { client: ClientId },
    /// A client turned out to have no work.
    Withdrawn { client: ClientId },
    /// User input was delivered to a client.
    Input { client: ClientId },
    /// An Expose was delivered to a client; `cause`: whose request caused it. Where it counts as exposing from now on and did not
    /// before, [`Outcome::Held`] if the cause waits for it from now on, else [`Outcome::Changed`].
    Exposed { client: ClientId, cause: Option<ClientId> },
    /// A request of this client made work for one that works for others. [`Outcome::Changed`] where that has an effect: the
    /// client had rested, or got input.
    MadeWork { client: ClientId },
    /// What a window manager does from now on is work for this other client, whose request made it, and which pays for it.
    WorksFor { client: ClientId, whom: ClientId },
    /// A client grabbed the server, or nobody does any more.
    Grabbed { by: Option<ClientId> },
    /// The slice that just ended was to end this much earlier: so long a request in progress took. If a reserved client is
    /// chosen next, this is what blocked it. Whoever drives the scheduler measures it: time in which the kernel ran
    /// something else is no blocking by a request.
    Overran { ns: u64 },
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
    /// The most that clients that work for others get of the server while somebody else waits, millionths; 0: the rule is off.
    DesktopShare { ppm: u32 },
    /// Contention begins or ends ([`Contention`](crate::Contention)). A scheduler that is told nothing takes it for granted.
    Contention { is_on: bool },
    /// The SYNC priority that a client has now; larger is first.
    SyncPriority { client: ClientId, priority: i32 },
    /// The weight of a client or a group under `fair`, hundredths. 0 is 1 for a client, and for a group that of its heaviest
    /// client, as it is until it is told. [`GroupId::NONE`] has none.
    Weight { holder: Holder, weight: u32 },
    /// The group of a client under `fair`, until it is told another or is gone.
    Group { client: ClientId, group: GroupId },
    /// The most that a group gets of the server in each [`CAP_PERIOD_NS`](crate::CAP_PERIOD_NS), under any policy, millionths; 0: no
    /// cap, as it is until it is told. [`GroupId::NONE`] has none.
    GroupCap { group: GroupId, ppm: u32 },
    /// The priority of a client under `fixed`; larger is first.
    FixedPriority { client: ClientId, priority: i32 },
    /// The longest slice of a client, where the policy decides and it uses no reservation, microseconds; 0: as long as the policy's,
    /// as it is until it is told.
    Slice { client: ClientId, us: u32 },
    /// What a client does for others from now on.
    Role { client: ClientId, role: Role },
    /// A reservation was asked for, in place of the one that the client, or the group together, may have; not for
    /// [`GroupId::NONE`]. [`Outcome::Admission`] tells whether it is there now.
    Reserve { holder: Holder, reservation: Reservation },
    /// A reservation ends. [`Outcome::Changed`] where there was one.
    Release { holder: Holder },
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
            _ => None,
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
