// SPDX-License-Identifier: MIT
//! A program that shows a recorded image, as a desktop shows its background. Each pixel is sent in four bytes.

use crate::canvas::Canvas;
use anyhow::{Context, Result};
use std::io::Cursor;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt, CreateGCAux, CreateWindowAux, ImageFormat};

/// A desktop as recorded for the documentation: 1100 x 780 pixels.
const PICTURE: &[u8] = include_bytes!("background.png");
/// Rows of a request, which stays below the 256 kB that all servers accept.
const ROWS: usize = 50;

pub(super) fn perform() -> Result<()> {
    let (width, height, pixels) = pixels()?;
    let (connection, screen) = xqos_client::connect(None)?;
    let depth = connection.setup().roots[screen].root_depth;
    let place = (0, 0, width, height);
    let Canvas { window, context } = Canvas::show(&connection, place, CreateWindowAux::new(), &CreateGCAux::new())?;
    for (turn, rows) in pixels.chunks(ROWS * usize::from(width) * 4).enumerate() {
        let (y, count) = ((turn * ROWS) as i16, (rows.len() / usize::from(width) / 4) as u16);
        connection.put_image(ImageFormat::Z_PIXMAP, window, context, width, count, 0, y, 0, depth, rows)?;
    }
    connection.flush()?;
    loop {
        connection.wait_for_event()?;
    }
}

/// Width, height, and the pixels in the format of a TrueColor visual: blue, green, red, unused.
fn pixels() -> Result<(u16, u16, Vec<u8>)> {
    let mut reader = png::Decoder::new(Cursor::new(PICTURE)).read_info()?;
    let mut rgb = vec![0; reader.output_buffer_size().context("the image is too large")?];
    let info = reader.next_frame(&mut rgb)?;
    let pixels = rgb.chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0], 0]).collect();
    Ok((info.width.try_into()?, info.height.try_into()?, pixels))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_image_is_as_large_as_the_papers() {
        let (width, height, pixels) = super::pixels().unwrap();
        assert_eq!((pixels.len(), usize::from(width) * usize::from(height) * 4), (3_432_000, 3_432_000));
    }
}
