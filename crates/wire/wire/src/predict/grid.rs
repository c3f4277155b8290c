// SPDX-License-Identifier: MIT
//! The links of Packard and Gettys (2003): five rates by four delays.

use crate::link::shape::Shape;
use std::num::NonZeroU64;

pub const RATES_KBIT: [u64; 5] = [100_000, 10_000, 1_000, 100, 10];
/// One-way delays.
pub const DELAYS_US: [u64; 4] = [100, 1_000, 10_000, 100_000];

/// All links, fastest and shortest first, with the emulator's default queue.
pub fn links() -> impl Iterator<Item = Shape> {
    RATES_KBIT.into_iter().flat_map(|kbit_per_s| DELAYS_US.map(|delay_us| link(kbit_per_s, delay_us)))
}

pub fn link(kbit_per_s: u64, delay_us: u64) -> Shape {
    let rate = NonZeroU64::new(kbit_per_s.saturating_mul(1000));
    Shape { rate, delay_ns: delay_us.saturating_mul(1000), ..Shape::default() }
}
