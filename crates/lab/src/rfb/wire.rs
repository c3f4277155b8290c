// SPDX-License-Identifier: MIT
//! RFB as bytes: what a server sends becomes pieces of a picture here, and what is wrong with it a sentence.
//!
//! Nothing that the other end says is believed before it is compared with a bound, no message makes us keep more than one
//! screen of pixels, and no input makes us panic.

use super::Area;
use anyhow::{Context, Result, bail, ensure};
use std::io::{self, Read, Write};

/// Four times the largest screen of the experiments.
const MOST_PIXELS: usize = 1 << 24;
/// Each side of a pointer's shape.
const MOST_CURSOR: u16 = 512;
/// Names, reasons and the other side's clipboard.
const MOST_TEXT: u32 = 1 << 20;

const RAW: i32 = 0;
const CURSOR: i32 = -239;

/// Of a server's messages, what matters.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// An update begins to arrive.
    Begins,
    /// Within the screen, four bytes for each pixel of the area.
    Pixels(Area, &'a [u8]),
    Ends,
}

/// Version, security and the size of the screen.
pub(super) fn shake_hands(stream: &mut (impl Read + Write)) -> Result<(u16, u16)> {
    const NONE: u8 = 1;
    const SHARED: u8 = 1;
    let version: [u8; 12] = read(stream)?;
    ensure!(&version == b"RFB 003.008\n", "it speaks {:?}, not RFB 3.8", String::from_utf8_lossy(&version));
    stream.write_all(&version)?;
    let [count] = read(stream)?;
    if count == 0 {
        bail!("{}", text(stream)?);
    }
    let mut kinds = vec![0; usize::from(count)];
    stream.read_exact(&mut kinds)?;
    ensure!(kinds.contains(&NONE), "it asks for a password");
    stream.write_all(&[NONE])?;
    if u32::from_be_bytes(read(stream)?) != 0 {
        bail!("{}", text(stream)?);
    }
    stream.write_all(&[SHARED])?;
    let [width, height] = numbers(stream)?;
    let _format: [u8; 16] = read(stream)?;
    text(stream)?;
    let pixels = usize::from(width) * usize::from(height);
    ensure!((1..=MOST_PIXELS).contains(&pixels), "its screen of {width} x {height} is beyond this viewer");
    Ok((width, height))
}

/// The form of pixels, the encodings, and the whole screen for a beginning.
pub(super) fn wishes(width: u16, height: u16) -> Vec<u8> {
    // 32 bits, 24 of them used, little endian, true colour, 8 bits for each colour from bit 16, 8 and 0 on.
    let mut messages = vec![0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0];
    messages.extend([2, 0, 0, 2]);
    messages.extend(RAW.to_be_bytes());
    messages.extend(CURSOR.to_be_bytes());
    messages.extend(request(false, width, height));
    messages
}

/// Asks for an update of the whole screen, or of what changed in it.
pub(super) fn request(incremental: bool, width: u16, height: u16) -> [u8; 10] {
    let ([w0, w1], [h0, h1]) = (width.to_be_bytes(), height.to_be_bytes());
    [3, u8::from(incremental), 0, 0, 0, 0, w0, w1, h0, h1]
}

