// SPDX-License-Identifier: MIT
//! A line of `xqos analyse --messages --json`, which `xqos trace export --wire` reads.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What happened on a connection of a capture. Members that do not apply are left out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MessageLine<'a, Kind = String> {
    /// `opened`, `joined`, `program`, `gap`, `ended`, or the kind of a message.
    pub kind: Kind,
    /// Number of the connection, counted from 1.
    pub connection: u32,
    /// Time since the first X packet.
    pub seconds: f64,
    /// Addresses and the time of `opened` and `joined`.
    pub client: Option<Cow<'a, str>>,
    pub server: Option<Cow<'a, str>>,
    pub unix_ns: Option<u64>,
    /// Name of a program or of a message.
    pub name: Option<Cow<'a, str>>,
    pub sequence: Option<u64>,
    /// Bytes of a message or of a gap.
    pub length: Option<u64>,
    pub fields: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    /// The direction of a gap: `>` is to the server.
    pub direction: Option<char>,
    pub offset: Option<u64>,
    pub ending: Option<String>,
}
