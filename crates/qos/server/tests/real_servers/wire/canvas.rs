// SPDX-License-Identifier: MIT
//! A pixmap and a graphics context to draw with.

use super::*;

/// A pixmap to draw in, with a context. The cost of filling the pixmap grows with its size.
#[derive(Clone, Copy, Debug)]
pub struct Canvas {
    pub pixmap: u32,
    pub context: u32,
    width: u16,
    height: u16,
    order: ByteOrder,
}

impl Canvas {
    /// The same pixmap with another canvas's context.
    pub fn with_context_of(self, other: &Canvas) -> Canvas {
        Canvas { context: other.context, ..self }
    }

    /// A single request that fills the whole pixmap this many times.
    pub fn fill(&self, times: usize) -> Vec<u8> {
        let request = Message::new(self.order, opcode::POLY_FILL_RECTANGLE, 0).u32(self.pixmap).u32(self.context);
        (0..times).fold(request, |request, _| request.u16(0).u16(0).u16(self.width).u16(self.height)).finish()
    }
}

impl Wire {
    /// Creates a pixmap of this size and a context to draw in it.
    pub fn canvas(&mut self, width: u16, height: u16) -> Canvas {
        let (pixmap, context) = (self.new_id(), self.new_id());
        let request = self.message(opcode::CREATE_PIXMAP, 24).u32(pixmap).u32(self.root).u16(width).u16(height);
        self.tell(&request.finish()).unwrap();
        let request = self.message(opcode::CREATE_GC, 0).u32(context).u32(pixmap).u32(0).finish();
        self.tell(&request).unwrap();
        Canvas { pixmap, context, width, height, order: self.order }
    }
}
