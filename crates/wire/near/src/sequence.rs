// SPDX-License-Identifier: MIT
//! Sequence numbers for the program and for the server; the server's also count the proxy's own requests.
//!
//! Both are 64-bit. The server's numbers never decrease and grow by less than 65,536 from one message to the next (see
//! `x11::sequence`). Numbers that the program sees never decrease either: an event after an early answer gets that
//! answer's number, as if the server had executed that request before the event.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct SequenceNumbers {
    /// Number of requests from the program.
    pub requests: u64,
    /// Number of requests sent to the server.
    pub sent: u64,
    /// The last sequence number that the server reported.
    reached: u64,
    /// The last sequence number that the program received.
    last_given: u64,
    /// The proxy's own requests that the server has not passed yet, and the number of own requests that it has passed.
    own: VecDeque<u64>,
    own_passed: u64,
}

impl SequenceNumbers {
    /// Counts a request from the program (or its NoOperation). Returns the program's and the server's number for it.
    pub fn next_program(&mut self) -> (u64, u64) {
        self.requests += 1;
        self.sent += 1;
        (self.requests, self.sent)
    }

    /// Counts a request from the proxy. Returns the server's number for it.
    pub fn next_own(&mut self) -> u64 {
        self.sent += 1;
        self.own.push_back(self.sent);
        self.sent
    }

    /// Widens the server's 16-bit number. `None` if no such request was sent.
    pub fn widen(&self, low: u16) -> Option<u64> {
        let number = self.reached + u64::from(low.wrapping_sub(self.reached as u16));
        (number <= self.sent).then_some(number)
    }

    /// Records a number that the server has reported.
    pub fn reach(&mut self, number: u64) {
        self.reached = self.reached.max(number.min(self.sent));
        // The server can still send an error with the number that it has reached, so that request is not passed yet.
        while self.own.front().is_some_and(|&own| own < self.reached) {
            self.own.pop_front();
            self.own_passed += 1;
        }
    }

    pub fn is_own(&self, number: u64) -> bool {
        self.own.binary_search(&number).is_ok()
    }

    /// The program's sequence number that corresponds to the number that the server has reached.
    pub fn current(&self) -> u64 {
        let is_at_own = self.own.front() == Some(&self.reached);
        self.reached - self.own_passed - u64::from(is_at_own)
    }

    /// The number to write into a message for the program: `number`, or the last given number if that is higher.
    pub fn for_program(&mut self, number: u64) -> u16 {
        self.last_given = self.last_given.max(number.min(self.requests));
        self.last_given as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_requests_do_not_count_for_the_program() {
        let mut sequence = SequenceNumbers::default();
        assert_eq!(sequence.next_program(), (1, 1));
        assert_eq!(sequence.next_own(), 2);
        assert_eq!(sequence.next_own(), 3);
        assert_eq!(sequence.next_program(), (2, 4));
        for (server, program) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
            sequence.reach(server);
            assert_eq!(sequence.current(), program, "{server}");
        }
        assert!(!sequence.is_own(4));
    }

    #[test]
    fn numbers_for_the_program_never_decrease() {
        let mut sequence = SequenceNumbers::default();
        (0..10).for_each(|_| _ = sequence.next_program());
        assert_eq!(sequence.for_program(7), 7);
        assert_eq!(sequence.for_program(5), 7, "an earlier event gets the last number");
        assert_eq!(sequence.for_program(4000), 10, "only ten requests were sent");
    }

    #[test]
    fn sequence_numbers_grow_beyond_sixteen_bits() {
        let mut sequence = SequenceNumbers::default();
        for number in 1..=200_000_u64 {
            sequence.next_program();
            if number % 60_000 == 0 {
                assert_eq!(sequence.widen(number as u16), Some(number));
                sequence.reach(number);
                assert_eq!(sequence.current(), number);
            }
        }
        assert_eq!(sequence.widen(180_000_u64.wrapping_sub(1) as u16), None, "no such request was sent");
    }
}
