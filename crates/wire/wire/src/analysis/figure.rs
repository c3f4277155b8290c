// SPDX-License-Identifier: MIT
//! Figures, each declared once: its JSON key, how it is read, and how tables, comparisons and limits show it.
//!
//! The end of a key shows the unit. The figures of a session are the sums of its connections' figures.

use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Count,
    Bytes,
    Seconds,
    BytesPerSecond,
}

/// Parts of a figure, by the names of messages.
pub type Amounts = Vec<(String, f64)>;

#[derive(Debug)]
pub struct Figure<T: 'static> {
    /// JSON key.
    pub key: &'static str,
    /// `None` if it is unknown, or not a number.
    pub of: fn(&T) -> Option<f64>,
    /// Column of tables; without a title, the figure is only in JSON. Columns of the largest rank are left out first.
    pub title: &'static str,
    pub rank: u8,
    /// Name among the states of the CSV; empty if it is not one of them.
    pub state: &'static str,
    /// Position and name in comparisons; no name if it is not compared.
    pub position: u8,
    pub compared: &'static str,
    /// Name of its limit; empty if it cannot be limited.
    pub limit: &'static str,
    pub parts: fn(&T) -> Amounts,
}

impl<T> Figure<T> {
    pub const fn new(key: &'static str, of: fn(&T) -> Option<f64>) -> Figure<T> {
        let parts: fn(&T) -> Amounts = |_| Amounts::new();
        Figure { key, of, title: "", rank: 0, state: "", position: u8::MAX, compared: "", limit: "", parts }
    }

    pub fn unit(&self) -> Unit {
        match self.key {
            key if key.ends_with("bytes_per_s") => Unit::BytesPerSecond,
            key if key.ends_with("_s") || key == "seconds" => Unit::Seconds,
            key if key.ends_with("bytes") => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    /// The text in a table.
    pub fn text(&self, of: &T) -> String {
        let text = |value| match self.unit() {
            Unit::Seconds => format!("{value:.3}"),
            Unit::BytesPerSecond => (value as u64 / 1000).to_string(),
            Unit::Count | Unit::Bytes => format!("{value}"),
        };
        (self.of)(of).map(text).unwrap_or_default()
    }
}

/// A value that can be summed.
pub trait Value: Default {
    fn merge(&mut self, other: &Self);

    /// A structure returns its first number, and a list returns the sum of its elements.
    fn number(&self) -> Option<f64> {
        None
    }
}

/// A structure of figures.
pub trait Declared: Sized + 'static {
    const FIGURES: &'static [Figure<Self>];

    /// The figures with a position in comparisons or a limit, in the order of comparisons.
    fn compared() -> Vec<&'static Figure<Self>> {
        let mut figures: Vec<_> =
            Self::FIGURES.iter().filter(|it| !it.compared.is_empty() || !it.limit.is_empty()).collect();
        figures.sort_by_key(|figure| figure.position);
        figures
    }

    fn figure(key: &str) -> Option<&'static Figure<Self>> {
        Self::FIGURES.iter().find(|figure| figure.key == key)
    }
}

/// An element of a list, in which names occur once.
pub trait NamedRow: Value + Declared + Clone {
    fn name(&self) -> &str;

    /// Order in the list: the longest time first.
    fn order(&self, other: &Self) -> Ordering {
        let seconds = |row: &Self| Self::figure("seconds").and_then(|figure| (figure.of)(row)).unwrap_or_default();
        seconds(other).total_cmp(&seconds(self)).then_with(|| self.name().cmp(other.name()))
    }
}

/// Merges rows of equal names.
pub fn merge_rows<T: NamedRow>(sums: &mut Vec<T>, others: &[T]) {
    for other in others {
        match sums.iter_mut().find(|sum| sum.name() == other.name()) {
            Some(sum) => sum.merge(other),
            None => sums.push(other.clone()),
        }
    }
    sums.sort_by(NamedRow::order);
}

/// Declares a structure of figures: a JSON key and a type for each, then fields of its [`Figure`]. With `of`, each also
/// has an expression that reads it.
macro_rules! figures {
    ($(#[$about:meta])* $name:ident of $it:ident: $from:ty;
     $($(#[$meta:meta])* $key:ident: $type:ty $({ $($field:ident: $shown:expr),* })? => $value:expr;)*) => {
        $crate::analysis::figure::figures! {
            $(#[$about])* $name;
            $($(#[$meta])* $key: $type $({ $($field: $shown),* })?;)*
        }

        impl $name {
            fn read($it: &$from) -> $name {
                $name { $($key: $value),* }
            }
        }
    };
    ($(#[$about:meta])* $name:ident;
     $($(#[$meta:meta])* $key:ident: $type:ty $({ $($field:ident: $shown:expr),* })?;)*) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        pub struct $name {
            $($(#[$meta])* pub $key: $type,)*
        }

        impl $crate::analysis::figure::Declared for $name {
            const FIGURES: &'static [$crate::analysis::figure::Figure<$name>] = &[$($crate::analysis::figure::Figure {
                $($($field: $shown,)*)?
                ..$crate::analysis::figure::Figure::new(stringify!($key), |it: &$name| {
                    $crate::analysis::figure::Value::number(&it.$key)
                })
            }),*];
        }

        impl $crate::analysis::figure::Value for $name {
            fn merge(&mut self, other: &$name) {
                $($crate::analysis::figure::Value::merge(&mut self.$key, &other.$key);)*
            }

            fn number(&self) -> Option<f64> {
                <$name as $crate::analysis::figure::Declared>::FIGURES.iter().find_map(|figure| (figure.of)(self))
            }
        }
    };
}
pub(crate) use figures;

impl Value for u64 {
    fn merge(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }

    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl Value for f64 {
    fn merge(&mut self, other: &f64) {
        *self += other;
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

/// A number whose values are merged by their maximum, not by their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Largest(pub u64);

impl Value for Largest {
    fn merge(&mut self, other: &Largest) {
        *self = Largest(self.0.max(other.0));
    }

    fn number(&self) -> Option<f64> {
        self.0.number()
    }
}

/// The name of a row.
impl Value for String {
    fn merge(&mut self, _: &String) {}
}

impl<T: Value + Clone> Value for Option<T> {
    fn merge(&mut self, other: &Option<T>) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }

    fn number(&self) -> Option<f64> {
        self.as_ref()?.number()
    }
}

impl<T: NamedRow> Value for Vec<T> {
    fn merge(&mut self, other: &Vec<T>) {
        merge_rows(self, other);
    }

    fn number(&self) -> Option<f64> {
        Some(self.iter().filter_map(T::number).sum())
    }
}

impl<K: Clone + Ord, T: Value> Value for BTreeMap<K, T> {
    fn merge(&mut self, other: &BTreeMap<K, T>) {
        for (name, other) in other {
            self.entry(name.clone()).or_default().merge(other);
        }
    }

    fn number(&self) -> Option<f64> {
        Some(self.values().filter_map(T::number).sum())
    }
}
