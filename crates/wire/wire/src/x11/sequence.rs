// SPDX-License-Identifier: MIT
//! 64-bit sequence numbers from the 16 bits on the wire.
//!
//! Sequence numbers in server messages only grow, and by less than 65,536 between two messages: client libraries force
//! a reply before that. Client requests are counted. If some were not captured, the count is too low by an unknown
//! number, until replies reveal it.

/// Number of consecutive matching replies before the count is trusted again.
const FITS_TO_TRUST: u32 = 4;

/// Request count of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    /// Number of the last request seen.
    pub requests: u64,
    /// Number in the last server message.
    pub answered: u64,
    uncertainty: Option<Uncertainty>,
}

/// Requests are missing, so the count is uncertain.
#[derive(Clone, Copy, Debug)]
struct Uncertainty {
    /// The count was correct up to this number.
    certain_until: u64,
    fits: u32,
}

impl Sequence {
    pub fn resume(requests: u64, answered: u64, is_certain: bool) -> Sequence {
        let mut sequence = Sequence { requests, answered, uncertainty: None };
        if !is_certain {
            sequence.mark_uncertain();
        }
        sequence
    }

    #[inline]
    pub fn count(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Records that some requests were not captured.
    pub fn mark_uncertain(&mut self) {
        let certain_until = self.uncertainty.map_or(self.requests, |uncertainty| uncertainty.certain_until);
        self.uncertainty = Some(Uncertainty { certain_until, fits: 0 });
    }

    /// Sequence numbers above this one may be too low; `None` if the count is certain.
    pub fn certain_until(&self) -> Option<u64> {
        Some(self.uncertainty?.certain_until)
    }

    /// Extends a number from the server to 64 bits.
    #[inline]
    pub fn widen(&self, low: u16) -> u64 {
        let forward = u64::from(low.wrapping_sub(self.answered as u16));
        let ahead = self.answered + forward;
        let is_behind = forward >= 0x8000 && ahead > self.requests && self.uncertainty.is_none();
        if is_behind { ahead.saturating_sub(0x1_0000) } else { ahead }
    }

    /// Records that the server has read requests up to this one. Returns by how much the count was too low.
    #[inline]
    pub fn answer(&mut self, sequence: u64) -> u64 {
        self.answered = self.answered.max(sequence);
        match self.uncertainty {
            Some(_) => self.raise(sequence.saturating_sub(self.requests)),
            None => 0,
        }
    }

    /// Raises a count that turned out to be too low.
    pub fn raise(&mut self, by: u64) -> u64 {
        self.requests += by;
        if let Some(uncertainty) = self.uncertainty.as_mut().filter(|_| by > 0) {
            uncertainty.fits = 0;
        }
        by
    }

    pub fn fit(&mut self) {
        if let Some(uncertainty) = &mut self.uncertainty {
            uncertainty.fits += 1;
            if uncertainty.fits >= FITS_TO_TRUST {
                self.uncertainty = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_grow_over_many_wraps() {
        let mut sequence = Sequence::default();
        for number in 1..=300_000_u64 {
            assert_eq!(sequence.count(), number);
            if number % 60_000 == 0 {
                assert_eq!(sequence.widen(number as u16), number);
                sequence.answer(number);
            }
        }
    }

    #[test]
    fn an_older_sequence_number_is_not_a_wrap() {
        let mut sequence = Sequence::default();
        (0..100).for_each(|_| _ = sequence.count());
        sequence.answer(90);
        assert_eq!(sequence.widen(85), 85);
        assert_eq!(sequence.widen(95), 95);
    }

    #[test]
    fn the_server_corrects_a_count_with_missing_requests() {
        let mut sequence = Sequence::default();
        (0..10).for_each(|_| _ = sequence.count());
        sequence.mark_uncertain();
        assert_eq!(sequence.count(), 11);
        assert_eq!(sequence.answer(sequence.widen(40)), 29);
        assert_eq!(sequence.count(), 41);
    }
}
