// SPDX-License-Identifier: MIT
//! Measures how well images and glyphs compress, and how much processor time that takes (`xqos analyse --images`).
//!
//! Each image is compressed alone, as a request with a compressed image would carry it; the glyphs of a request are
//! compressed together. The unused byte of depth 24 is removed before an image format gets the pixels; the format's
//! processor time includes this. Pixels are assumed to be little-endian, as on all current servers.

use super::bandwidth::HeldBytes;
use super::compression::{DEFLATE_LEVEL, ZSTD_LEVEL};
use crate::observe::{ConnectionId, Direction, Ending, Kind, Message, Observer};
use flate2::write::ZlibEncoder;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use zune_core::bit_depth::BitDepth;
use zune_core::colorspace::ColorSpace;
use zune_core::options::EncoderOptions;

/// Longest request that is measured; X.Org accepts 16 MB by default.
const MAX_BYTES: usize = 64 << 20;

/// Pixels of a PutImage request, or glyphs of an AddGlyphs request.
#[derive(Clone, Copy, Debug)]
struct Image<'a> {
    bytes: &'a [u8],
    /// Width, height, and depth, if a pixel has 8 or 32 bits and the size fits.
    shape: Option<(u32, u32, u8)>,
}

/// Compresses an image and returns its new length. `None` if it is not an image of 8 or 32 bits.
type Compress = fn(&Image<'_>) -> Option<usize>;

const CODECS: [(&str, Compress); 5] =
    [("zlib -6", zlib), ("zstd -3", zstd), ("lz4", lz4), ("PNG", png), ("JPEG XL, lossless", jpeg_xl)];

fn zlib(image: &Image<'_>) -> Option<usize> {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL));
    encoder.write_all(image.bytes).ok()?;
    encoder.finish().ok().map(|bytes| bytes.len())
}

fn zstd(image: &Image<'_>) -> Option<usize> {
    zstd::encode_all(image.bytes, ZSTD_LEVEL).ok().map(|bytes| bytes.len())
}

fn lz4(image: &Image<'_>) -> Option<usize> {
    Some(lz4_flex::compress(image.bytes).len())
}

fn png(image: &Image<'_>) -> Option<usize> {
    let (channels, pixels) = image.pixels()?;
    let (width, height, _) = image.shape?;
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(match channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    encoder.write_header().ok()?.write_image_data(&pixels).ok()?;
    Some(out.len())
}

fn jpeg_xl(image: &Image<'_>) -> Option<usize> {
    let (channels, pixels) = image.pixels()?;
    let (width, height, _) = image.shape?;
    let colors = match channels {
        1 => ColorSpace::Luma,
        3 => ColorSpace::RGB,
        _ => ColorSpace::RGBA,
    };
    let options = EncoderOptions::new(width as usize, height as usize, colors, BitDepth::Eight);
    let mut out = Vec::new();
    zune_jpegxl::JxlSimpleEncoder::new(&pixels, options).encode(&mut out).ok()?;
    Some(out.len())
}

impl<'a> Image<'a> {
    /// The image of a whole request, if it has one.
    fn of(message: &Message<'_>, request: &'a [u8]) -> Option<Image<'a>> {
        let order = message.order();
        let shift = if order.u16(request, 2) == Some(0) { 4 } else { 0 };
        let short = |at: usize| order.u16(request, at + shift).map(usize::from);
        match message.name {
            "PutImage" => {
                let (width, height, depth) = (short(12)?, short(14)?, *request.get(21 + shift)?);
                let bytes = request.get(24 + shift..)?;
                // Rows of 8 bits are padded to 32.
                let length = match depth {
                    8 => width.next_multiple_of(4) * height,
                    24 | 32 => 4 * width * height,
                    _ => 0,
                };
                let has_shape = request[1] == 2 && length > 0 && bytes.len() == length;
                let shape = has_shape.then_some((width as u32, height as u32, depth));
                Some(Image { bytes, shape })
            }
            "RENDER::AddGlyphs" => {
                let count = order.u32(request, 8 + shift)? as usize;
                // Each glyph has an identifier and its metrics.
                Some(Image { bytes: request.get(count.checked_mul(16)?.checked_add(12 + shift)?..)?, shape: None })
            }
            _ => None,
        }
    }

    /// Number of channels, and the pixels without padding.
    fn pixels(&self) -> Option<(usize, Vec<u8>)> {
        let (width, _, depth) = self.shape?;
        let width = width as usize;
        Some(match depth {
            8 => {
                (1, self.bytes.chunks_exact(width.next_multiple_of(4)).flat_map(|row| &row[..width]).copied().collect())
            }
            32 => (4, self.bytes.chunks_exact(4).flat_map(|bgra| [bgra[2], bgra[1], bgra[0], bgra[3]]).collect()),
            _ => (3, self.bytes.chunks_exact(4).flat_map(|bgrx| [bgrx[2], bgrx[1], bgrx[0]]).collect()),
        })
    }
}

/// Results of one codec for all images, or for all glyphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CodecFigures {
    /// `images` or `glyphs`.
    pub of: &'static str,
    pub codec: &'static str,
    pub requests: u64,
    pub bytes: u64,
    pub compressed_bytes: u64,
    pub processor_s: f64,
}

