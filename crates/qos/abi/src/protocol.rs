// SPDX-License-Identifier: MIT
//! The messages of XQOS. Generated from proto/xqos.xml by proto/generate.py: edit that file instead.

use crate::bytes::{ByteReader, ByteWriter, Malformed};
use crate::label::Label;
use crate::trace::Level;
use crate::values::{NO_RESERVATION, PolicyChange, Subject};
use crate::wire::{WireField, Word};
use xqos_core::{Pacing, PolicyKind, Reservation};
use xqos_x11::ByteOrder;

bits! {
    /// What a client gets when its budget is used up; 0: it continues as best effort.
    reservation_flag {
        HARD = 1, HELD_BACK = 2, SOFT_PAPER = 4
    }
    /// State of a client.
    entry_flag {
        RESERVED = 1, HARD = 2, HELD_BACK = 4, READY = 8, YOU = 16, LOCAL = 32, GRABS_SERVER = 64, COMPOSITOR = 128,
        WINDOW_MANAGER = 256, GROUP_HARD = 512, PACED = 1024, NEVER_PACED = 2048, SOFT_PAPER = 4096,
        GROUP_SOFT_PAPER = 8192, GRABS_POINTER = 16384, GRABS_KEYBOARD = 32768
    }
    /// Which events to send.
    event_mask {
        CLIENTS = 1, RESERVATIONS = 2, DEPLETIONS = 4, MISSES = 8, EXPOSES = 16, SETTINGS = 32
    }
}

words! {
    /// Which clients are one group, unless a client was put into a group by name.
    Grouping {
        None = 0, Application = 1, User = 2
    }
    /// Whether a client waits for the clients that it uncovers.
    Paced {
        AsAll = 0, Always = 1, Never = 2
    }
    /// The cause of an XqosNotify.
    NotifyKind {
        ClientConnected = 0, ClientGone = 1, ReservationSet = 2, ReservationCleared = 3, Depleted = 4, Missed = 5,
        Exposing = 6, Answered = 7, Input = 8, Settings = 9
    }
}

settings! {
    /// For a client or a group.
    0 Reservation(Reservation [12]) { Client: NO_RESERVATION, Group: NO_RESERVATION };
    /// For a client or a group, in hundredths; 0 for a group: the weight of its heaviest client.
    1 Weight(u32 [4]) { Client: 100, Group: 0 };
    /// For a client under the policy fixed; larger values are served first.
    2 Priority(i32 [4]) { Client: 0 };
    /// For a group: its maximum share, in millionths; 0: no cap.
    3 Cap(u32 [4]) { Group: 0 };
    /// For a client.
    4 Paced(Paced [4]) { Client: Paced::AsAll };
    /// For a client: the name of its group; empty: the group that the grouping gives.
    5 Group(Label [32]) { Client: Label::default() };
    /// For the server: how clients wait for those that they uncover.
    6 Pacing(Pacing [8]) { Server: Pacing::default() };
    /// For the server: maximum share of compositors and window managers, in millionths.
    7 Desktop(u32 [4]) { Server: 666_667 };
    /// For the server.
    8 Grouping(Grouping [4]) { Server: Grouping::Application };
    /// For the server: maximum that one user may reserve, in millionths; 0: no limit.
    9 UserLimit(u32 [4]) { Server: 0 };
    /// For a client: its longest slice under the policy, in us; 0: the policy's slice.
    10 Slice(u32 [4]) { Client: 0 };
    /// For the server: time after which a long request is cut, in us; 0: requests are not cut.
    11 Cut(u32 [4]) { Server: 0 };
}

requests! {
    0 QueryVersion { major: u32 [4], minor: u32 [4] } true;
    1 GetServerInfo true;
    2 Set { subject: Subject [8], setting: Setting [36] } false;
    3 Clear { subject: Subject [8], setting: SettingKind [4] } false;
    4 CheckAdmission { subject: Subject [8], reservation: Reservation [12] } true;
    5 GetReservation { client: u32 [4] } true;
    6 ListClients true;
    /// Usage of departed clients, by program; the reply is that of ListClients.
    7 ListDeparted true;
    8 ListLongestRequests true;
    9 GetPacing true;
    10 GetDesktop true;
    11 GetGroups true;
    12 GetProcessor true;
    13 SetPolicy { change: PolicyChange [28] } false;
    /// Settings that the sender makes from now on are reported with this name.
    14 SetOrigin { name: Label [32], lease: bool [4] } false;
    /// Whether the server's thread gets a real-time priority while it works for a reserved client.
    15 LendProcessor { on: bool [4], limit_before: u32 [4] } false;
    16 SelectEvents { mask: u32 [4] } false;
    17 StartTrace { level: Level [4], capacity: u32 [4] } true;
    18 StopTrace false;
    19 GetCut true;
    /// As if an Expose had been delivered to the client.
    20 MarkExposing { client: u32 [4] } false;
}

