// SPDX-License-Identifier: MIT
//! Maps a request to the question that it asks, given the earlier requests on its connection.
//!
//! Requests with equal bytes can ask different questions, and requests with different bytes can ask the same question:
//!
//! | request | question |
//! |---|---|
//! | InternAtom | the name; `only_if_exists` makes no difference for an existing atom |
//! | AllocColor and similar | its bytes, with a colormap of a fixed-colour visual replaced by the visual |
//! | QueryFont | the name under which the font was opened |
//! | any extension request | its bytes, and a hash of earlier requests that set the extension's state (its version) |
//! | any other request | its bytes |
//!
//! Unused bytes between fields do not count.

use crate::bytes::{request, text_at, with_text};
use crate::opcodes::{Opcode, op};
use crate::store::Question;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use xqos_wire::answerable::{Class, Condition};
use xqos_wire::x11::greeting::Greeting;
use xqos_x11::ByteOrder;
use xqos_x11::codes::FIRST_EXTENSION;

/// Maximum number of colormaps, and of fonts, of one program. Questions about further ones go to the server.
const MAX_RESOURCES: usize = 4096;

/// The state of a connection that determines what a request means.
#[derive(Debug, Default)]
pub struct ConnectionContext {
    pub order: ByteOrder,
    pub greeting: Greeting,
    /// Visual ID of each colormap.
    colormaps: HashMap<u32, u32>,
    fonts: HashMap<u32, Box<[u8]>>,
    /// For each extension, a hash of the requests that set its state.
    state: HashMap<u8, u64>,
}

impl ConnectionContext {
    pub fn new(order: ByteOrder, greeting: Greeting) -> ConnectionContext {
        let colormaps = greeting.screens.iter().map(|screen| (screen.colormap, screen.visual)).collect();
        ConnectionContext { order, greeting, colormaps, fonts: HashMap::new(), state: HashMap::new() }
    }

    /// Records a request that was sent to the server or answered here.
    pub fn hear(&mut self, request: &[u8], known: Option<&Opcode>) {
        let (major, order) = (request[0], self.order);
        // A BIG-REQUESTS length shifts the fields. The resource stays unknown; questions about it go to the server.
        if order.u16(request, 2) == Some(0) {
            return;
        }
        let word = |at| order.u32(request, at);
        match major {
            op::CREATE_COLORMAP_REQUEST => {
                if let (Some(id), Some(visual)) = (word(4), word(12)) {
                    insert(&mut self.colormaps, id, visual);
                }
            }
            op::OPEN_FONT_REQUEST => {
                if let (Some(id), Some(name)) = (word(4), text_at(order, request, 8, 12)) {
                    insert(&mut self.fonts, id, name.into());
                }
            }
            op::FREE_COLORMAP_REQUEST => _ = word(4).and_then(|id| self.colormaps.remove(&id)),
            op::CLOSE_FONT_REQUEST => _ = word(4).and_then(|id| self.fonts.remove(&id)),
            // If the program has not queried an extension, any request of that extension may set state.
            FIRST_EXTENSION.. if known.is_none_or(|known| known.row.class == Class::ConstantSetsState) => {
                let request = known.map_or_else(|| request.to_vec(), |known| self.canonical(known, request));
                self.state.insert(major, next_state(self.state(major), &request));
            }
            _ => {}
        }
    }

    /// Hash of the requests that set an extension's state.
    pub fn state(&self, major: u8) -> u64 {
        self.state.get(&major).copied().unwrap_or(0)
    }

    /// The question that a request asks, if its answer can be stored.
    pub fn question(&self, request: &[u8], known: &Opcode) -> Option<Question> {
        let order = self.order;
        // No known client uses a BIG-REQUESTS length for these requests, and this code does not parse such lengths.
        if !known.is_answerable() || order.u16(request, 2)? == 0 {
            return None;
        }
        let major = request[0];
        match known.row.when {
            Condition::Always => {}
            Condition::AtomFound => return Some(Question::named(major, text_at(order, request, 4, 8)?)),
            Condition::FixedColormap => return self.color(self.canonical(known, request)),
            Condition::SameFontPath if major == op::QUERY_FONT_REQUEST => {
                return Some(Question::named(major, self.fonts.get(&order.u32(request, 4)?)?));
            }
            Condition::SameFontPath => {}
            // The `delete` flag is at different offsets in core, RandR and XInput requests.
            Condition::Undeleted if is_deleting(request) => return None,
            Condition::Undeleted => {}
            Condition::OwnDrawable => return None,
        }
        if major == op::QUERY_EXTENSION_REQUEST {
            return Some(Question::named(major, text_at(order, request, 4, 8)?));
        }
        let request = self.canonical(known, request);
        match major {
            ..FIRST_EXTENSION => Some(Question(request.into())),
            _ => Some(Question([&[major], &self.state(major).to_le_bytes()[..], &request[1..]].concat().into())),
        }
    }

    /// A request without the content of its unused bytes.
    pub fn canonical(&self, known: &Opcode, request: &[u8]) -> Vec<u8> {
        let mut bytes = request.to_vec();
        known.layout.clear_unused(self.order, &mut bytes);
        bytes
    }

    /// The QueryFont question for the font that an OpenFont request opens.
    pub fn font_question(&self, open: &[u8]) -> Option<Question> {
        Some(Question::named(op::QUERY_FONT_REQUEST, text_at(self.order, open, 8, 12)?))
    }

