// SPDX-License-Identifier: MIT
//! Fields: figures of a client or a server, each declared once with its JSON key, title, column, metric and help.
//! Lists, screens, `--json`, `--help`, the exporter and docs/fields.md look them up here.
//!
//! Fields are declared in order of importance. Tables that are too wide for the terminal drop columns from the end.

use serde::ser::{Serialize, SerializeMap, Serializer};
use xqos_text::escape::printable;
use xqos_text::table::{Column, TextTable};
use xqos_text::time::of_ms;
use xqos_text::width::{Align, padded, wrapped};

/// Labels for figures of the last interval, and for figures since the client connected.
pub const LAST: &str = "last";
pub const EVER: &str = "ever";

/// Number of leading columns that are always shown.
const ALWAYS: usize = 4;
const WIDTH: usize = 80;

#[derive(Debug)]
pub struct Field<T> {
    /// JSON key, with a dot between an object and its member; empty if the field is not in JSON.
    pub key: &'static str,
    pub help: &'static str,
    pub value: fn(&T) -> Value,
    /// Empty if the field is only in JSON.
    pub title: &'static str,
    pub place: FieldView,
    metric: Option<(&'static str, MetricKind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldView {
    /// Only the details of one client.
    Detail,
    /// Tables, and the details of one client.
    Column { width: u16, align: Align, is_elastic: bool, span: &'static str },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Flag(bool),
    Text(String),
    Count(i64),
    Number(f64),
    /// Per second.
    Rate(f64),
    /// A share between 0 and 1.
    Share(f64),
    /// Nanoseconds. JSON has milliseconds, metrics have seconds.
    Time(f64),
    /// A JSON value and its text.
    Other(serde_json::Value, String),
    /// A value for JSON only.
    Hidden(Box<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    /// A gauge. Several clients are combined by taking the maximum.
    Gauge,
    /// A gauge. Several clients are combined by taking the sum.
    Sum,
    /// A histogram of waits with the bounds of [`WAIT_BOUNDS_NS`](xqos_core::WAIT_BOUNDS_NS).
    Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name that ends in the unit, without the kind's suffix.
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
}

/// Declares a table of fields; with `as JSON`, also their serialization. Each row has a key, method calls that add the
/// views and the metric, a help text and an expression for the value.
#[macro_export]
macro_rules! fields {
    ($(#[$about:meta])* $public:vis const $name:ident of $it:ident: $of:ty $(as $json:ident)?;
     $($key:literal $($method:ident($($argument:expr),*))*: $help:literal => $value:expr;)*) => {
        $(#[$about])*
        $public const $name: &[$crate::field::Field<$of>] = &[$(
            $crate::field::Field::new($key, $help, |$it: &$of| $value)$(.$method($($argument),*))*
        ),*];
        $(impl serde::Serialize for $of {
            fn serialize<$json: serde::Serializer>(&self, to: $json) -> Result<$json::Ok, $json::Error> {
                let object = $crate::field::Object { fields: $name, of: self, within: String::new() };
                serde::Serialize::serialize(&object, to)
            }
        })?
    };
}
pub use fields;

impl<T> Field<T> {
    pub const fn new(key: &'static str, help: &'static str, value: fn(&T) -> Value) -> Field<T> {
        Field { key, help, value, title: "", place: FieldView::Detail, metric: None }
    }

    /// Shows the field in the details of one client.
    pub const fn title(self, title: &'static str) -> Field<T> {
        Field { title, ..self }
    }

    /// Shows the field as a column of numbers; `span` is the time that they cover.
    pub const fn number(self, title: &'static str, width: u16, span: &'static str) -> Field<T> {
        Field { title, place: FieldView::Column { width, align: Align::Right, is_elastic: false, span }, ..self }
    }

    pub const fn words(self, title: &'static str, width: u16) -> Field<T> {
        Field { title, place: FieldView::Column { width, align: Align::Left, is_elastic: false, span: "" }, ..self }
    }

    /// Shows the field as a column of words, which may be shortened and takes the remaining width.
    pub const fn elastic(self, title: &'static str, width: u16, span: &'static str) -> Field<T> {
        Field { title, place: FieldView::Column { width, align: Align::Left, is_elastic: true, span }, ..self }
    }

    pub const fn counter(self, name: &'static str) -> Field<T> {
        Field { metric: Some((name, MetricKind::Counter)), ..self }
    }

    pub const fn gauge(self, name: &'static str) -> Field<T> {
        Field { metric: Some((name, MetricKind::Gauge)), ..self }
    }

    pub const fn sum(self, name: &'static str) -> Field<T> {
        Field { metric: Some((name, MetricKind::Sum)), ..self }
    }

    pub fn text(&self, of: &T) -> String {
        (self.value)(of).text()
    }

    pub fn number_of(&self, of: &T) -> Option<f64> {
        (self.value)(of).number()
    }
}

pub fn metrics<T>(fields: &[Field<T>]) -> impl Iterator<Item = (Metric, &Field<T>)> {
    fields.iter().filter_map(|field| field.metric.map(|(name, kind)| (Metric { name, kind, help: field.help }, field)))
}

/// Fields with a column in which at least one row has a value; if there are no rows, all fields with a column.
pub fn shown<'a, T>(fields: &'a [Field<T>], rows: &[&T]) -> impl Iterator<Item = &'a Field<T>> {
    let says = move |field: &&Field<T>| rows.is_empty() || rows.iter().any(|row| !field.text(row).is_empty());
    fields.iter().filter(|field| field.place != FieldView::Detail).filter(says)
}

pub fn table<T>(fields: &[Field<T>], rows: &[&T]) -> TextTable {
    let fields: Vec<&Field<T>> = shown(fields, rows).collect();
    let column = |(at, field): (usize, &&Field<T>)| {
        let (right, elastic) = match field.place {
            FieldView::Column { align, is_elastic, .. } => (align == Align::Right, is_elastic),
            FieldView::Detail => (false, false),
        };
        Column { title: field.title, right, rank: if at < ALWAYS { 0 } else { at as u8 }, elastic }
    };
    let mut table = TextTable::new(fields.iter().enumerate().map(column).collect());
    rows.iter().for_each(|row| table.row(fields.iter().map(|field| field.text(row)).collect()));
    table
}

/// The help of columns, in lines of at most `width`.
pub fn columns_help<T>(fields: &[Field<T>], width: usize) -> String {
    let lines = |field: &Field<T>| match field.place {
        FieldView::Column { span, .. } if !span.is_empty() => {
            explained(field.title, &format!("{} ({span})", field.help), width)
        }
        _ => explained(field.title, field.help, width),
    };
    shown(fields, &[]).flat_map(lines).map(|line| line + "\n").collect()
}

/// A word with its explanation to the right, in lines of at most `width`.
pub fn explained(word: &str, text: &str, width: usize) -> Vec<String> {
    const WORDS: usize = 17;
    let texts = wrapped(text, width.saturating_sub(WORDS)).into_iter().enumerate();
    texts.map(|(at, text)| padded(if at == 0 { word } else { "" }, WORDS, Align::Left) + &text).collect()
}

/// JSON keys, each with its help or the title of its column.
pub fn json_help<T>(what: &str, fields: &[Field<T>]) -> String {
    let keys = fields.iter().filter(|field| !field.key.is_empty());
    let about = |field: &Field<T>| if field.place == FieldView::Detail { field.help } else { field.title };
    let keys: Vec<String> = keys.map(|field| format!("{} ({})", field.key, about(field))).collect();
    wrapped(&format!("{what}: {}.", keys.join(", ")), WIDTH).join("\n") + "\n"
}

/// A JSON object of the fields whose keys begin with `within`.
#[derive(Debug)]
pub struct Object<'a, T> {
    pub fields: &'a [Field<T>],
    pub of: &'a T,
    pub within: String,
}

impl<T> Serialize for Object<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Object { fields, of, within } = self;
        let members = || fields.iter().filter_map(|field| Some((field, field.key.strip_prefix(within.as_str())?)));
        if !within.is_empty() && members().all(|(field, _)| (field.value)(of).is_null()) {
            return to.serialize_unit();
        }
        let mut map = to.serialize_map(None)?;
        let mut objects: Vec<&str> = Vec::new();
        for (field, key) in members().filter(|(_, key)| !key.is_empty()) {
            match key.split_once('.') {
                None => map.serialize_entry(key, &(field.value)(of))?,
                Some((object, _)) if objects.contains(&object) => {}
                Some((object, _)) => {
                    objects.push(object);
                    map.serialize_entry(object, &Object { fields, of, within: format!("{within}{object}.") })?;
                }
            }
        }
        map.end()
    }
}

