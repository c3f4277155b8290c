// SPDX-License-Identifier: MIT
//! Decodes a server's setup reply: the client's resource ids, screens and visuals.

use std::collections::HashMap;
use xqos_x11::ByteOrder;

/// Visual classes with read-only colour cells: StaticGray, StaticColor and TrueColor.
const FIXED_CLASSES: [u8; 3] = [0, 2, TRUE_COLOR];
pub const TRUE_COLOR: u8 = 4;
/// Maximum number of visuals. A server has a few dozen.
const MAX_VISUALS: usize = 4096;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    pub id_base: u32,
    pub id_mask: u32,
    pub screens: Vec<Screen>,
    /// The class of each visual, by the visual's id.
    pub classes: HashMap<u32, u8>,
}

/// A root window with its default colormap, visual and depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    pub root: u32,
    pub colormap: u32,
    pub visual: u32,
    pub depth: u8,
}

impl Greeting {
    /// Returns `None` if the server refuses the client, or if the reply is incomplete.
    pub fn of(order: ByteOrder, bytes: &[u8]) -> Option<Greeting> {
        let mut greeting = Greeting::default();
        (bytes.first() == Some(&1)).then(|| greeting.read(order, bytes))?.map(|()| greeting)
    }

    /// Decodes as much as was captured.
    pub fn beginning(order: ByteOrder, bytes: &[u8]) -> Greeting {
        let mut greeting = Greeting::default();
        // Missing parts stay empty.
        let _ = greeting.read(order, bytes);
        greeting
    }

    pub fn has_fixed_colors(&self, visual: u32) -> bool {
        self.classes.get(&visual).is_some_and(|class| FIXED_CLASSES.contains(class))
    }

    pub fn is_default_colormap(&self, id: u32) -> bool {
        self.screens.iter().any(|screen| screen.colormap == id)
    }

    pub fn is_own(&self, id: u32) -> bool {
        self.id_mask != 0 && id & !self.id_mask == self.id_base
    }

    pub fn screen(&self, root: u32) -> Option<&Screen> {
        self.screens.iter().find(|screen| screen.root == root)
    }

    fn read(&mut self, order: ByteOrder, bytes: &[u8]) -> Option<()> {
        (self.id_base, self.id_mask) = (order.u32(bytes, 12)?, order.u32(bytes, 16)?);
        let vendor = usize::from(order.u16(bytes, 24)?).next_multiple_of(4);
        let (screens, formats) = (*bytes.get(28)?, *bytes.get(29)?);
        let mut place = 40 + vendor + 8 * usize::from(formats);
        for _ in 0..screens {
            place = self.screen_at(order, bytes, place)?;
        }
        Some(())
    }

    fn screen_at(&mut self, order: ByteOrder, bytes: &[u8], mut place: usize) -> Option<usize> {
        let word = |at| order.u32(bytes, at);
        self.screens.push(Screen {
            root: word(place)?,
            colormap: word(place + 4)?,
            visual: word(place + 32)?,
            depth: *bytes.get(place + 38)?,
        });
        let depths = *bytes.get(place + 39)?;
        place += 40;
        for _ in 0..depths {
            let visuals = order.u16(bytes, place + 2)?;
            place += 8;
            for _ in 0..visuals {
                let (visual, class) = (word(place)?, *bytes.get(place + 4)?);
                if self.classes.len() < MAX_VISUALS {
                    self.classes.insert(visual, class);
                }
                place += 24;
            }
        }
        Some(place)
    }
}