/// Reads one message and hands its pieces over. `pixels` is kept between calls, so that none needs new memory.
pub(super) fn message(
    input: &mut impl Read,
    screen: (u16, u16),
    pixels: &mut Vec<u8>,
    hand: &mut impl FnMut(Piece<'_>) -> Result<()>,
) -> Result<()> {
    const UPDATE: u8 = 0;
    const COLOURS: u8 = 1;
    const BELL: u8 = 2;
    const CLIPBOARD: u8 = 3;
    let [kind] = read(input)?;
    match kind {
        UPDATE => {
            skip(input, 1)?;
            let [count] = numbers(input)?;
            hand(Piece::Begins)?;
            for _ in 0..count {
                rectangle(input, screen, pixels, hand)?;
            }
            hand(Piece::Ends)
        }
        COLOURS => {
            skip(input, 3)?;
            let [count] = numbers(input)?;
            skip(input, 6 * u64::from(count))
        }
        BELL => Ok(()),
        CLIPBOARD => {
            skip(input, 3)?;
            let length = bounded(u32::from_be_bytes(read(input)?))?;
            skip(input, length.into())
        }
        _ => bail!("a message of the unknown kind {kind}"),
    }
}

fn rectangle(
    input: &mut impl Read,
    (width, height): (u16, u16),
    pixels: &mut Vec<u8>,
    hand: &mut impl FnMut(Piece<'_>) -> Result<()>,
) -> Result<()> {
    let [x, y, w, h] = numbers(input)?;
    let area = Area::new(x, y, w, h);
    let count = usize::from(w) * usize::from(h);
    match i32::from_be_bytes(read(input)?) {
        RAW => {
            ensure!(area.is_within(width, height), "{area:?} is not on a screen of {width} x {height}");
            pixels.resize(4 * count, 0);
            input.read_exact(pixels).context("cut off within pixels")?;
            hand(Piece::Pixels(area, pixels))
        }
        CURSOR => {
            ensure!(w.max(h) <= MOST_CURSOR, "a pointer of {w} x {h} pixels");
            let mask = usize::from(w).div_ceil(8) * usize::from(h);
            skip(input, (4 * count + mask) as u64)
        }
        other => bail!("the encoding {other}, which nobody asked for"),
    }
}

/// Four bytes of length, and as much text.
fn text(input: &mut impl Read) -> Result<String> {
    let length = bounded(u32::from_be_bytes(read(input)?))?;
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes).context("cut off within a text")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn bounded(length: u32) -> Result<u32> {
    ensure!(length <= MOST_TEXT, "a text of {length} bytes");
    Ok(length)
}

fn numbers<const N: usize>(input: &mut impl Read) -> Result<[u16; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = u16::from_be_bytes(read(input)?);
    }
    Ok(numbers)
}

fn read<const N: usize>(input: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).context("cut off")?;
    Ok(bytes)
}

