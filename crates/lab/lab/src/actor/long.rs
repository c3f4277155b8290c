// SPDX-License-Identifier: MIT
//! A client that sends one long request after another, of one kind. Each takes the server milliseconds.
//!
//! The window covers the screen, and images are as large as the screen. Images are read from a pixmap, because an image
//! of the window or of the screen would contain drawings of other clients.
//!
//! GetInputFocus follows each request. The client waits for its reply when it has sent the next request, so one request
//! is always pending in the server, and never more than two.

use super::say_ready;
use crate::canvas::Canvas;
use crate::names::named;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use x11rb::connection::Connection;
use x11rb::errors::ConnectionError;
use x11rb::protocol::Event;
use x11rb::protocol::present::{ConnectionExt as _, Option as Presenting};
use x11rb::protocol::render::{
    ConnectionExt as _, CreatePictureAux, Linefix, PictOp, Pictformat, Picture, Pointfix, Transform, Trapezoid,
};
use x11rb::protocol::shm::{ConnectionExt as _, Seg};
use x11rb::protocol::xproto::{
    Arc, ConnectionExt as _, CreateGCAux, CreateWindowAux, Drawable, ImageFormat, Pixmap, Rectangle, Screen,
};
use x11rb::rust_connection::RustConnection;

named! {
    /// A kind of request.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Long {
        Rectangles = "rectangles",
        Arcs = "arcs",
        PutImage = "put-image",
        ShmPutImage = "shm-put-image",
        GetImage = "get-image",
        ShmGetImage = "shm-get-image",
        CopyArea = "copy-area",
        Scale = "scale",
        Trapezoids = "trapezoids",
        Present = "present",
    }
}

/// Numbers of figures in a request, and the side of a figure.
const RECTANGLES: usize = 16_000;
const ARCS: usize = 4000;
const TRAPEZOIDS: usize = 2000;
const SIDE: u16 = 40;
/// Screen pixels per pixel of the scaled image, in each direction.
const SCALE: u16 = 2;
/// A full circle, in 1/64 degree.
const CIRCLE: i16 = 360 * 64;

pub(super) fn perform(kind: Long) -> Result<()> {
    let (connection, number) = xqos_client::connect(None)?;
    let client = LongRequestClient::new(&connection, &connection.setup().roots[number])?;
    let send = client.request(kind)?;
    let mut last = connection.get_input_focus()?;
    for turn in 0_u64.. {
        send()?;
        std::mem::replace(&mut last, connection.get_input_focus()?).reply()?;
        while let Some(event) = connection.poll_for_event()? {
            if let Event::Error(error) = event {
                bail!("{kind:?} was refused: {error:?}");
            }
        }
        if turn == 1 {
            say_ready(client.canvas.window)?;
        }
    }
    Ok(())
}

struct LongRequestClient<'a> {
    connection: &'a RustConnection,
    screen: &'a Screen,
    canvas: Canvas,
    size: (u16, u16),
}

type Send<'a> = Box<dyn Fn() -> Result<(), ConnectionError> + 'a>;

