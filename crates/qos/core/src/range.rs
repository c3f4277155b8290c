// SPDX-License-Identifier: MIT
//! The type of the entries in `setting`, and the macro that turns its table into constants.

use core::ops::RangeInclusive;

/// The unit in which commands print a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Micros,
    Hundredths,
    Millionths,
    /// In millionths on the wire.
    Percent,
    Whole,
}

/// The values of a setting, in the unit of the wire. 0 is also valid where it has a meaning of its own.
#[derive(Debug)]
pub struct Range<T: 'static = u32> {
    pub least: T,
    pub most: T,
    /// The least value that commands accept.
    pub typed: T,
    pub initial: T,
    /// Words that commands accept, with their values.
    pub words: &'static [(&'static str, T)],
    pub unit: Unit,
    /// The step of the values, for the error message "... is finer than ...".
    pub finer: &'static str,
    /// The accepted values, for the error message "... is not ..."; only the accepted words if the value is a time.
    pub wanted: &'static str,
    /// The help of the command line option.
    pub help: &'static str,
}

impl<T: Copy + PartialOrd> Range<T> {
    /// The values that the extension accepts.
    pub const fn all(&self) -> RangeInclusive<T> {
        self.least..=self.most
    }

    pub fn contains(&self, value: T) -> bool {
        self.all().contains(&value)
    }

    /// The value of a word.
    pub fn value_of(&self, word: &str) -> Option<T> {
        self.words.iter().find(|(known, _)| *known == word).map(|&(_, value)| value)
    }

    /// The word for a value.
    pub fn word_for(&self, value: T) -> Option<&'static str> {
        self.words.iter().find(|(_, of)| *of == value).map(|&(word, _)| word)
    }

    /// The values that commands accept.
    pub const fn typed(&self) -> RangeInclusive<T> {
        self.typed..=self.most
    }
}

macro_rules! ranges {
    ($(
        $name:ident $unit:ident: $type:ty = $least:literal..=$most:literal, $typed:literal, $initial:literal,
            [$($words:expr),*] $(finer $finer:literal)? $(wanted $wanted:literal)? $(help $help:literal)?;
    )*) => {$(
        pub const $name: Range<$type> = Range {
            least: $least,
            most: $most,
            typed: $typed,
            initial: $initial,
            words: &[$($words),*],
            unit: Unit::$unit,
            finer: concat!($($finer)?),
            wanted: concat!($($wanted)?),
            help: concat!($($help)?),
        };
    )*};
}