fn skip(input: &mut impl Read, length: u64) -> Result<()> {
    let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
    ensure!(skipped == length, "cut off after {skipped} of {length} bytes");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const SCREEN: (u16, u16) = (16, 8);

    /// What is handed over of messages until the input ends, and why it ended.
    fn pieces(input: &[u8]) -> (Vec<String>, String, usize) {
        let (mut handed, mut pixels, mut input) = (Vec::new(), Vec::new(), Cursor::new(input));
        loop {
            let mut hand = |piece: Piece<'_>| {
                handed.push(match piece {
                    Piece::Begins => "begins".to_owned(),
                    Piece::Pixels(area, pixels) => format!("{area:?} {pixels:?}"),
                    Piece::Ends => "ends".to_owned(),
                });
                Ok(())
            };
            if let Err(error) = message(&mut input, SCREEN, &mut pixels, &mut hand) {
                return (handed, format!("{error:#}"), pixels.capacity());
            }
        }
    }

    fn update(x: u16, y: u16, width: u16, height: u16, encoding: i32) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 1];
        [x, y, width, height].iter().for_each(|number| bytes.extend(number.to_be_bytes()));
        bytes.extend(encoding.to_be_bytes());
        bytes
    }

    /// One of each kind.
    fn plain() -> Vec<u8> {
        let mut bytes = vec![2, 3, 0, 0, 0, 0, 0, 0, 2, b'h', b'i', 1, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9];
        bytes.extend(update(3, 2, 9, 2, CURSOR));
        bytes.extend([7; 4 * 18 + 4]);
        bytes.extend(update(15, 6, 1, 2, RAW));
        bytes.extend([1, 2, 3, 0, 4, 5, 6, 0]);
        bytes
    }

    #[test]
    fn every_kind_of_message_is_understood() {
        let (handed, end, _) = pieces(&plain());
        let area = Area::new(15, 6, 1, 2);
        assert_eq!(handed, ["begins", "ends", "begins", &format!("{area:?} [1, 2, 3, 0, 4, 5, 6, 0]"), "ends"]);
        assert!(end.contains("cut off"), "{end}");
    }

    #[test]
    fn a_message_that_is_cut_off_anywhere_ends_with_an_error_and_nothing_half() {
        let whole = plain();
        for length in 0..whole.len() {
            let (handed, end, _) = pieces(&whole[..length]);
            assert!(end.contains("cut off"), "{length}: {end}");
            assert!(!handed.iter().any(|piece| piece.starts_with("Area")), "{length}: {handed:?}");
        }
    }

    #[test]
    fn absurd_messages_are_refused_in_a_sentence_and_cost_no_memory() {
        let absurd = [
            (update(0, 0, u16::MAX, u16::MAX, RAW), "not on a screen"),
            (update(16, 0, 1, 1, RAW), "not on a screen"),
            (update(u16::MAX, u16::MAX, u16::MAX, u16::MAX, RAW), "not on a screen"),
            (update(0, 0, u16::MAX, 1, CURSOR), "a pointer of"),
            (update(0, 0, 1, 1, 7), "nobody asked for"),
            (vec![3, 0, 0, 0, 255, 255, 255, 255], "a text of"),
            (vec![200], "unknown kind 200"),
        ];
        for (bytes, expected) in absurd {
            let (_, end, kept) = pieces(&bytes);
            assert!(end.contains(expected) && kept == 0, "{end}, {kept} bytes kept");
        }
    }

    #[test]
    fn no_input_makes_it_panic_or_keep_more_than_a_screen() {
        let mut state = 0x2545_f491_u32;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        for _ in 0..20_000 {
            let mut bytes = plain();
            for _ in 0..1 + random() % 4 {
                let at = random() as usize % bytes.len();
                bytes[at] = random() as u8;
            }
            let (_, end, kept) = pieces(&bytes);
            assert!(!end.is_empty() && kept <= 4 * 16 * 8, "{kept} bytes kept of {bytes:?}");
        }
    }

    /// Answers from a script and takes whatever is said.
    struct Scripted(Cursor<Vec<u8>>);

    impl Read for Scripted {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.read(bytes)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn hands(parts: &[&[u8]]) -> Result<(u16, u16)> {
        shake_hands(&mut Scripted(Cursor::new(parts.concat())))
    }

    #[test]
    fn a_handshake_gives_the_size_of_the_screen_or_the_reason_of_the_refusal() {
        let version = b"RFB 003.008\n".as_slice();
        let (accepted, format) = ([1, 1, 0, 0, 0, 0].as_slice(), [0; 16].as_slice());
        let good = [version, accepted, &[5, 0, 3, 32], format, &[0, 0, 0, 1, b'x']];
        assert_eq!(hands(&good).unwrap(), (1280, 800));
        let whole = good.concat();
        for length in 0..whole.len() {
            assert!(hands(&[&whole[..length]]).is_err(), "{length} bytes");
        }
        let refused: [(&[&[u8]], &str); 6] = [
            (&[b"RFB 003.003\n"], "not RFB 3.8"),
            (&[version, &[0, 0, 0, 0, 2, b'n', b'o']], "no"),
            (&[version, &[0, 255, 255, 255, 255]], "a text of"),
            (&[version, &[1, 2]], "password"),
            (&[version, accepted, &[255; 4], format, &[0; 4]], "beyond this viewer"),
            (&[version, accepted, &[0; 4], format, &[0; 4]], "beyond this viewer"),
        ];
        for (parts, reason) in refused {
            let error = format!("{:#}", hands(parts).unwrap_err());
            assert!(error.contains(reason), "{error}, not {reason}");
        }
    }
}
