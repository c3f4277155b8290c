// SPDX-License-Identifier: MIT
//! Congestion window of a TCP sender as in Linux: slow start, which rising delay can end (HyStart), and CUBIC.
//!
//! | phase | growth of the window | ends with |
//! |---|---|---|
//! | slow start | by the acknowledged bytes | late packets, a train of packets for half a round trip, or a loss |
//! | avoidance | cubic in the time since the last loss | a loss, which reduces it by 30 % |
//! | after idle time | halved for each time-out period without data, down to ten segments | |
//!
//! Before the first loss, avoidance adds at least 1/20 of the acknowledged bytes. The window grows only while it limits
//! the sender.

/// Payload of a 1500-byte packet with TCP timestamps.
pub const SEGMENT_BYTES: u64 = 1448;
const INITIAL_BYTES: u64 = 10 * SEGMENT_BYTES;
const MIN_BYTES: u64 = 2 * SEGMENT_BYTES;
/// Minimum by which the time-out exceeds the round trip.
const TIMEOUT_MARGIN_NS: u64 = 200_000_000;
/// Below this window, delay does not end slow start.
const HYSTART_BYTES: u64 = 16 * SEGMENT_BYTES;
/// Minimum and maximum of the delay increase that ends slow start (an eighth of the shortest round trip).
const LATE_NS: [u64; 2] = [4_000_000, 16_000_000];
/// Number of round-trip samples that a round needs before its delay is judged.
const SAMPLES: u32 = 8;
/// Acknowledgements within this time of each other belong to one train.
const TRAIN_NS: u64 = 2_000_000;
/// CUBIC's scaling constant: segments per cubic second.
const CUBIC: f64 = 0.4;
/// Fraction of the window that remains after a loss.
const LEFT: f64 = 0.7;

#[derive(Clone, Debug)]
pub struct Congestion {
    window: f64,
    threshold: f64,
    shortest_ns: u64,
    smooth_ns: u64,
    round: Round,
    /// Window at the last loss, and time at which the current growth started.
    at_loss: f64,
    epoch_ns: Option<u64>,
    reduced_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    ends_at: u64,
    began_ns: u64,
    last_ns: u64,
    samples: u32,
    shortest_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub now_ns: u64,
    pub bytes: u64,
    pub round_trip_ns: Option<u64>,
    /// Recent maximum of bytes in flight.
    pub in_flight: u64,
    /// End offsets of the acknowledged and of the sent data.
    pub until: u64,
    pub sent: u64,
}

impl Default for Congestion {
    fn default() -> Congestion {
        Congestion {
            window: INITIAL_BYTES as f64,
            threshold: f64::INFINITY,
            shortest_ns: u64::MAX,
            smooth_ns: 0,
            round: Round::default(),
            at_loss: 0.0,
            epoch_ns: None,
            reduced_ns: 0,
        }
    }
}

impl Congestion {
    pub fn window_bytes(&self) -> u64 {
        self.window as u64
    }

    /// Time without acknowledgement after which sent data counts as lost.
    pub fn timeout_ns(&self) -> u64 {
        self.smooth_ns.saturating_add(TIMEOUT_MARGIN_NS)
    }

    /// Smoothed round trip; the initial time-out if there is no sample yet.
    pub fn round_trip_ns(&self) -> u64 {
        if self.smooth_ns == 0 { TIMEOUT_MARGIN_NS } else { self.smooth_ns }
    }

    pub fn acknowledged(&mut self, acknowledged: &Acknowledged) {
        if let Some(round_trip_ns) = acknowledged.round_trip_ns {
            self.shortest_ns = self.shortest_ns.min(round_trip_ns);
            self.smooth_ns = if self.smooth_ns == 0 { round_trip_ns } else { (7 * self.smooth_ns + round_trip_ns) / 8 };
        }
        let is_slow_start = self.window < self.threshold;
        if is_slow_start {
            self.end_slow_start_in_time(acknowledged);
        }
        let in_flight = acknowledged.in_flight as f64;
        let holds_back = if is_slow_start { 2.0 * in_flight > self.window } else { in_flight + 1448.0 >= self.window };
        if !holds_back {
            return;
        }
        let bytes = acknowledged.bytes as f64;
        self.window += if self.window < self.threshold { bytes } else { self.avoided(acknowledged.now_ns, bytes) };
    }

    /// Reduces the window after a loss. All losses within one round trip count as one.
    pub fn lost(&mut self, now_ns: u64) {
        if now_ns < self.reduced_ns.saturating_add(self.smooth_ns) && self.reduced_ns > 0 {
            return;
        }
        self.reduced_ns = now_ns;
        self.at_loss = self.window;
        self.window = (self.window * LEFT).max(MIN_BYTES as f64);
        self.threshold = self.window;
        self.epoch_ns = None;
    }

    /// Reduces the window after `ns` in which nothing was sent.
    pub fn was_idle(&mut self, ns: u64) {
        let times = ns / self.timeout_ns().max(1);
        if times == 0 {
            return;
        }
        let before = self.window;
        let least = before.min(INITIAL_BYTES as f64);
        self.window = (before / 2f64.powi(times.min(64) as i32)).max(least);
        if self.threshold.is_finite() {
            self.threshold = self.threshold.max(before * 0.75);
        }
        self.epoch_ns = None;
    }

