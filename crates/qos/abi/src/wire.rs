// SPDX-License-Identifier: MIT
//! The encoding of values in messages, and the macros that turn the tables in `protocol` into types.
//!
//! A table gives each field's type and size in bytes; fields follow each other without gaps. Encoding and decoding use
//! the same row, so they cannot disagree. Nothing panics on any input.

use crate::bytes::{ByteReader, ByteWriter, Malformed};
use xqos_x11::ByteOrder;
use xqos_x11::codes::REPLY;
use xqos_x11::length::UNIT_BYTES;

/// A value that takes `BYTES` bytes of a message.
pub(crate) trait WireField<const BYTES: usize>: Sized {
    fn put(&self, out: &mut ByteWriter);
    fn get(read: &mut ByteReader<'_>) -> Result<Self, Malformed>;
}

/// A value that takes one word of a message.
pub(crate) trait Word: Copy {
    fn word(self) -> u32;
    /// `None` if the word is not valid.
    fn from_word(word: u32) -> Option<Self>;
}

impl<T: Word> WireField<4> for T {
    fn put(&self, out: &mut ByteWriter) {
        out.number(self.word().to_ne_bytes());
    }

    fn get(read: &mut ByteReader<'_>) -> Result<T, Malformed> {
        let word = u32::from_ne_bytes(read.number()?);
        T::from_word(word).ok_or(Malformed::Value(word))
    }
}

macro_rules! word {
    ($($type:ty: $value:ident => $to:expr, $word:ident => $of:expr;)*) => {$(
        impl Word for $type {
            fn word(self) -> u32 {
                let $value = self;
                $to
            }

            fn from_word($word: u32) -> Option<$type> {
                $of
            }
        }
    )*};
}

word! {
    u32: number => number, word => Some(word);
    i32: number => number as u32, word => Some(word as i32);
    bool: is => is.into(), word => [false, true].get(word as usize).copied();
    xqos_core::PolicyKind: kind => kind.code().into(), word => Self::from_code(u8::try_from(word).ok()?);
}

impl WireField<8> for u64 {
    fn put(&self, out: &mut ByteWriter) {
        out.number(self.to_ne_bytes());
    }

    fn get(read: &mut ByteReader<'_>) -> Result<u64, Malformed> {
        Ok(u64::from_ne_bytes(read.number()?))
    }
}

impl WireField<8> for i64 {
    fn put(&self, out: &mut ByteWriter) {
        (*self as u64).put(out);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<i64, Malformed> {
        Ok(u64::get(read)? as i64)
    }
}

impl WireField<32> for [u32; 8] {
    fn put(&self, out: &mut ByteWriter) {
        self.iter().for_each(|number| number.put(out));
    }

    fn get(read: &mut ByteReader<'_>) -> Result<[u32; 8], Malformed> {
        let mut numbers = [0; 8];
        for number in &mut numbers {
            *number = u32::get(read)?;
        }
        Ok(numbers)
    }
}

/// Text padded with at least one zero, so that C code finds the end.
impl<const BYTES: usize> WireField<BYTES> for String {
    fn put(&self, out: &mut ByteWriter) {
        let end = out.len() + BYTES;
        out.raw(cut_to(self, BYTES - 1).as_bytes()).pad_to(end);
    }

