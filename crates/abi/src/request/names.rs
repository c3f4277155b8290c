// SPDX-License-Identifier: MIT
//! Numbers and names of the requests, by minor opcode.

/// Minor opcodes.
pub mod minor {
    pub const QUERY_VERSION: u8 = 0;
    pub const GET_SERVER_INFO: u8 = 1;
    pub const SET_RESERVATION: u8 = 2;
    pub const GET_RESERVATION: u8 = 3;
    pub const CLEAR_RESERVATION: u8 = 4;
    pub const CHECK_ADMISSION: u8 = 5;
    pub const LIST_CLIENTS: u8 = 6;
    pub const SET_POLICY: u8 = 7;
    pub const SET_CLIENT_WEIGHT: u8 = 8;
    pub const SET_CLIENT_PRIORITY: u8 = 9;
    pub const SELECT_EVENTS: u8 = 10;
    pub const START_TRACE: u8 = 11;
    pub const STOP_TRACE: u8 = 12;
    pub const LIST_LONGEST_REQUESTS: u8 = 13;
    pub const LEND_PROCESSOR: u8 = 14;
    pub const SET_PACING: u8 = 15;
    pub const GET_PACING: u8 = 16;
    pub const GET_PROCESSOR: u8 = 17;
    pub const SET_DESKTOP: u8 = 18;
    pub const GET_DESKTOP: u8 = 19;
    pub const SET_ORIGIN: u8 = 20;
    pub const SET_GROUPS: u8 = 21;
    pub const GET_GROUPS: u8 = 22;
    pub const SET_CLIENT_GROUP: u8 = 23;
    pub const SET_GROUP_WEIGHT: u8 = 24;
    pub const SET_GROUP_CAP: u8 = 25;
    pub const SET_GROUP_RESERVATION: u8 = 26;
    pub const CLEAR_GROUP_RESERVATION: u8 = 27;
    pub const SET_CLIENT_PACING: u8 = 28;
    pub const LIST_DEPARTED: u8 = 29;
}

/// Names of the requests, by minor opcode, and whether they have a reply.
pub const REQUESTS: [(&str, bool); 30] = [
    ("QueryVersion", true),
    ("GetServerInfo", true),
    ("SetReservation", false),
    ("GetReservation", true),
    ("ClearReservation", false),
    ("CheckAdmission", true),
    ("ListClients", true),
    ("SetPolicy", false),
    ("SetClientWeight", false),
    ("SetClientPriority", false),
    ("SelectEvents", false),
    ("StartTrace", true),
    ("StopTrace", false),
    ("ListLongestRequests", true),
    ("LendProcessor", false),
    ("SetPacing", false),
    ("GetPacing", true),
    ("GetProcessor", true),
    ("SetDesktop", false),
    ("GetDesktop", true),
    ("SetOrigin", false),
    ("SetGroups", false),
    ("GetGroups", true),
    ("SetClientGroup", false),
    ("SetGroupWeight", false),
    ("SetGroupCap", false),
    ("SetGroupReservation", false),
    ("ClearGroupReservation", false),
    ("SetClientPacing", false),
    ("ListDeparted", true),
];
