// SPDX-License-Identifier: MIT
//! Totals that are reported for every capture.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub packets: u64,
    /// Total length of the packets on the wire.
    pub bytes: u64,
    /// Packets that the capture truncated.
    pub cut_packets: u64,
    /// Packets other than TCP over IP.
    pub other_packets: u64,
    pub fragments: u64,
    pub broken_packets: u64,
    /// Packets with an unsupported link type.
    pub unknown_links: u64,
    /// Duplicate packets of X connections.
    pub copies: u64,
    pub connections: u64,
    /// Connections to a display's port that are not X.
    pub foreign_connections: u64,
    /// Packets of connections that were not followed, because too many were open.
    pub not_followed_packets: u64,
    /// Messages cut off by the end of a connection or of the capture.
    pub unfinished_messages: u64,
    pub gaps: u64,
    pub gap_bytes: u64,
    /// Bytes in gaps that cross a message boundary, so that messages are lost.
    pub lost_bytes: u64,
    /// Captured bytes that were not decoded: after gaps, or at the start of a connection that was joined midway.
    pub skipped_bytes: u64,
}