pub fn time(ns: u64) -> Value {
    Value::Time(ns as f64)
}

pub fn time_of_us(us: u32) -> Value {
    Value::Time(f64::from(us) * 1e3)
}

pub fn time_of_ms(ms: f64) -> Value {
    Value::Time(ms * 1e6)
}

/// Converts from millionths.
pub fn part(ppm: u32) -> Value {
    Value::Number(f64::from(ppm) / 1e6)
}

pub fn count(count: impl TryInto<i64>) -> Value {
    Value::Count(count.try_into().unwrap_or(i64::MAX))
}

impl Value {
    /// This value, or [`Value::None`] if the condition does not hold.
    pub fn when(self, holds: bool) -> Value {
        if holds { self } else { Value::None }
    }

    fn is_null(&self) -> bool {
        matches!(self, Value::None | Value::Other(serde_json::Value::Null, _))
    }

    /// Hides a value of 0 from tables.
    pub fn if_any(self) -> Value {
        let is_any = self.number() != Some(0.0);
        self.shown_if(is_any)
    }

    pub fn shown_if(self, holds: bool) -> Value {
        if holds { self } else { Value::Hidden(Box::new(self)) }
    }

    pub fn or_none<A>(value: Option<A>, make: impl FnOnce(A) -> Value) -> Value {
        value.map_or(Value::None, make)
    }

