// SPDX-License-Identifier: MIT
//! The fields of a message as text: `wid 0x400001`, `name "WM_NAME"`.
//!
//! Field positions come from a table that `crates/ground/x11/data/fields.py` generates from the protocol description.
//! x11rb's parsers are not used: they support only the native byte order, and allocate memory for any count that a
//! message states, which a hostile capture can abuse. Fields after a field of variable length can be missing.

use crate::observe::{Kind, Message};
use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::LazyLock;
use xqos_x11::ByteOrder;

/// Approximate maximum length of a message's text. Pixels and property values can be longer.
const MAX_TEXT_BYTES: usize = 500;
/// Maximum number of elements shown of an array.
const MAX_NUMBERS: usize = 24;
/// Maximum number of letters shown of a string.
const MAX_LETTERS: usize = 120;
/// Maximum bytes shown of an unknown message.
const MAX_BYTES: usize = 48;
/// Separates fields, and never occurs inside one.
pub const SEPARATOR: char = '\t';

const HEAD_BYTES: usize = 4;
/// Kind of a request's bytes that have no meaning.
const UNUSED: u8 = b'p';

#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    place: usize,
    kind: u8,
    size: usize,
    count: Count,
}

#[derive(Clone, Copy, Debug)]
enum Count {
    One,
    Fixed(usize),
    /// The named field contains the number of elements.
    By(&'static str),
    /// The length follows from two fields: the number of values, and the bits of each value.
    Bits(&'static str, &'static str),
    /// The array extends to the end of the message.
    Rest,
}

/// The fields of each message, by the letter of its kind and by its name.
static TABLE: LazyLock<HashMap<(&'static str, &'static str), Vec<Field>>> =
    LazyLock::new(|| xqos_x11::names::FIELDS.lines().filter_map(line).collect());

fn line(line: &'static str) -> Option<((&'static str, &'static str), Vec<Field>)> {
    let mut words = line.split('\t');
    let (letter, _, name) = (words.next()?, words.next()?, words.next()?);
    // Generic events are shown like other events.
    Some(((if letter == "g" { "e" } else { letter }, name), words.filter_map(field).collect()))
}

fn field(word: &'static str) -> Option<Field> {
    let (name, place) = word.split_once('@')?;
    let (place, kind) = place.split_once(':')?;
    let (kind, count) = match kind.split_once('*') {
        None => (kind, Count::One),
        Some((kind, "")) => (kind, Count::Rest),
        Some((kind, count)) => (kind, counted(count)),
    };
    let (kind, size) = kind.split_at_checked(1)?;
    Some(Field { name, place: place.parse().ok()?, kind: *kind.as_bytes().first()?, size: size.parse().ok()?, count })
}

fn counted(count: &'static str) -> Count {
    match count.split_once('%') {
        Some((count, bits)) => Count::Bits(count, bits),
        None => count.parse().map_or(Count::By(count), Count::Fixed),
    }
}

/// All known fields, each as `name value`, separated by [`SEPARATOR`].
pub fn text(message: &Message<'_>) -> String {
    let reader = FieldReader::of(message);
    let mut out = match message.kind {
        Kind::Setup => reader.greeting(),
        kind => TABLE.get(&key(kind, message.name)).map_or_else(|| reader.plain(), |fields| reader.list(fields)),
    };
    if message.bytes.len() as u64 != message.length && out.len() < MAX_TEXT_BYTES {
        add(&mut out, "(captured)", &format!("the first {} of {} bytes", message.bytes.len(), message.length));
    }
    out
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Layout(&'static [Field]);

impl Layout {
    /// The layout of the request with this name; empty if it is unknown.
    pub fn of(name: &str) -> Layout {
        let found = TABLE.iter().find(|((letter, known), _)| (*letter, *known) == ("q", name));
        Layout(found.map_or(&[], |(_, fields)| fields.as_slice()))
    }

    /// Clears the unused bytes, in which libraries may send old contents of their buffers.
    pub fn clear_unused(&self, order: ByteOrder, request: &mut [u8]) {
        let mut ranges = Vec::new();
        self.each_unused(&FieldReader { bytes: request, order, shift: 0 }, request.len(), |range| ranges.push(range));
        for range in ranges {
            request.get_mut(range).into_iter().for_each(|bytes| bytes.fill(0));
        }
    }

    /// Calls `each` with the unused bytes.
    pub fn unused(&self, request: &Message<'_>, mut each: impl FnMut(&[u8])) {
        let length = usize::try_from(request.length).unwrap_or(usize::MAX);
        let bytes = |range: Range<usize>| request.bytes.get(range).unwrap_or_default();
        self.each_unused(&FieldReader::of(request), length, |range| each(bytes(range)));
    }

    /// Finds the bytes between fields, and the padding behind the last one.
    fn each_unused(&self, reader: &FieldReader<'_>, length: usize, mut each: impl FnMut(Range<usize>)) {
        let mut end = HEAD_BYTES + reader.shift;
        for field in self.0 {
            let (place, count) = (reader.place(field), reader.elements(field, self.0).unwrap_or(usize::MAX));
            let range = place..place.saturating_add(count.saturating_mul(field.size));
            end = end.max(range.end);
            if field.kind == UNUSED {
                each(range);
            }
        }
        // More bytes than padding belong to fields that the table leaves out.
        if (1..4).contains(&length.saturating_sub(end)) {
            each(end..length);
        }
    }
}

/// Key of the message in [`TABLE`].
fn key(kind: Kind, name: &str) -> (&'static str, &str) {
    match kind {
        Kind::Request => ("q", name),
        Kind::Reply => ("r", name),
        Kind::SetupReply => ("s", "SetupReply"),
        Kind::Error => ("s", "Error"),
        _ => ("e", name),
    }
}

struct FieldReader<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    /// Long requests have four more bytes, with their length, before the fields.
    shift: usize,
}

impl<'a> FieldReader<'a> {
    fn of(message: &Message<'a>) -> FieldReader<'a> {
        let order = message.order();
        let is_long = message.kind == Kind::Request && order.u16(message.bytes, 2) == Some(0);
        FieldReader { bytes: message.bytes, order, shift: if is_long { 4 } else { 0 } }
    }

    /// The connection setup without the authorization data.
    fn greeting(&self) -> String {
        let mut out = String::new();
        let short = |place| usize::from(self.order.u16(self.bytes, place).unwrap_or(0));
        add(&mut out, "protocol", &format!("{}.{}", short(2), short(4)));
        let name = self.bytes.get(12..12 + short(6)).unwrap_or_default();
        add(&mut out, "authorization", &quoted(name));
        add(&mut out, "secret", &format!("({} bytes, not shown)", short(8)));
        out
    }

    fn list(&self, fields: &[Field]) -> String {
        let mut out = String::new();
        for field in fields.iter().filter(|field| field.kind != UNUSED) {
            if out.len() > MAX_TEXT_BYTES {
                add(&mut out, "(more)", "omitted");
                break;
            }
            match self.value(field, fields) {
                Some(value) => add(&mut out, field.name, &value),
                None => break,
            }
        }
        out
    }

    fn plain(&self) -> String {
        let mut out = String::new();
        let shown = &self.bytes[..self.bytes.len().min(MAX_BYTES)];
        let bytes: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        add(&mut out, "bytes", &bytes.join(" "));
        out
    }

    fn place(&self, field: &Field) -> usize {
        field.place + if field.place >= 4 { self.shift } else { 0 }
    }

    fn value(&self, field: &Field, fields: &[Field]) -> Option<String> {
        let place = self.place(field);
        if let Count::One = field.count {
            return Some(shown(field.kind, field.size, self.number(place, field.size)?));
        }
        let count = self.elements(field, fields)?;
        let rest = self.bytes.get(place..)?;
        let count = count.min(rest.len() / field.size.max(1));
        if field.kind == b's' || field.size == 1 && is_text(&rest[..count]) {
            return Some(quoted(&rest[..count]));
        }
        let values: Option<Vec<String>> = (0..count.min(MAX_NUMBERS))
            .map(|at| Some(shown(field.kind, field.size, self.number(place + at * field.size, field.size)?)))
            .collect();
        let more = if count > MAX_NUMBERS { format!(" … ({count})") } else { String::new() };
        Some(format!("[{}{more}]", values?.join(" ")))
    }

    fn elements(&self, field: &Field, fields: &[Field]) -> Option<usize> {
        Some(match field.count {
            Count::One => 1,
            Count::Fixed(count) => count,
            Count::By(name) => self.named(name, fields)?,
            Count::Bits(count, bits) => self.named(count, fields)?.saturating_mul(self.named(bits, fields)? / 8),
            Count::Rest => usize::MAX,
        })
    }

    fn named(&self, name: &str, fields: &[Field]) -> Option<usize> {
        let field = fields.iter().find(|field| field.name == name)?;
        self.number(self.place(field), field.size).map(|value| value as usize)
    }

    fn number(&self, place: usize, size: usize) -> Option<u64> {
        match size {
            1 => self.bytes.get(place).map(|&byte| u64::from(byte)),
            2 => self.order.u16(self.bytes, place).map(u64::from),
            4 => self.order.u32(self.bytes, place).map(u64::from),
            _ => self.order.u64(self.bytes, place),
        }
    }
}

fn add(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push(SEPARATOR);
    }
    let _ = write!(out, "{name} {value}");
}

fn shown(kind: u8, size: usize, value: u64) -> String {
    let unused = 64 - 8 * size.clamp(1, 8);
    match kind {
        b'x' => format!("{value:#x}"),
        b'i' => (((value << unused) as i64) >> unused).to_string(),
        b'b' => (value != 0).to_string(),
        _ => value.to_string(),
    }
}

/// True for printable letters, including zeros that separate or end C strings.
fn is_text(bytes: &[u8]) -> bool {
    bytes.len() >= 3 && bytes[0] != 0 && bytes.iter().all(|&byte| byte == 0 || (b' '..=b'~').contains(&byte))
}

fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LETTERS)]);
    let text: String = text.chars().map(|letter| if letter.is_control() { '·' } else { letter }).collect();
    format!("\"{text}\"{}", if bytes.len() > MAX_LETTERS { " …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(kind: Kind, name: &'a str, bytes: &'a [u8], is_little_endian: bool) -> Message<'a> {
        Message {
            kind,
            sequence: 1,
            name,
            major: 0,
            minor: 0,
            has_reply: false,
            offset: 0,
            length: bytes.len() as u64,
            first_ns: 0,
            last_ns: 0,
            is_little_endian,
            bytes,
        }
    }

    #[test]
    fn fields_have_their_names_in_both_byte_orders() {
        let little = [16, 1, 4, 0, 7, 0, 0, 0, b'W', b'M', b'_', b'N', b'A', b'M', b'E', 0];
        let big = [16, 1, 0, 4, 0, 7, 0, 0, b'W', b'M', b'_', b'N', b'A', b'M', b'E', 0];
        let expected = "only_if_exists true\tname_len 7\tname \"WM_NAME\"";
        assert_eq!(text(&message(Kind::Request, "InternAtom", &little, true)), expected);
        assert_eq!(text(&message(Kind::Request, "InternAtom", &big, false)), expected);
    }

    #[test]
    fn fields_of_a_long_request_follow_its_length() {
        let mut bytes = vec![72, 2, 0, 0, 9, 0, 0, 0];
        bytes.extend([7, 0, 0x40, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0xff, 0xff, 0, 0, 0, 24, 0, 0]);
        bytes.extend([1, 2, 3, 200]);
        let said = text(&message(Kind::Request, "PutImage", &bytes, true));
        assert!(said.starts_with("format 2\tdrawable 0x400007\tgc 0x0\twidth 3\theight 4\tdst_x -1"), "{said}");
        assert!(said.ends_with("data [1 2 3 200]"), "{said}");
    }

    #[test]
    fn bytes_without_meaning_are_unused() {
        let unused = |name, bytes: &[u8]| {
            let mut all = Vec::new();
            Layout::of(name).unused(&message(Kind::Request, name, bytes, true), |unused| all.push(unused.to_vec()));
            all
        };
        assert_eq!(unused("GetKeyboardMapping", &[101, 7, 2, 0, 8, 248, 1, 2]), [vec![7], vec![1, 2]]);
        let list = [49, 9, 3, 0, 5, 0, 3, 0, b'a', b'b', b'*', 4];
        assert_eq!(unused("ListFonts", &list), [vec![9], vec![4]]);
    }

    #[test]
    fn the_cookie_is_not_shown() {
        let mut bytes = vec![b'l', 0, 11, 0, 0, 0, 18, 0, 16, 0, 0, 0];
        bytes.extend(b"MIT-MAGIC-COOKIE-1\0\0SECRETSECRETSECR");
        let said = text(&message(Kind::Setup, "Setup", &bytes, true));
        assert!(said.contains("MIT-MAGIC-COOKIE-1") && said.contains("16 bytes") && !said.contains("SECR"), "{said}");
    }

    #[test]
    fn truncated_long_and_unknown_messages_have_short_texts() {
        let bytes: Vec<u8> = (0..4000_u32).map(|at| (at * 7) as u8).collect();
        for kind in [Kind::Setup, Kind::SetupReply, Kind::Request, Kind::Reply, Kind::Event, Kind::Error] {
            for &(_, name) in TABLE.keys() {
                for length in [0, 1, 7, 33, 4000] {
                    let said = text(&message(kind, name, &bytes[..length], true));
                    assert!(said.len() < MAX_TEXT_BYTES + 500, "{name}: {}", said.len());
                }
            }
        }
    }
}