impl<'a> LongRequestClient<'a> {
    fn new(connection: &'a RustConnection, screen: &'a Screen) -> Result<LongRequestClient<'a>> {
        let size = (screen.width_in_pixels, screen.height_in_pixels);
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let ink = CreateGCAux::new().foreground(screen.white_pixel);
        let canvas = Canvas::show(connection, (0, 0, size.0, size.1), look, &ink)?;
        Ok(LongRequestClient { connection, screen, canvas, size })
    }

    /// Prepares the request, and returns a function that sends it.
    fn request(&self, kind: Long) -> Result<Send<'a>> {
        let (connection, Canvas { window, context }, (w, h)) = (self.connection, self.canvas, self.size);
        let (format, depth) = (ImageFormat::Z_PIXMAP, self.screen.root_depth);
        let bytes = usize::from(w) * usize::from(h) * 4;
        Ok(match kind {
            Long::Rectangles => {
                let rectangle = |(x, y)| Rectangle { x, y, width: SIDE, height: SIDE };
                let all: Vec<_> = self.places(RECTANGLES).map(rectangle).collect();
                Box::new(move || connection.poly_fill_rectangle(window, context, &all).map(drop))
            }
            Long::Arcs => {
                let arc = |(x, y)| Arc { x, y, width: SIDE, height: SIDE, angle1: 0, angle2: CIRCLE };
                let all: Vec<_> = self.places(ARCS).map(arc).collect();
                Box::new(move || connection.poly_fill_arc(window, context, &all).map(drop))
            }
            Long::PutImage => {
                let data = vec![0x55; bytes];
                Box::new(move || connection.put_image(format, window, context, w, h, 0, 0, 0, depth, &data).map(drop))
            }
            Long::ShmPutImage => {
                let shared = self.memory(bytes)?;
                Box::new(move || {
                    connection
                        .shm_put_image(window, context, w, h, 0, 0, w, h, 0, 0, depth, format.into(), false, shared, 0)
                        .map(drop)
                })
            }
            Long::GetImage => {
                let pixmap = self.pixmap(w, h)?;
                Box::new(move || connection.get_image(format, pixmap, 0, 0, w, h, !0).map(drop))
            }
            Long::ShmGetImage => {
                let (pixmap, shared) = (self.pixmap(w, h)?, self.memory(bytes)?);
                Box::new(move || connection.shm_get_image(pixmap, 0, 0, w, h, !0, format.into(), shared, 0).map(drop))
            }
            Long::CopyArea => {
                let pixmap = self.pixmap(w, h)?;
                Box::new(move || connection.copy_area(pixmap, window, context, 0, 0, 0, 0, w, h).map(drop))
            }
            Long::Present => {
                let (pixmap, now) = (self.pixmap(w, h)?, Presenting::ASYNC | Presenting::COPY);
                Box::new(move || {
                    connection
                        .present_pixmap(window, pixmap, 0, 0, 0, 0, 0, 0, 0_u32, 0_u32, now.into(), 0, 0, 0, &[])
                        .map(drop)
                })
            }
            Long::Scale => self.scale()?,
            Long::Trapezoids => self.trapezoids()?,
        })
    }

    /// Prepares a request that scales a picture to the size of the window.
    fn scale(&self) -> Result<Send<'a>> {
        let (connection, (width, height), format) = (self.connection, self.size, self.format()?);
        let small = self.picture(self.pixmap(width / SCALE, height / SCALE)?, format)?;
        let (one, step) = (1 << 16, (1 << 16) / i32::from(SCALE));
        let smaller = Transform { matrix11: step, matrix22: step, matrix33: one, ..Transform::default() };
        connection.render_set_picture_transform(small, smaller)?;
        connection.render_set_picture_filter(small, b"bilinear", &[])?;
        let picture = self.picture(self.canvas.window, format)?;
        Ok(Box::new(move || {
            connection.render_composite(PictOp::SRC, small, 0_u32, picture, 0, 0, 0, 0, 0, 0, width, height).map(drop)
        }))
    }

    fn trapezoids(&self) -> Result<Send<'a>> {
        let (connection, format) = (self.connection, self.format()?);
        let ink = self.picture(self.pixmap(self.size.0, self.size.1)?, format)?;
        let picture = self.picture(self.canvas.window, format)?;
        let all: Vec<Trapezoid> = self.places(TRAPEZOIDS).map(trapezoid).collect();
        Ok(Box::new(move || connection.render_trapezoids(PictOp::OVER, ink, picture, 0_u32, 0, 0, &all).map(drop)))
    }

    /// Places of figures, spread over the window.
    fn places(&self, count: usize) -> impl Iterator<Item = (i16, i16)> + use<> {
        let room = [self.size.0, self.size.1].map(|side| usize::from(side.saturating_sub(SIDE).max(1)));
        (0..count).map(move |index| ((index * 37 % room[0]) as i16, (index * 53 % room[1]) as i16))
    }

    fn pixmap(&self, width: u16, height: u16) -> Result<Pixmap> {
        let pixmap = self.connection.generate_id()?;
        self.connection.create_pixmap(self.screen.root_depth, pixmap, self.screen.root, width, height)?;
        Ok(pixmap)
    }

    /// Memory that the server shares. This client neither reads nor writes it.
    fn memory(&self, bytes: usize) -> Result<Seg> {
        let shared = self.connection.generate_id()?;
        self.connection.shm_create_segment(shared, bytes as u32, false)?.reply()?;
        Ok(shared)
    }

    fn picture(&self, drawable: Drawable, format: Pictformat) -> Result<Picture> {
        let picture = self.connection.generate_id()?;
        self.connection.render_create_picture(picture, drawable, format, &CreatePictureAux::new())?;
        Ok(picture)
    }

    fn format(&self) -> Result<Pictformat> {
        let formats = self.connection.render_query_pict_formats()?.reply()?;
        let mut visuals = formats.screens.iter().flat_map(|screen| &screen.depths).flat_map(|depth| &depth.visuals);
        let found = visuals.find(|visual| visual.visual == self.screen.root_visual);
        Ok(found.context("the server has no RENDER format for its screen")?.format)
    }
}

/// A trapezoid whose upper side is half as long as the lower one.
fn trapezoid((x, y): (i16, i16)) -> Trapezoid {
    let fixed = |pixels: i16| i32::from(pixels) << 16;
    let (side, quarter) = (SIDE as i16, SIDE as i16 / 4);
    let (top, bottom) = (fixed(y), fixed(y + side));
    let line = |above, below| Linefix {
        p1: Pointfix { x: fixed(above), y: top },
        p2: Pointfix { x: fixed(below), y: bottom },
    };
    Trapezoid { top, bottom, left: line(x + quarter, x), right: line(x + side - quarter, x + side) }
}
