// SPDX-License-Identifier: MIT
//! A name in a request or reply: at most 31 bytes of text, padded with zeros to 32 so that C code finds the end.

use crate::bytes::{ByteReader, ByteWriter, Malformed};
use crate::wire::WireField;

pub const LABEL_BYTES: usize = 32;

/// The short name of a group or of a setting's origin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label([u8; LABEL_BYTES]);

impl Label {
    /// The longest prefix of a text that fits and ends between two characters, without control characters.
    pub fn new(text: &str) -> Label {
        let mut bytes = [0; LABEL_BYTES];
        let mut end = 0;
        for character in text.chars().filter(|character| !character.is_control()) {
            if end + character.len_utf8() >= LABEL_BYTES {
                break;
            }
            end += character.encode_utf8(&mut bytes[end..]).len();
        }
        Label(bytes)
    }

    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(LABEL_BYTES);
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl WireField<LABEL_BYTES> for Label {
    fn put(&self, out: &mut ByteWriter) {
        out.raw(&self.0);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<Label, Malformed> {
        let text: String = WireField::<LABEL_BYTES>::get(read)?;
        Ok(Label::new(&text))
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_x11::ByteOrder;

    #[test]
    fn names_keep_whole_characters_and_drop_control_characters() {
        assert_eq!(Label::new("rule players").as_str(), "rule players");
        assert_eq!(Label::new(&"ü".repeat(40)).as_str(), "ü".repeat(15));
        assert_eq!(Label::new("a\nb\0c").as_str(), "abc");
        let read = |mut bytes: Vec<u8>| {
            bytes.resize(LABEL_BYTES, 0);
            Label::get(&mut ByteReader::new(&bytes, ByteOrder::NATIVE, 0)).unwrap()
        };
        assert_eq!(read(b"x\0y".to_vec()).as_str(), "x");
        assert_eq!(read(vec![0xff; 40]).as_str(), "\u{fffd}".repeat(10));
        assert!(read(vec![]).is_empty());
    }
}
