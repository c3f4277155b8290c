// SPDX-License-Identifier: MIT
//! Finds colormaps of TrueColor visuals. Their pixels can be computed without asking the server.

use crate::observe::{Kind, Message};
use crate::x11::greeting::{Greeting, TRUE_COLOR};
use std::collections::HashMap;

/// Maximum number of created colormaps. A client creates a few.
const MAX_MADE: usize = 4_096;

#[derive(Debug, Default)]
pub struct Colormaps {
    pub greeting: Greeting,
    /// Visual of each colormap that the client created.
    made: HashMap<u32, u32>,
}

impl Colormaps {
    pub fn message(&mut self, message: &Message<'_>) {
        match message.kind {
            Kind::SetupReply => self.greeting = Greeting::beginning(message.order(), message.bytes),
            Kind::Request if message.name == "CreateColormap" && self.made.len() < MAX_MADE => {
                self.made.extend(message.word(4).zip(message.word(12)));
            }
            _ => {}
        }
    }

    pub fn is_true_color(&self, colormap: u32) -> bool {
        let screen = || self.greeting.screens.iter().find(|screen| screen.colormap == colormap);
        let visual = self.made.get(&colormap).copied().or_else(|| Some(screen()?.visual));
        visual.and_then(|visual| self.greeting.classes.get(&visual)) == Some(&TRUE_COLOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::{Spec, greeting, make};

    fn learn(colormaps: &mut Colormaps, kind: Kind, name: &str, bytes: &[u8], is_little_endian: bool) {
        let mut message = make(&Spec { kind, name, bytes, ..Spec::default() });
        message.is_little_endian = is_little_endian;
        colormaps.message(&message);
    }

    #[test]
    fn the_default_colormap_has_the_class_of_the_root_visual_in_both_byte_orders() {
        for is_little_endian in [true, false] {
            for (class, is_true) in [(4, true), (5, false), (3, false)] {
                let mut colormaps = Colormaps::default();
                let bytes = greeting(class, is_little_endian);
                learn(&mut colormaps, Kind::SetupReply, "Setup", &bytes, is_little_endian);
                assert_eq!(colormaps.is_true_color(0x20), is_true, "class {class}");
            }
        }
    }

    #[test]
    fn a_created_colormap_has_the_class_of_its_visual() {
        let mut colormaps = Colormaps::default();
        learn(&mut colormaps, Kind::SetupReply, "Setup", &greeting(4, true), true);
        let words = [78u32, 0x500, 1, 0x21].map(u32::to_le_bytes).concat();
        learn(&mut colormaps, Kind::Request, "CreateColormap", &words, true);
        assert!(colormaps.is_true_color(0x500) && !colormaps.is_true_color(0x501));
    }

    #[test]
    fn a_truncated_setup_reply_proves_nothing() {
        let whole = greeting(4, true);
        for length in 0..whole.len() - 19 {
            let mut colormaps = Colormaps::default();
            learn(&mut colormaps, Kind::SetupReply, "Setup", &whole[..length], true);
            assert!(!colormaps.is_true_color(0x20), "{length}");
        }
    }
}
