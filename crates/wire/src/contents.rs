// SPDX-License-Identifier: MIT
//! What was in a capture as a whole, in figures; nobody's analysis, but what every reader of a capture has to tell.

/// What was in a capture, and what could not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub packets: u64,
    /// As they were on the wire.
    pub bytes: u64,
    /// Those that the capture cut off.
    pub cut_packets: u64,
    /// Neither TCP nor IP.
    pub other_packets: u64,
    pub fragments: u64,
    pub broken_packets: u64,
    /// On links of a kind that is not known.
    pub unknown_links: u64,
    /// Of connections of X, those that the capture has already.
    pub copies: u64,
    /// Connections of X.
    pub connections: u64,
    /// Connections to a display's port that began with something else.
    pub foreign_connections: u64,
    /// Packets of connections that were too many.
    pub not_followed_packets: u64,
    /// Messages that a connection's end cut off, or the capture's.
    pub unfinished_messages: u64,
    pub gaps: u64,
    pub gap_bytes: u64,
    /// Those of them that have messages in them which are not told.
    pub lost_bytes: u64,
    /// Captured, and not understood: after gaps, and before a connection that was joined could be understood.
    pub skipped_bytes: u64,
}