    pub fn text(&self) -> String {
        match self {
            Value::None | Value::Flag(false) | Value::Hidden(_) => String::new(),
            Value::Flag(true) => "yes".to_owned(),
            Value::Text(text) | Value::Other(_, text) => printable(text),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Rate(rate) => of_rate(*rate),
            Value::Share(share) => format!("{:.1}%", share * 100.0),
            Value::Time(ns) => of_ms(ns / 1e6),
        }
    }

    /// The number for metrics and for sorting; `None` for text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::None | Value::Text(_) | Value::Other(..) => None,
            Value::Flag(is) => Some(f64::from(u8::from(*is))),
            Value::Count(count) => Some(*count as f64),
            Value::Number(number) | Value::Rate(number) | Value::Share(number) => Some(*number),
            Value::Time(ns) => Some(ns / 1e9),
            Value::Hidden(value) => value.number(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::None => to.serialize_unit(),
            Value::Flag(is) => to.serialize_bool(*is),
            Value::Text(text) => to.serialize_str(text),
            Value::Count(count) => to.serialize_i64(*count),
            Value::Number(number) | Value::Rate(number) | Value::Share(number) => to.serialize_f64(*number),
            Value::Time(ns) => to.serialize_f64(ns / 1e6),
            Value::Other(json, _) => json.serialize(to),
            Value::Hidden(value) => value.serialize(to),
        }
    }
}

/// Formats a rate in at most six characters.
fn of_rate(rate: f64) -> String {
    match rate {
        below if below < 10.0 => format!("{rate:.1}"),
        below if below < 1e4 => format!("{rate:.0}"),
        below if below < 1e7 => format!("{:.0}k", rate / 1e3),
        _ => format!("{:.0}M", rate / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::ATTACHED;
    use crate::sample::departed::DEPARTED;
    use crate::sample::{CLIENT, LONGEST, SERVER};
    use std::path::Path;

    const END: &str = "<!-- end of table -->\n";

    #[test]
    fn rates_fit_their_columns() {
        for number in [0.0, 9.94, 500.0, 9_999.0, 1e6, 5e7] {
            assert!(of_rate(number).len() <= 6, "{}", of_rate(number));
        }
    }

    #[test]
    fn metrics_are_distinct_and_end_in_their_unit() {
        let of_client = metrics(CLIENT).map(|(metric, field)| (metric.name, field.key));
        let all: Vec<_> = of_client.chain(metrics(SERVER).map(|(metric, field)| (metric.name, field.key))).collect();
        for (name, key) in &all {
            let is_time = key.ends_with("_ms") || key.ends_with(".ms");
            assert_eq!(name.ends_with("_seconds"), is_time, "{name}: {key}");
            assert_eq!(all.iter().filter(|(other, _)| other == name).count(), 1, "{name}");
        }
    }

    fn lines<T>(fields: &[Field<T>]) -> String {
        let quoted = |name: String| if name.is_empty() { name } else { format!("`{name}`") };
        let line = |field: &Field<T>| {
            let metric = field.metric.map(|(name, kind)| match kind {
                MetricKind::Counter => format!("{name}_total"),
                _ => name.to_owned(),
            });
            let [key, metric] = [field.key.to_owned(), metric.unwrap_or_default()].map(quoted);
            format!("| {key} | {} | {metric} | {} |\n", field.title, field.help).replace("  ", " ")
        };
        format!("| JSON | title | metric | what |\n|---|---|---|---|\n{}", fields.iter().map(line).collect::<String>())
    }

    /// `XQOS_WRITE=1 cargo test -p xqos-agent fields` updates the document.
    #[test]
    fn the_document_has_the_fields() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/fields.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut made = text.clone();
        for (name, lines) in [
            ("server", lines(SERVER)),
            ("clients", lines(CLIENT)),
            ("departed", lines(DEPARTED)),
            ("longest_requests", lines(LONGEST)),
            ("attached", lines(ATTACHED)),
        ] {
            let begin = format!("<!-- fields: {name} -->\n");
            let (before, rest) = made.split_once(&begin).expect(name);
            let (_, after) = rest.split_once(END).expect(name);
            made = format!("{before}{begin}{lines}{END}{after}");
        }
        if std::env::var_os("XQOS_WRITE").is_some() {
            std::fs::write(&path, made).unwrap();
            return;
        }
        assert!(made == text, "docs/fields.md is out of date: run XQOS_WRITE=1 cargo test -p xqos-agent fields");
    }
}