#[derive(Debug, Default)]
pub struct Images {
    held: HashMap<ConnectionId, HeldBytes>,
    pub figures: Vec<CodecFigures>,
}

impl Images {
    fn measure(figures: &mut Vec<CodecFigures>, image: &Image<'_>, of: &'static str) {
        for (codec, compress) in CODECS {
            let began = processor_s();
            let Some(length) = compress(image) else { continue };
            let processor_s = processor_s() - began;
            let place = figures.iter().position(|sum| (sum.of, sum.codec) == (of, codec)).unwrap_or_else(|| {
                figures.push(CodecFigures { of, codec, ..CodecFigures::default() });
                figures.len() - 1
            });
            let sum = &mut figures[place];
            sum.requests += 1;
            sum.bytes += image.bytes.len() as u64;
            sum.compressed_bytes += length as u64;
            sum.processor_s += processor_s;
        }
    }
}

fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Observer for Images {
    fn bytes(&mut self, id: ConnectionId, direction: Direction, _at_ns: u64, offset: u64, bytes: &[u8]) {
        if direction == Direction::Requests {
            self.held.entry(id).or_default().add_at(offset, bytes, MAX_BYTES);
        }
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        if !matches!(message.kind, Kind::Setup | Kind::Request) {
            return;
        }
        let Some(held) = self.held.get_mut(&id) else { return };
        held.take(message.offset, |_| {});
        let figures = &mut self.figures;
        held.take(message.offset.saturating_add(message.length), |request| {
            let is_whole = request.len() as u64 == message.length;
            if let Some(image) = Image::of(message, request).filter(|image| is_whole && !image.bytes.is_empty()) {
                let of = if message.name == "PutImage" { "images" } else { "glyphs" };
                Images::measure(figures, &image, of);
            }
        });
    }

    fn ended(&mut self, id: ConnectionId, _: u64, _: Ending) {
        self.held.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Spec, make};

    /// A PutImage request of pixmap format, with this width, height, depth and these pixels.
    fn put_image(width: u8, height: u8, depth: u8, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = vec![72, 2, 9, 0, 1, 0, 0, 0, 2, 0, 0, 0, width, 0, height, 0, 0, 0, 0, 0, 0, depth, 0, 0];
        bytes.extend(pixels);
        bytes
    }

    fn measured(name: &str, requests: &[Vec<u8>]) -> Vec<(&'static str, u64, u64)> {
        let mut images = Images::default();
        let mut offset = 0;
        for bytes in requests {
            let message = Message { offset, ..make(&Spec { name, bytes, ..Spec::default() }) };
            for (place, part) in (offset..).step_by(100).zip(bytes.chunks(100)) {
                images.bytes(ConnectionId(0), Direction::Requests, 0, place, part);
            }
            images.message(ConnectionId(0), &message);
            offset += bytes.len() as u64;
        }
        images.ended(ConnectionId(0), 0, Ending::Open);
        assert!(images.held.is_empty(), "a connection that has ended needs no memory");
        images.figures.iter().map(|sum| (sum.codec, sum.requests, sum.bytes)).collect()
    }

    #[test]
    fn images_of_8_24_and_32_bits_are_compressed_in_all_ways() {
        // The rows of 8 bits have one byte of padding.
        let requests = [put_image(3, 2, 8, &[1, 1, 1, 0, 1, 1, 1, 0]), put_image(9, 9, 24, &[7; 324])];
        let expected = |requests: u64, bytes: u64| CODECS.map(|(codec, _)| (codec, requests, bytes)).to_vec();
        assert_eq!(measured("PutImage", &requests), expected(2, 8 + 324));
        assert_eq!(measured("PutImage", &[put_image(9, 9, 32, &[7; 324])]), expected(1, 324));
        // Image formats do not get a bitmap, nor a request whose size does not fit.
        let odd = measured("PutImage", &[put_image(9, 9, 1, &[7; 36]), put_image(0, 9, 24, &[]), vec![72; 30]]);
        assert_eq!(odd.len(), 3, "{odd:?}");
    }

    #[test]
    fn pixels_lose_their_padding() {
        let image = |depth| Image { bytes: &[1, 2, 3, 4, 5, 6, 7, 8], shape: Some((2, 1, depth)) };
        assert_eq!(image(24).pixels(), Some((3, vec![3, 2, 1, 7, 6, 5])));
        assert_eq!(image(32).pixels(), Some((4, vec![3, 2, 1, 4, 7, 6, 5, 8])));
        assert_eq!(image(8).pixels(), Some((1, vec![1, 2, 5, 6])));
    }

    #[test]
    fn glyphs_do_not_include_their_metrics() {
        let request = [[139, 20, 27, 0].as_slice(), &[0; 4], &[2, 0, 0, 0], &[0; 2 * 16], &[9; 64]].concat();
        let expected = [("zlib -6", 1, 64), ("zstd -3", 1, 64), ("lz4", 1, 64)];
        assert_eq!(measured("RENDER::AddGlyphs", std::slice::from_ref(&request)), expected);
        let hostile = [request[..8].to_vec(), vec![0xff; 4], request[12..].to_vec()].concat();
        assert!(measured("RENDER::AddGlyphs", &[hostile]).is_empty());
    }
}