    fn color(&self, mut bytes: Vec<u8>) -> Option<Question> {
        let visual = *self.colormaps.get(&self.order.u32(&bytes, 4)?)?;
        bytes[4..8].copy_from_slice(&visual.to_le_bytes());
        self.greeting.has_fixed_colors(visual).then(|| Question(bytes.into()))
    }
}

pub fn next_state(state: u64, request: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state, &request[1..]).hash(&mut hasher);
    hasher.finish()
}

/// An OpenFont request for `name` as `id`.
pub fn open_font(order: ByteOrder, id: u32, name: &[u8]) -> Vec<u8> {
    with_text(order, request(order, op::OPEN_FONT_REQUEST, 0, &[id, 0]), 8, name)
}

pub fn close_font(order: ByteOrder, id: u32) -> Vec<u8> {
    request(order, op::CLOSE_FONT_REQUEST, 0, &[id])
}

/// Whether a request that reads a property also deletes it: GetProperty of the core protocol, RandR or XInput.
fn is_deleting(request: &[u8]) -> bool {
    match (request[0], request.get(1)) {
        (op::GET_PROPERTY_REQUEST, Some(&delete)) => delete != 0,
        // In RRGetOutputProperty the flag follows five words; in XIGetProperty it follows the device.
        (_, Some(15)) => request.get(24).is_none_or(|&delete| delete != 0),
        _ => request.get(6).is_none_or(|&delete| delete != 0),
    }
}

fn insert<T>(known: &mut HashMap<u32, T>, id: u32, value: T) {
    if known.len() < MAX_RESOURCES || known.contains_key(&id) {
        known.insert(id, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::named_request;
    use crate::opcodes::Opcodes;

    const ORDER: ByteOrder = ByteOrder::Little;

    fn context() -> (ConnectionContext, Opcodes) {
        let mut opcodes = Opcodes::default();
        opcodes.learn("RENDER", 139, 0, 142);
        (
            ConnectionContext::new(ORDER, Greeting { id_base: 0x20_0000, id_mask: 0x1f_ffff, ..Greeting::default() }),
            opcodes,
        )
    }

    fn question(context: &ConnectionContext, opcodes: &Opcodes, request: &[u8]) -> Option<Question> {
        context.question(request, opcodes.request(request[0], request[1]).unwrap())
    }

    #[test]
    fn an_atom_question_depends_only_on_the_name() {
        let (context, opcodes) = context();
        let asked = |data, name: &[u8]| {
            question(&context, &opcodes, &named_request(ORDER, op::INTERN_ATOM_REQUEST, data, name))
        };
        assert_eq!(asked(0, b"WM_NAME"), asked(1, b"WM_NAME"));
        assert_ne!(asked(0, b"WM_NAME"), asked(0, b"WM_NAM"));
        let mut odd = named_request(ORDER, op::INTERN_ATOM_REQUEST, 0, b"WM_NAME");
        odd.extend([0; 4]);
        assert_eq!(question(&context, &opcodes, &odd), None, "the server refuses this length");
    }

    #[test]
    fn state_set_in_an_extension_is_part_of_the_question() {
        let (mut context, opcodes) = context();
        let (version, formats) = (request(ORDER, 139, 0, &[0, 11]), request(ORDER, 139, 1, &[]));
        let before = question(&context, &opcodes, &formats).unwrap();
        context.hear(&version, opcodes.request(139, 0));
        let after = question(&context, &opcodes, &formats).unwrap();
        assert_ne!(before, after);
        context.hear(&formats, opcodes.request(139, 1));
        assert_eq!(question(&context, &opcodes, &formats).unwrap(), after, "a question alone sets no state");
    }

    #[test]
    fn a_font_question_uses_the_name_that_opened_the_font() {
        let (mut context, opcodes) = context();
        let open = open_font(ORDER, 0x20_0001, b"fixed");
        let ask = request(ORDER, op::QUERY_FONT_REQUEST, 0, &[0x20_0001]);
        assert_eq!(question(&context, &opcodes, &ask), None);
        context.hear(&open, opcodes.request(op::OPEN_FONT_REQUEST, 0));
        assert_eq!(question(&context, &opcodes, &ask), Some(Question(b"\x2ffixed"[..].into())));
        context.hear(&request(ORDER, op::CLOSE_FONT_REQUEST, 0, &[0x20_0001]), None);
        assert_eq!(question(&context, &opcodes, &ask), None);
    }

    #[test]
    fn unused_bytes_make_no_difference() {
        let (context, opcodes) = context();
        let asked = |bytes: &[u8]| question(&context, &opcodes, bytes).unwrap();
        assert_eq!(asked(&[101, 7, 2, 0, 8, 248, 1, 2]), asked(&[101, 0, 2, 0, 8, 248, 0, 0]), "GetKeyboardMapping");
        assert_ne!(asked(&[101, 0, 2, 0, 8, 247, 0, 0]), asked(&[101, 0, 2, 0, 8, 248, 0, 0]));
        let list = |last| [49, 9, 3, 0, 5, 0, 3, 0, b'a', b'b', b'*', last];
        assert_eq!(asked(&list(b'x')), asked(&list(0)), "ListFonts");
    }

    #[test]
    fn requests_that_only_the_server_can_answer_have_no_question() {
        let (context, opcodes) = context();
        for (major, words) in [(43, &[][..]), (23, &[1]), (38, &[1]), (84, &[0x777, 0, 0])] {
            assert_eq!(question(&context, &opcodes, &request(ORDER, major, 0, words)), None, "{major}");
        }
        assert_eq!(
            question(&context, &opcodes, &request(ORDER, 20, 1, &[1, 39, 31, 0, 100])),
            None,
            "the request deletes the property"
        );
    }
}
