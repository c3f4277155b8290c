// SPDX-License-Identifier: MIT
//! Tables of a file, and the mistakes found in it so far.
//!
//! The offsets of lines are computed once, so that the line of a mistake is found quickly even if there are many.

use crate::setting::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use xqos_text::mistake::{Mistake, clean};
use xqos_text::nearest::nearest;

/// Maximum number of mistakes reported for one file.
const MAX_REPORTED: usize = 20;

/// The known keys of a table, with their values.
pub(crate) type KnownKeys<'a, 'i> = BTreeMap<&'a str, &'a Spanned<DeValue<'i>>>;

/// The text being parsed, and the mistakes in it.
pub(crate) struct Diagnostics<'t> {
    file: Arc<str>,
    text: &'t str,
    /// Offset of the start of each line.
    lines: Vec<usize>,
    mistakes: Vec<Mistake>,
    omitted: usize,
}

impl<'t> Diagnostics<'t> {
    pub(crate) fn new(file: &str, text: &'t str) -> Diagnostics<'t> {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Diagnostics { file: file.into(), text, lines, mistakes: Vec::new(), omitted: 0 }
    }

    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    pub(crate) fn file(&self) -> Arc<str> {
        self.file.clone()
    }

    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|&begin| begin <= at)
    }

    pub(crate) fn error(&mut self, at: Range<usize>, what: impl Into<String>) {
        let line = self.line(at.start);
        self.add(line, what.into());
    }

    pub(crate) fn file_error(&mut self, what: String) {
        self.add(0, what);
    }

    fn add(&mut self, line: usize, what: String) {
        match self.mistakes.len() < MAX_REPORTED {
            true => self.mistakes.push(Mistake { file: self.file.clone(), line, what }),
            false => self.omitted += 1,
        }
    }

    pub(crate) fn has_mistakes(&self) -> bool {
        !self.mistakes.is_empty()
    }

    /// Returns true if further mistakes would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.omitted > 0
    }

    /// The parsed value, or the mistakes if there are any.
    pub(crate) fn finish<T>(mut self, read: Option<T>) -> Result<T, Vec<Mistake>> {
        self.mistakes.sort_by_key(|mistake| mistake.line);
        if self.omitted > 0 {
            self.mistakes.push(Mistake::in_file(&self.file, "there are more mistakes: fix these first"));
        }
        match read {
            Some(read) if self.mistakes.is_empty() => Ok(read),
            _ => Err(self.mistakes),
        }
    }

    /// The known keys of a table; other keys are mistakes. `what` is the table's name in messages.
    pub(crate) fn table<'a, 'i>(&mut self, table: &'a DeTable<'i>, what: &str, known: &[&str]) -> KnownKeys<'a, 'i> {
        let mut found = KnownKeys::new();
        for (key, value) in table {
            let word: &str = key.get_ref();
            if known.contains(&word) {
                found.insert(word, value);
                continue;
            }
            if self.is_full() {
                break;
            }
            let hint = match nearest(word, known) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("choose among {}", known.join(", ")),
            };
            self.error(key.span(), format!("{what} has no key '{}': {hint}", clean(word)));
        }
        found
    }

    /// Like `table`, for a value that must be a table.
    pub(crate) fn sub_table<'a, 'i>(
        &mut self,
        value: &'a Spanned<DeValue<'i>>,
        what: &str,
        known: &[&str],
    ) -> Option<KnownKeys<'a, 'i>> {
        match value.get_ref().as_table() {
            Some(table) => Some(self.table(table, what, known)),
            None => {
                self.error(value.span(), format!("{what} is a table of keys and values, such as {{ key = value }}"));
                None
            }
        }
    }

    /// The value of a key that must be present. `owner` is the range of the table, for the error message.
    pub(crate) fn required<'a, 'i>(
        &mut self,
        table: &KnownKeys<'a, 'i>,
        owner: Range<usize>,
        key: &str,
        advice: &str,
    ) -> Option<&'a Spanned<DeValue<'i>>> {
        let value = table.get(key).copied();
        if value.is_none() {
            self.error(owner, format!("{key} is missing: {advice}"));
        }
        value
    }

    /// Reads a text or a list of texts, each with its range.
    pub(crate) fn words<'a>(
        &mut self,
        key: &str,
        value: &'a Spanned<DeValue<'_>>,
    ) -> Option<Vec<(Range<usize>, &'a str)>> {
        let parts = match value.get_ref() {
            DeValue::Array(parts) => parts.iter().collect(),
            _ => vec![value],
        };
        if parts.is_empty() {
            self.error(
                value.span(),
                format!("{key}: an empty list matches no client: leave the key out, or add a value"),
            );
            return None;
        }
        let mut words = Vec::with_capacity(parts.len());
        for part in &parts {
            match part.get_ref().as_str() {
                Some(word) => words.push((part.span(), word)),
                None => self.error(part.span(), format!("{key} is a text in quotes, or a list of texts")),
            }
        }
        (words.len() == parts.len()).then_some(words)
    }
}

pub(crate) fn value_of<'a>(value: &'a DeValue<'_>) -> Value<'a> {
    match value {
        DeValue::String(text) => Value::Text(text),
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str()),
        DeValue::Float(number) => Value::Number(number.as_str()),
        DeValue::Boolean(on) => Value::Switch(*on),
        other => Value::Other(other.type_str()),
    }
}
