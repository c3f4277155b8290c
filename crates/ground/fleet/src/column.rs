// SPDX-License-Identifier: MIT
//! Kinds of columns, and the collection of rows' fields into columns.
//!
//! There are only four kinds, which all readers interpret alike. Unsigned numbers are avoided because some readers
//! widen them, and nanoseconds since 1970 because some readers refuse them. Durations are whole nanoseconds.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};
use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Number,
    /// An instant, in microseconds since 1970, UTC.
    Time,
    Flag,
}

impl ColumnKind {
    /// Name of the SQL type.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Text => "VARCHAR",
            ColumnKind::Number => "BIGINT",
            ColumnKind::Time => "TIMESTAMP",
            ColumnKind::Flag => "BOOLEAN",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub is_optional: bool,
    pub about: &'static str,
}

impl Column {
    pub(crate) const fn of<F: CellValue>(name: &'static str, about: &'static str) -> Column {
        Column { name, kind: F::KIND, is_optional: F::IS_OPTIONAL, about }
    }

    /// The column in the schema of a Parquet file.
    pub(crate) fn field(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical, converted) = match self.kind {
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), ConvertedType::UTF8),
            ColumnKind::Number => (Physical::INT64, None, ConvertedType::NONE),
            ColumnKind::Time => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (Physical::INT64, Some(logical), ConvertedType::TIMESTAMP_MICROS)
            }
            ColumnKind::Flag => (Physical::BOOLEAN, None, ConvertedType::NONE),
        };
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(self.name, physical).with_repetition(repetition);
        Ok(Arc::new(builder.with_logical_type(logical).with_converted_type(converted).build()?))
    }
}

/// An instant, in microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub i64);

impl Instant {
    pub fn of_unix_ns(ns: i64) -> Instant {
        Instant(ns.div_euclid(1000))
    }
}

/// A row's value for one column.
pub trait CellValue {
    const KIND: ColumnKind;
    const IS_OPTIONAL: bool = false;

    /// Appends the value to a column of its kind; has no effect on any other column.
    fn add_to(&self, cells: &mut Cells);

    /// Sets a number; has no effect on other kinds.
    fn set(&mut self, _: i64) {}
}

impl CellValue for &str {
    const KIND: ColumnKind = ColumnKind::Text;

    fn add_to(&self, cells: &mut Cells) {
        if let Values::Text { values, known } = &mut cells.values {
            // Names repeat often, and cloning a known one only increments a reference count.
            let value = match known.get(*self) {
                Some(value) => value.clone(),
                None => known.entry((*self).to_owned()).or_insert(ByteArray::from(*self)).clone(),
            };
            values.push(value);
            cells.levels.push(1);
        }
    }
}

impl CellValue for i64 {
    const KIND: ColumnKind = ColumnKind::Number;

    fn set(&mut self, value: i64) {
        *self = value;
    }

    fn add_to(&self, cells: &mut Cells) {
        if let Values::Numbers(values) = &mut cells.values {
            values.push(*self);
            cells.levels.push(1);
        }
    }
}

impl CellValue for Instant {
    const KIND: ColumnKind = ColumnKind::Time;

    fn add_to(&self, cells: &mut Cells) {
        self.0.add_to(cells);
    }
}

impl CellValue for bool {
    const KIND: ColumnKind = ColumnKind::Flag;

    fn add_to(&self, cells: &mut Cells) {
        if let Values::Flags(values) = &mut cells.values {
            values.push(*self);
            cells.levels.push(1);
        }
    }
}

impl<F: CellValue> CellValue for Option<F> {
    const KIND: ColumnKind = F::KIND;
    const IS_OPTIONAL: bool = true;

    fn add_to(&self, cells: &mut Cells) {
        match self {
            Some(value) => value.add_to(cells),
            None => cells.levels.push(0),
        }
    }
}

/// Values of a column that have not been written yet.
#[derive(Debug)]
pub struct Cells {
    values: Values,
    /// For each row: 1 for a value, 0 for null.
    levels: Vec<i16>,
    is_optional: bool,
}

#[derive(Debug)]
enum Values {
    Text { values: Vec<ByteArray>, known: HashMap<String, ByteArray> },
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
}

impl Cells {
    pub(crate) fn of(column: &Column) -> Cells {
        let values = match column.kind {
            ColumnKind::Text => Values::Text { values: Vec::new(), known: HashMap::new() },
            ColumnKind::Number | ColumnKind::Time => Values::Numbers(Vec::new()),
            ColumnKind::Flag => Values::Flags(Vec::new()),
        };
        Cells { values, levels: Vec::new(), is_optional: column.is_optional }
    }

    /// Writes the values and removes them.
    pub(crate) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = take(&mut self.levels);
        let levels = self.is_optional.then_some(levels.as_slice());
        match &mut self.values {
            Values::Text { values, known } => {
                known.clear();
                column.typed::<ByteArrayType>().write_batch(&take(values), levels, None)
            }
            Values::Numbers(values) => column.typed::<Int64Type>().write_batch(&take(values), levels, None),
            Values::Flags(values) => column.typed::<BoolType>().write_batch(&take(values), levels, None),
        }
        .map(drop)
    }
}