    fn get(read: &mut ByteReader<'_>) -> Result<String, Malformed> {
        let bytes = read.bytes(BYTES)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(BYTES);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// Truncates a text at a character boundary so that it fits.
pub(crate) fn cut_to(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

/// Declares modules of constants for the bits of a word.
macro_rules! bits {
    ($($(#[$meta:meta])* $name:ident { $($bit:ident = $value:literal),* })*) => {$(
        $(#[$meta])*
        pub mod $name {
            $(pub const $bit: u32 = $value;)*
            pub const ALL: u32 = 0 $(| $value)*;
        }
    )*};
}

/// Declares enumerations that take one word.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $item:ident = $code:literal),* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $item = $code),* }

        impl $name {
            pub const ALL: [$name; [$($code),*].len()] = [$($name::$item),*];
        }

        impl Default for $name {
            fn default() -> $name {
                Self::ALL[0]
            }
        }

        impl $crate::wire::Word for $name {
            fn word(self) -> u32 {
                self as u32
            }

            fn from_word(word: u32) -> Option<$name> {
                Self::ALL.into_iter().find(|&item| item as u32 == word)
            }
        }
    )*};
}

/// The requests by minor opcode. The last word of a row says whether there is a reply.
macro_rules! requests {
    ($($(#[$meta:meta])* $minor:literal $name:ident $({ $($field:ident: $type:ty [$bytes:literal]),* })? $replies:literal;)*) => {
        /// A request of the extension, with checked length and enumerations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request { $($(#[$meta])* $name $({ $($field: $type),* })?),* }

        /// The names of the requests by minor opcode, and whether they have a reply.
        pub const REQUESTS: &[(&str, bool)] = &[$((stringify!($name), $replies)),*];

        /// The length of each request in bytes, by minor opcode.
        pub(crate) const LENGTHS: &[usize] = &[$(4 $($(+ $bytes)*)?),*];

        impl Request {
            /// Parses a whole request including its header.
            pub fn parse(bytes: &[u8], order: ByteOrder) -> Result<Request, Malformed> {
                let &minor = bytes.get(1).ok_or(Malformed::Length)?;
                if bytes.len() != *LENGTHS.get(usize::from(minor)).ok_or(Malformed::Opcode)? {
                    return Err(Malformed::Length);
                }
                #[allow(unused_mut, unused_variables)]
                let mut read = ByteReader::new(bytes, order, 4);
                Ok(match minor {
                    $($minor => Request::$name $({ $($field: WireField::<$bytes>::get(&mut read)?),* })?,)*
                    _ => return Err(Malformed::Opcode),
                })
            }

            /// Like [`encode`](Self::encode), but in a given byte order, to test clients with a different byte order.
            pub fn encode_as(&self, major_opcode: u8, order: ByteOrder) -> Vec<u8> {
                let minor = self.minor();
                let mut out = ByteWriter::new(order);
                out.raw(&[major_opcode, minor]).number((LENGTHS[usize::from(minor)] as u16 / 4).to_ne_bytes());
                match self {
                    $(Request::$name $({ $($field),* })? => { $($(WireField::<$bytes>::put($field, &mut out);)*)? })*
                }
                out.finish()
            }

            pub fn minor(&self) -> u8 {
                match self { $(Request::$name { .. } => $minor),* }
            }
        }
    };
}

/// The settings, by their code on the wire.
macro_rules! settings {
    ($($(#[$meta:meta])* $code:literal $name:ident($type:ty [$bytes:literal]) {
        $($subject:ident: $initial:expr),*
    };)*) => {
        words! {
            /// The kind of a setting.
            SettingKind { $($(#[$meta])* $name = $code),* }
        }

        /// A setting with its value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Setting { $($(#[$meta])* $name($type)),* }

        impl SettingKind {
            /// The initial value of this setting, which Clear restores. `None` if the subject has no such setting.
            pub fn initial(self, subject: Subject) -> Option<Setting> {
                match (self, subject) {
                    $($((SettingKind::$name, Subject::$subject { .. }) => Some(Setting::$name($initial)),)*)*
                    _ => None,
                }
            }
        }

        impl Setting {
            pub fn kind(&self) -> SettingKind {
                match self { $(Setting::$name(_) => SettingKind::$name),* }
            }
        }

        /// Encoded as the code and the value, padded to the longest value.
        impl WireField<36> for Setting {
            fn put(&self, out: &mut ByteWriter) {
                let end = out.len() + 36;
                self.kind().put(out);
                match self { $(Setting::$name(value) => WireField::<$bytes>::put(value, out)),* }
                out.pad_to(end);
            }

            fn get(read: &mut ByteReader<'_>) -> Result<Setting, Malformed> {
                let kind = SettingKind::get(read)?;
                let mut value = read.part(32)?;
                Ok(match kind { $(SettingKind::$name => Setting::$name(WireField::<$bytes>::get(&mut value)?)),* })
            }
        }
    };
}

/// Structures in replies.
macro_rules! entries {
    ($($(#[$meta:meta])* $name:ident [$size:literal] { $($field:ident: $type:ty [$bytes:literal]),* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: $type),* }

        impl WireField<$size> for $name {
            fn put(&self, out: &mut ByteWriter) {
                let end = out.len() + $size;
                $(WireField::<$bytes>::put(&self.$field, out);)*
                out.pad_to(end);
            }

            fn get(read: &mut ByteReader<'_>) -> Result<$name, Malformed> {
                let mut read = read.part($size)?;
                Ok($name { $($field: WireField::<$bytes>::get(&mut read)?),* })
            }
        }
    )*};
}

/// Replies: the data byte next to the type, the fields from offset 8 on, then the entries of a list.
macro_rules! replies {
    ($($(#[$meta:meta])* $name:ident [$end:literal] $(($data:ident: $word:ty))? {
        $($field:ident: $type:ty [$bytes:literal]),*
    } $([$list:ident: $entry:ident $size:literal])?)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(pub $data: $word,)?
            $(pub $field: $type,)*
            $(pub $list: Vec<$entry>,)?
        }

        impl $name {
            pub fn encode(&self, sequence: u16, order: ByteOrder) -> Vec<u8> {
                let data = 0 $(+ self.$data.word())?;
                let mut out = $crate::wire::reply(data, sequence, order);
                $(
                    (self.$list.len() as u32).put(&mut out);
                    ($size as u32).put(&mut out);
                )?
                $(WireField::<$bytes>::put(&self.$field, &mut out);)*
                out.pad_to($end);
                $(self.$list.iter().for_each(|entry| WireField::<$size>::put(entry, &mut out));)?
                $crate::wire::finish(out, order)
            }

            pub fn decode(bytes: &[u8], order: ByteOrder) -> Result<$name, Malformed> {
                #[allow(unused_mut)]
                let mut read = ByteReader::new(bytes, order, 8);
                $(let $list: Vec<$entry> = $crate::wire::list::<$entry, $size>(bytes, order, &mut read)?;)?
                Ok($name {
                    $($data: $crate::wire::second_byte(bytes)?,)?
                    $($field: WireField::<$bytes>::get(&mut read)?,)*
                    $($list,)?
                })
            }
        }
    )*};
}

/// The event: the kind is next to the type, the fields start at offset 4.
macro_rules! event {
    ($(#[$meta:meta])* $name:ident ($kind:ident: $word:ty) { $($field:ident: $type:ty [$bytes:literal]),* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { pub $kind: $word, $(pub $field: $type),* }

        impl $name {
            pub fn encode(&self, event_base: u8, sequence: u16, order: ByteOrder) -> [u8; 32] {
                let mut out = ByteWriter::new(order);
                out.raw(&[event_base, self.$kind.word() as u8]).number(sequence.to_ne_bytes());
                $(WireField::<$bytes>::put(&self.$field, &mut out);)*
                out.finish().try_into().unwrap_or([0; 32])
            }

            pub fn decode(bytes: &[u8], order: ByteOrder) -> Result<$name, Malformed> {
                let mut read = ByteReader::new(bytes, order, 4);
                Ok($name {
                    $kind: $crate::wire::second_byte(bytes)?,
                    $($field: WireField::<$bytes>::get(&mut read)?),*
                })
            }
        }
    };
}

pub(crate) fn reply(data: u32, sequence: u16, order: ByteOrder) -> ByteWriter {
    let mut out = ByteWriter::new(order);
    out.raw(&[REPLY, data as u8]).number(sequence.to_ne_bytes()).number(0_u32.to_ne_bytes());
    out
}

pub(crate) fn second_byte<T: Word>(bytes: &[u8]) -> Result<T, Malformed> {
    let &byte = bytes.get(1).ok_or(Malformed::Length)?;
    T::from_word(byte.into()).ok_or(Malformed::Value(byte.into()))
}

/// Fills in the length of a reply: the number of words after the first 32 bytes.
pub(crate) fn finish(out: ByteWriter, order: ByteOrder) -> Vec<u8> {
    let mut bytes = out.finish();
    let words = (bytes.len() - UNIT_BYTES) as u32 / 4;
    order.put_u32(&mut bytes, 4, words);
    bytes
}

/// Reads a list: the number of entries, their distance in bytes, and the entries from offset 32 on.
pub(crate) fn list<T: WireField<BYTES>, const BYTES: usize>(
    bytes: &[u8],
    order: ByteOrder,
    read: &mut ByteReader<'_>,
) -> Result<Vec<T>, Malformed> {
    let (count, size) = (u32::get(read)?, u32::get(read)? as usize);
    let mut entries = ByteReader::new(bytes, order, UNIT_BYTES);
    // Entries from a newer server may be longer; their additional bytes are skipped.
    (0..count).map(|_| T::get(&mut entries.part(size)?)).collect()
}
