// SPDX-License-Identifier: MIT
//! Time of the TCP handshake, which counts as network time: no program can send before its end.
//!
//! The handshake starts with the first SYN, even if it is lost, and ends when the client acknowledges the SYN-ACK. If
//! that acknowledgement carries data, the program may have delayed it; the handshake then ends with the SYN-ACK.

use super::spans::Span;
use crate::observe::{Direction, Packet};

#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    began_ns: Option<u64>,
    /// Time of the last SYN and of the last SYN-ACK.
    asked_ns: u64,
    accepted_ns: Option<u64>,
    over_ns: Option<u64>,
    /// Round trip from the capturing machine to the server.
    pub to_server_ns: u64,
    /// Round trip from the capturing machine to the client.
    pub to_client_ns: u64,
}

impl Handshake {
    /// Takes the next packet. Returns the span of the handshake if this packet ends it.
    pub fn packet(&mut self, packet: &Packet) -> Option<Span> {
        match (packet.direction, self.accepted_ns) {
            _ if self.over_ns.is_some() => None,
            (Direction::Requests, None) => {
                if packet.is_control {
                    self.asked_ns = packet.at_ns;
                    self.began_ns.get_or_insert(packet.at_ns);
                }
                None
            }
            (Direction::Replies, before) => {
                if packet.is_control && self.began_ns.is_some() {
                    self.accepted_ns = Some(packet.at_ns);
                    // Only the first SYN-ACK answers the last SYN; later ones are retransmissions.
                    if before.is_none() {
                        self.to_server_ns = packet.at_ns.saturating_sub(self.asked_ns);
                    }
                }
                None
            }
            (Direction::Requests, Some(_)) if packet.is_control => None,
            (Direction::Requests, Some(accepted_ns)) => {
                let over_ns = if packet.length == 0 { packet.at_ns } else { accepted_ns };
                self.to_client_ns = over_ns.saturating_sub(accepted_ns);
                self.over_ns = Some(over_ns);
                self.span(over_ns)
            }
        }
    }

    /// The handshake so far, if the connection ended before the handshake was complete.
    pub fn unfinished(&self, ended_ns: u64) -> Option<Span> {
        let is_over = self.over_ns.is_some();
        self.span(self.accepted_ns.unwrap_or(ended_ns)).filter(|_| !is_over)
    }

    fn span(&self, to_ns: u64) -> Option<Span> {
        self.began_ns.map(|from_ns| Span { from_ns, to_ns: to_ns.max(from_ns) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Replies, Requests};

    /// Direction, time, SYN flag, and bytes of each packet.
    fn seen(packets: &[(Direction, u64, bool, u32)]) -> (Handshake, Option<Span>) {
        let mut handshake = Handshake::default();
        let spans = packets.iter().map(|&(direction, at_ns, is_control, length)| {
            handshake.packet(&Packet {
                direction,
                at_ns,
                offset: 0,
                length,
                acknowledged: 0,
                window: 1 << 16,
                is_retransmission: false,
                is_control,
            })
        });
        let span = spans.fold(None, Option::or);
        (handshake, span)
    }

    #[test]
    fn a_handshake_lasts_from_the_first_syn_to_the_last_acknowledgement() {
        for (packets, span, trips) in [
            ([(Requests, 10, true, 0), (Replies, 30, true, 0), (Requests, 35, false, 0)], (10, 35), (20, 5)),
            // The program may have delayed an acknowledgement that carries data.
            ([(Requests, 10, true, 0), (Replies, 30, true, 0), (Requests, 900, false, 12)], (10, 30), (20, 0)),
        ] {
            let (handshake, seen) = seen(&packets);
            assert_eq!(seen, Some(Span { from_ns: span.0, to_ns: span.1 }));
            assert_eq!((handshake.to_server_ns, handshake.to_client_ns), trips);
            assert_eq!(handshake.unfinished(1000), None);
        }
    }

    #[test]
    fn lost_handshake_packets_do_not_distort_round_trips() {
        let packets = [
            (Requests, 0, true, 0),
            (Requests, 1000, true, 0),
            (Replies, 1020, true, 0),
            (Replies, 2020, true, 0),
            (Requests, 2025, false, 0),
            (Requests, 9000, true, 0),
        ];
        let (handshake, span) = seen(&packets);
        assert_eq!(span, Some(Span { from_ns: 0, to_ns: 2025 }));
        assert_eq!((handshake.to_server_ns, handshake.to_client_ns), (20, 5));
        let (alone, _) = seen(&packets[..2]);
        assert_eq!(alone.unfinished(7000), Some(Span { from_ns: 0, to_ns: 7000 }));
        let (none, span) = seen(&[(Requests, 5, false, 4), (Replies, 7, false, 32)]);
        assert_eq!((none.unfinished(9), span), (None, None), "the handshake was not captured");
    }
}
