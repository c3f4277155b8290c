// SPDX-License-Identifier: MIT
//! Measures how well bytes compress, with zstd and with zlib (`ssh -C`), in bounded memory and time.
//!
//! All connections share one encoder per use: an encoder takes a megabyte, and a session may have a thousand
//! connections. Compressing everything would take ten times longer than the rest of the analysis, so only a sample is
//! compressed: the first [`WHOLE`] bytes of each use, then one block in [`EVERY`].

use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Most programs send no more than this before they become quiet.
const WHOLE: u64 = 2 << 20;
/// After that, one block in this many is sampled. This takes a tenth of the time that reading all blocks takes.
const EVERY: u64 = 64;
const BLOCK: u64 = 64 << 10;
const BUFFER: usize = 16 << 10;
/// The default of zstd.
pub(super) const ZSTD_LEVEL: i32 = 3;
/// Level that OpenSSH uses.
pub(super) const DEFLATE_LEVEL: u32 = 6;

#[derive(Debug, Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Buffered, because one call of an encoder costs as much as a few kilobytes of data, and most requests are short.
type Encoders = (BufWriter<zstd::Encoder<'static, Counter>>, BufWriter<ZlibEncoder<Counter>>);

#[derive(Default)]
pub struct Sample {
    pub seen: u64,
    pub taken: u64,
    encoders: Option<Encoders>,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sample").field("seen", &self.seen).field("taken", &self.taken).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compression {
    pub bytes: u64,
    pub sampled_bytes: u64,
    /// Compressed size as a fraction of the original size.
    pub zstd: f64,
    pub deflate: f64,
}

impl Sample {
    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let in_block = (BLOCK - self.seen % BLOCK) as usize;
            let (part, later) = rest.split_at(in_block.min(rest.len()));
            if self.seen < WHOLE || (self.seen / BLOCK) % EVERY == 0 {
                self.compress(part);
            }
            self.seen += part.len() as u64;
            rest = later;
        }
    }

    fn compress(&mut self, bytes: &[u8]) {
        if self.encoders.is_none() {
            let Ok(zstd) = zstd::Encoder::new(Counter::default(), ZSTD_LEVEL) else { return };
            let deflate = ZlibEncoder::new(Counter::default(), flate2::Compression::new(DEFLATE_LEVEL));
            self.encoders = Some((BufWriter::with_capacity(BUFFER, zstd), BufWriter::with_capacity(BUFFER, deflate)));
        }
        if let Some((zstd, deflate)) = &mut self.encoders {
            if zstd.write_all(bytes).is_ok() && deflate.write_all(bytes).is_ok() {
                self.taken += bytes.len() as u64;
            }
        }
    }

    /// Returns the result, or `None` if nothing was sampled.
    pub fn finish(self) -> Option<Compression> {
        let (zstd, deflate) = self.encoders?;
        let (zstd, deflate) = (zstd.into_inner().ok()?, deflate.into_inner().ok()?);
        let lengths = (zstd.finish().ok()?.0, deflate.finish().ok()?.0);
        let ratio = |length: u64| length as f64 / self.taken.max(1) as f64;
        let (bytes, sampled_bytes) = (self.seen, self.taken);
        Some(Compression { bytes, sampled_bytes, zstd: ratio(lengths.0), deflate: ratio(lengths.1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_colour_compresses_to_almost_nothing() {
        let mut sample = Sample::default();
        (0..100).for_each(|_| sample.add(&[7; 1000]));
        assert_eq!((sample.seen, sample.taken), (100_000, 100_000));
        let ratios = sample.finish().unwrap();
        assert!(ratios.zstd < 0.01 && ratios.deflate < 0.01, "{ratios:?}");
    }

    #[test]
    fn noise_does_not_compress() {
        let mut sample = Sample::default();
        let mut state = xqos_testkit::seed();
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(100_000)
        .collect();
        sample.add(&noise);
        let ratios = sample.finish().unwrap();
        assert!(ratios.zstd > 0.99 && ratios.deflate > 0.99, "{ratios:?}");
    }

    #[test]
    fn large_data_are_sampled() {
        let mut sample = Sample::default();
        let block = vec![0; 1 << 20];
        (0..100).for_each(|_| sample.add(&block));
        assert_eq!(sample.seen, 100 << 20);
        assert!(sample.taken < 5 << 20, "{}", sample.taken);
        assert!(Sample::default().finish().is_none());
    }
}