    fn avoided(&mut self, now_ns: u64, bytes: f64) -> f64 {
        let segment = SEGMENT_BYTES as f64;
        let epoch_ns = *self.epoch_ns.get_or_insert(now_ns);
        let at_loss = self.at_loss.max(self.window);
        let turning_s = ((at_loss - self.window).max(0.0) / segment / CUBIC).cbrt();
        let seconds = now_ns.saturating_sub(epoch_ns).saturating_add(self.smooth_ns) as f64 / 1e9;
        let aim = at_loss + CUBIC * (seconds - turning_s).powi(3) * segment;
        let growth = bytes * ((aim - self.window) / self.window).clamp(0.01, 0.5);
        if self.at_loss > 0.0 { growth } else { growth.max(bytes / 20.0) }
    }

    /// HyStart: late packets, or a train as long as half a round trip, show that the link is full.
    fn end_slow_start_in_time(&mut self, acknowledged: &Acknowledged) {
        let now_ns = acknowledged.now_ns;
        if acknowledged.until >= self.round.ends_at {
            let shortest_ns = u64::MAX;
            self.round =
                Round { ends_at: acknowledged.sent, began_ns: now_ns, last_ns: now_ns, samples: 0, shortest_ns };
        }
        let round = &mut self.round;
        let is_train = now_ns.saturating_sub(round.last_ns) <= TRAIN_NS;
        if is_train {
            round.last_ns = now_ns;
        }
        if let Some(round_trip_ns) = acknowledged.round_trip_ns.filter(|_| round.samples < SAMPLES) {
            round.samples += 1;
            round.shortest_ns = round.shortest_ns.min(round_trip_ns);
        }
        let late_ns = (self.shortest_ns / 8).clamp(LATE_NS[0], LATE_NS[1]);
        let is_late = round.samples >= SAMPLES && round.shortest_ns >= self.shortest_ns.saturating_add(late_ns);
        let is_long = is_train && now_ns.saturating_sub(round.began_ns) > self.shortest_ns / 2;
        if self.window >= HYSTART_BYTES as f64 && (is_late || is_long) {
            self.threshold = self.window;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Acknowledges one window per round trip, with this gap between acknowledgements. Returns the window after each.
    fn rounds(congestion: &mut Congestion, count: u64, round_trip_ns: u64, gap_ns: u64) -> Vec<u64> {
        let (mut until, mut now_ns) = (0, 0);
        let round = |_| {
            let window = congestion.window_bytes();
            let sent = until + window;
            now_ns += round_trip_ns;
            for at in 0..window / SEGMENT_BYTES {
                until += SEGMENT_BYTES;
                congestion.acknowledged(&Acknowledged {
                    now_ns: now_ns + at * gap_ns,
                    bytes: SEGMENT_BYTES,
                    round_trip_ns: Some(round_trip_ns + at * gap_ns),
                    in_flight: window,
                    until,
                    sent,
                });
            }
            congestion.window_bytes() / SEGMENT_BYTES
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn the_window_doubles_each_round_trip() {
        let mut congestion = Congestion::default();
        assert_eq!(rounds(&mut congestion, 4, 100 * MS, 1_000), [20, 40, 80, 160]);
    }

    #[test]
    fn a_long_train_ends_slow_start() {
        let mut congestion = Congestion::default();
        let windows = rounds(&mut congestion, 8, 100 * MS, MS);
        assert!(windows[2] >= 60 && windows[7] < 200, "{windows:?}");
    }

    #[test]
    fn losses_reduce_the_window_once_per_round_trip() {
        let mut congestion = Congestion::default();
        rounds(&mut congestion, 3, 100 * MS, 1_000);
        congestion.lost(1_000 * MS);
        congestion.lost(1_001 * MS);
        assert_eq!(congestion.window_bytes() / SEGMENT_BYTES, 56);
        congestion.lost(1_200 * MS);
        assert_eq!(congestion.window_bytes() / SEGMENT_BYTES, 39);
    }

    #[test]
    fn idle_time_shrinks_the_window_to_its_initial_size() {
        let mut congestion = Congestion::default();
        rounds(&mut congestion, 3, 100 * MS, 1_000);
        congestion.was_idle(250 * MS);
        assert_eq!(congestion.window_bytes() / SEGMENT_BYTES, 80, "no time-out has passed");
        congestion.was_idle(350 * MS);
        assert_eq!(congestion.window_bytes() / SEGMENT_BYTES, 40);
        congestion.was_idle(60_000 * MS);
        assert_eq!(congestion.window_bytes() / SEGMENT_BYTES, 10);
    }

    #[test]
    fn a_sender_of_little_data_keeps_its_window() {
        let mut congestion = Congestion::default();
        for at in 1..100 {
            congestion.acknowledged(&Acknowledged {
                now_ns: at * MS,
                bytes: 32,
                round_trip_ns: Some(MS),
                in_flight: 32,
                until: 32 * at,
                sent: 32 * at,
            });
        }
        assert_eq!(congestion.window_bytes(), INITIAL_BYTES);
    }
}
