// SPDX-License-Identifier: MIT
//! Facts: everything that the scheduler learns, as values.
//!
//! The server's module, trace records (each encodes one fact), replay, the simulator and the tests share this list.
//! Each fact is passed to [`Scheduler::handle`](crate::Scheduler::handle) with the time at which it happened.

use crate::{
    Admission, ClientId, GroupId, Holder, Pacing, Parameters, PolicyKind, Reservation, Role, Service, Supply, Time,
};

/// An event or a setting; `client` is the client concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A client connected; it is idle. `descriptor` is its socket and determines the order under `classic`.
    Connected { client: ClientId, descriptor: u32 },
    /// A client disconnected. Its reservation and its role end.
    Disconnected { client: ClientId },
    /// A client has requests. Has no effect if the client was already ready.
    Arrived { client: ClientId },
    /// A client turned out to have no requests.
    Withdrawn { client: ClientId },
    /// User input was delivered to a client.
    Input { client: ClientId },
    /// An Expose was delivered to a client; `cause` is the client that caused it with a request. If this marks the
    /// client as exposing, the outcome is `Held` if the cause is now held for it, otherwise `Changed`.
    Exposed { client: ClientId, cause: Option<ClientId> },
    /// A request of this client caused work for a compositor or window manager. The outcome is
    /// [`FactOutcome::Changed`] if the client had rested or received input; otherwise there is no effect.
    CausedWork { client: ClientId },
    /// From now on this window manager works for client `payer`, which caused the work with a request and is charged
    /// for it.
    WorksFor { client: ClientId, payer: ClientId },
    /// A client grabbed the server, or the grab ended.
    Grabbed { by: Option<ClientId> },
    /// The slice that just ended lasted `ns` longer than allowed, because a request was still executing. If a client
    /// with a reservation is chosen next, this is its blocking time. The driver excludes the time during which the
    /// kernel ran other threads.
    Overran { ns: u64 },
    /// A slice ended.
    Served(Service),
    /// A hold may have ended. Each call resumes a client or group that is no longer held or has budget again; repeat
    /// until the outcome is [`FactOutcome::None`].
    Replenish,
    /// Sets the policy. The new policy starts without any history of the clients.
    Policy(PolicyKind),
    /// Sets the parameters. The policy restarts if they affect it.
    Parameters(Parameters),
    /// Sets the pacing of clients that uncover others. Clients that are held now are released.
    Pacing(Pacing),
    /// Sets the processor time of the server itself, which later admission tests take into account.
    Supply(Supply),
    /// Sets the largest share of compositors and window managers under contention, in millionths; 0: the desktop rule
    /// is off.
    DesktopShare { ppm: u32 },
    /// Contention begins or ends ([`Contention`](crate::Contention)). Without this fact the scheduler assumes
    /// contention.
    Contention { is_on: bool },
    /// Sets the SYNC priority of a client; clients of higher priority are served first.
    SyncPriority { client: ClientId, priority: i32 },
    /// Sets the weight of a client or a group under `fair`, in hundredths. 0 means 1 for a client; for a group it means
    /// the weight of its heaviest client, which is the default. [`GroupId::NONE`] has no weight.
    Weight { holder: Holder, weight: u32 },
    /// Sets the group of a client under `fair`, until it changes or the client disconnects.
    Group { client: ClientId, group: GroupId },
    /// Sets the maximum share of a group in each [`CAP_PERIOD_NS`](crate::CAP_PERIOD_NS) under any policy, in
    /// millionths; 0: no cap (the default). [`GroupId::NONE`] has no cap.
    GroupCap { group: GroupId, ppm: u32 },
    /// Sets the priority of a client under `fixed`; clients of higher priority are served first.
    FixedPriority { client: ClientId, priority: i32 },
    /// Sets the longest slice of a client, in microseconds, when the policy chooses it and it uses no reservation; 0:
    /// the policy's slice (the default).
    Slice { client: ClientId, us: u32 },
    /// Sets the desktop role of a client.
    Role { client: ClientId, role: Role },
    /// Requests a reservation, which replaces the holder's current one; not for [`GroupId::NONE`].
    /// [`FactOutcome::Admission`] says whether it was admitted.
    Reserve { holder: Holder, reservation: Reservation },
    /// Ends a reservation. [`FactOutcome::Changed`] if there was one.
    Release { holder: Holder },
}

impl Fact {
    /// The client concerned, if the fact concerns one.
    pub fn client(&self) -> Option<ClientId> {
        match *self {
            Fact::Connected { client, .. }
            | Fact::Disconnected { client }
            | Fact::Arrived { client }
            | Fact::Withdrawn { client }
            | Fact::Input { client }
            | Fact::Exposed { client, .. }
            | Fact::CausedWork { client }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactOutcome {
    /// Nothing to report.
    None,
    /// The fact changed something.
    Changed,
    /// The fact changed something, and the client that caused it is held until this time at the latest.
    Held(Time),
    /// This client is no longer held back, or has budget again.
    Resumed(ClientId),
    /// This group has budget again.
    GroupResumed(GroupId),
    /// The result of the admission test.
    Admission(Admission),
}

impl FactOutcome {
    pub(crate) fn from_change(changed: bool) -> FactOutcome {
        if changed { FactOutcome::Changed } else { FactOutcome::None }
    }

    /// The result of the admission test; `None` if the client is not connected.
    pub fn admission(self) -> Option<Admission> {
        match self {
            FactOutcome::Admission(admission) => Some(admission),
            _ => None,
        }
    }

    /// True if a reservation was requested and admitted.
    pub fn is_admitted(self) -> bool {
        matches!(self, FactOutcome::Admission(Admission::Admitted(_)))
    }
}
