// SPDX-License-Identifier: MIT
//! A table that is defined column by column: name, value of a sample, statistic over a row's samples, and format.
//!
//! A row can be of any type. For [`Row`], a case with its samples, there are methods for the usual columns.

use super::{Table, figure, percent, spread_figure};
use crate::statistics::Spread;

/// A table to which columns are added one by one.
#[derive(Clone, Debug)]
pub struct Columns<R> {
    rows: Vec<R>,
    table: Table,
}

/// A case and its samples, one for each turn.
#[derive(Clone, Debug)]
pub struct Row<'a, T> {
    pub name: String,
    pub samples: Vec<&'a T>,
}

impl<'a, T> Row<'a, T> {
    pub fn new(name: impl Into<String>, samples: impl IntoIterator<Item = &'a T>) -> Row<'a, T> {
        Row { name: name.into(), samples: samples.into_iter().collect() }
    }

    pub fn spread(&self, value: impl Fn(&T) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(|sample| value(sample)))
    }
}

impl<R> Columns<R> {
    pub fn of(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Columns<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let table = Table { rows: vec![Vec::new(); rows.len()], ..Table::new(title, &[]) };
        Columns { rows, table }
    }

    pub fn cell(mut self, name: impl Into<String>, cell: impl Fn(&R) -> String) -> Columns<R> {
        self.table.head.push(name.into());
        for (row, line) in self.rows.iter().zip(&mut self.table.rows) {
            line.push(cell(row));
        }
        self
    }

    pub fn table(self) -> Table {
        self.table
    }
}

impl<T> Columns<Row<'_, T>> {
    /// A table with only the rows that have samples.
    pub fn of_measured<'a>(
        title: impl Into<String>,
        rows: impl IntoIterator<Item = Row<'a, T>>,
    ) -> Columns<Row<'a, T>> {
        Columns::of(title, rows.into_iter().filter(|row| !row.samples.is_empty()))
    }

    /// The names of the cases, usually the first column.
    pub fn name(self, name: &str) -> Self {
        self.cell(name, |row| row.name.clone())
    }

    pub fn median(self, name: impl Into<String>, value: impl Fn(&T) -> f64) -> Self {
        self.cell(name, |row| figure(row.spread(&value).median))
    }

    pub fn max(self, name: impl Into<String>, value: impl Fn(&T) -> f64) -> Self {
        self.cell(name, |row| figure(row.spread(&value).greatest))
    }

    /// The median of fractions, as a percentage.
    pub fn percent(self, name: impl Into<String>, value: impl Fn(&T) -> f64) -> Self {
        self.cell(name, |row| percent(row.spread(&value).median))
    }

    /// The median with its range.
    pub fn spread(self, name: impl Into<String>, value: impl Fn(&T) -> f64) -> Self {
        self.cell(name, |row| spread_figure(&row.spread(&value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_its_own_statistic_and_format() {
        let table = Columns::of_measured("title", [Row::new("stock", &[0.1, 0.2, 0.6]), Row::new("fair", &[])])
            .name("case")
            .median("median", |value| *value)
            .max("worst", |value| *value)
            .percent("part", |value| *value)
            .spread("spread", |value| *value)
            .cell("count", |row| row.samples.len().to_string())
            .table();
        assert_eq!(table.head, ["case", "median", "worst", "part", "spread", "count"]);
        assert_eq!(table.rows, [["stock", "0.200", "0.600", "20 %", "0.200 (0.100 .. 0.600)", "3"]]);
    }
}
