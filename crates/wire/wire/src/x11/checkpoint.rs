// SPDX-License-Identifier: MIT
//! Decoding state of a connection between two packets, for files that begin in the middle of the connection.
//!
//! A recording that starts at an event lacks the connection's setup and the replies that gave the opcodes of
//! extensions. The recorder therefore writes a checkpoint as a comment of the connection's first packet. A reader
//! resumes there: with the right sequence numbers, message boundaries and names.
//!
//! A checkpoint contains only numbers and names of extensions, so it is not confidential.

use super::names::Names;
use serde::{Deserialize, Serialize};

/// Maximum number of pending requests in a checkpoint. A comment of a packet has at most 64 kB.
pub const MAX_PENDING: usize = 1024;
/// Larger numbers of requests mean a damaged file.
const MAX_REQUESTS: u64 = 1 << 48;

/// In a pair, the client's direction comes first, then the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub is_little_endian: bool,
    /// True if the packet with this checkpoint is from the client.
    pub is_from_client: bool,
    /// TCP sequence numbers of the next bytes.
    pub next: [u32; 2],
    /// Remaining bytes of the messages that started before the file.
    pub rest: [u64; 2],
    pub has_big_requests: bool,
    /// True if nothing but TCP's handshake was seen.
    pub is_new: bool,
    /// True if the server has not answered the client's setup.
    pub awaits_setup: bool,
    /// Sequence number of the last request, even if only its beginning was sent.
    pub requests: u64,
    /// Sequence number in the server's last message.
    pub answered: u64,
    /// False if requests were lost before, so that the numbers may be too low.
    pub is_certain: bool,
    /// Unanswered requests: sequence number, major and minor opcode, and the second byte of the last of many replies.
    pub pending: Vec<(u64, u8, u8, Option<u8>)>,
    /// Unanswered queries of extensions: sequence number and name.
    pub queries: Vec<(u64, String)>,
    /// Extensions of the server: name, major opcode, first event and first error.
    pub extensions: Vec<(String, u8, u8, u8)>,
}

impl Checkpoint {
    /// Reads a comment. `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Checkpoint> {
        let checkpoint: Checkpoint = serde_json::from_str(text).ok()?;
        let is_sound = checkpoint.requests.max(checkpoint.answered) <= MAX_REQUESTS
            && checkpoint.pending.is_sorted_by_key(|pending| pending.0)
            && checkpoint.pending.last().is_none_or(|pending| pending.0 <= checkpoint.requests)
            && checkpoint.pending.len() <= MAX_PENDING;
        is_sound.then_some(checkpoint)
    }

    pub fn text(&self) -> String {
        // A structure of numbers and strings always has a text.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn teach(&self, names: &mut Names) {
        for (name, major, first_event, first_error) in &self.extensions {
            names.learn(name, *major, *first_event, *first_error);
        }
    }
}