entries! {
    /// One client.
    ClientEntry [392] {
        client: u32 [4], pid: i32 [4], uid: u32 [4], sync_priority: i32 [4], weight: u32 [4], fixed_priority: i32 [4],
        flags: u32 [4], budget_us: u32 [4], period_us: u32 [4], depletions: u32 [4], misses: u32 [4],
        longest_request: u32 [4], budget_left_ns: i64 [8], deadline_ns: u64 [8], server_time_ns: u64 [8],
        reserved_time_ns: u64 [8], requests: u64 [8], slices: u64 [8], waited_ns: u64 [8], longest_wait_ns: u64 [8],
        longest_request_ns: u64 [8], connected_ns: u64 [8], grabbed_ns: u64 [8], charged_ns: u64 [8], grabs: u32 [4],
        group_cap_ppm: u32 [4], name: String [32], group: u32 [4], group_weight: u32 [4], group_name: Label [32],
        reservation_origin: Label [32], settings_origin: Label [32], host: String [48], waits: [u32; 8] [32],
        long_grabs: u32 [4], group_budget_us: u32 [4], group_period_us: u32 [4], slice_us: u32 [4],
        longest_part_us: u32 [4], cuts: u32 [4]
    }
    /// One of the longest requests since the server started.
    LongRequest [64] {
        ns: u64 [8], at_ns: u64 [8], client: u32 [4], pid: i32 [4], request: u32 [4], name: String [32]
    }
}

replies! {
    /// Reply to QueryVersion.
    #[derive(Copy)]
    Version [32] {
        major: u32 [4], minor: u32 [4]
    }
    /// Reply to GetServerInfo.
    ServerInfo [368] (armed: bool) {
        server_pid: u32 [4], policy: PolicyKind [4], clients: u32 [4], reservations: u32 [4],
        max_utilization_ppm: u32 [4], admitted_utilization_ppm: u32 [4], blocking_observed_us: u32 [4],
        blocking_configured_us: u32 [4], min_budget_us: u32 [4], min_period_us: u32 [4], max_period_us: u32 [4],
        slice_us: u32 [4], timer_interval_us: u32 [4], maximum_slice_us: u32 [4], memory_bytes: u32 [4],
        clients_limit: u32 [4], uptime_ns: u64 [8], busy_ns: u64 [8], decisions: u64 [8], early_ends: u64 [8],
        grab_holder: u32 [4], reason: String [256]
    }
    /// Reply to CheckAdmission.
    #[derive(Copy)]
    AdmissionReport [32] (admitted: bool) {
        failing_client: u32 [4], failing_period_us: u32 [4], sum_ppm: u32 [4], blocking_ppm: u32 [4],
        limit_ppm: u32 [4], blocking_us: u32 [4]
    }
    /// Reply to GetReservation.
    #[derive(Copy)]
    ReservationReport [48] (active: bool) {
        budget_us: u32 [4], period_us: u32 [4], flags: u32 [4], depletions: u32 [4], budget_left_ns: i64 [8],
        deadline_ns: u64 [8], misses: u32 [4]
    }
    /// Reply to ListClients.
    ClientList [32] {
        now_ns: u64 [8], server_cpu_ns: u64 [8]
    } [clients: ClientEntry 392]
    /// Reply to ListLongestRequests.
    LongestRequests [32] {
    } [requests: LongRequest 64]
    /// Reply to GetPacing.
    #[derive(Copy)]
    PacingReport [32] {
        limit_us: u32 [4], floor_us: u32 [4], exposing: u32 [4], paced: u32 [4], holds: u32 [4]
    }
    /// Reply to GetDesktop.
    #[derive(Copy)]
    DesktopReport [32] {
        share_ppm: u32 [4], clients: u32 [4]
    }
    /// Reply to GetGroups.
    #[derive(Copy)]
    GroupsReport [32] (grouping: Grouping) {
        user_limit_ppm: u32 [4], groups: u32 [4]
    }
    /// Reply to GetProcessor.
    #[derive(Copy)]
    ProcessorReport [32] (is_lent: bool) {
        budget_us: u32 [4], period_us: u32 [4], limit_ppm: u32 [4], raises: u32 [4]
    }
    /// Reply to StartTrace.
    #[derive(Copy)]
    TraceStarted [32] (nfd: u32) {
        capacity: u32 [4], record_bytes: u32 [4], first: u64 [8]
    }
    /// Reply to GetCut.
    #[derive(Copy)]
    CutReport [32] (is_possible: bool) {
        part_us: u32 [4], requests: u32 [4], parts: u32 [4], cuts: u32 [4], finished: u32 [4]
    }
}

event! {
    /// The event XqosNotify.
    Notify (kind: NotifyKind) {
        client: u32 [4], pid: i32 [4], budget_us: u32 [4], period_us: u32 [4], flags: u32 [4], count: u32 [4],
        time_ms: u32 [4]
    }
}
