//! Columns of a table, described once: the name in CSV, the heading, the unit and the cell of a row. CSV and text are made of them.
//!
//! Elsewhere: JSON, which is the rows themselves; fitting a table to a screen (`cli`).

use std::borrow::Borrow;
use std::io;

use plumb_formats::csv::{field, io_error};
use serde_json::Value;

use crate::duration::{short_time, time};

/// The quantity in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number or a name.
    Plain,
    /// A weight: each table of people shows it in its own way, as a share or as a mean.
    Weight,
    /// Nanoseconds.
    Time,
    /// Nanoseconds, also few of them.
    ShortTime,
}

/// A column of rows `R`.
pub struct Column<R> {
    /// Name in CSV.
    pub key: &'static str,
    /// Heading in text; empty: the column is not in text.
    pub heading: &'static str,
    /// Quantity.
    pub unit: Unit,
    /// Cell of a row; null: unknown.
    pub value: fn(&R) -> Value,
}

impl<R> Column<R> {
    /// Creates a column of CSV alone.
    pub const fn new(key: &'static str, value: fn(&R) -> Value) -> Self {
        Self { key, heading: "", unit: Unit::Plain, value }
    }

    /// Creates a column of CSV and of text.
    pub const fn headed(
        key: &'static str,
        heading: &'static str,
        unit: Unit,
        value: fn(&R) -> Value,
    ) -> Self {
        Self { key, heading, unit, value }
    }

    /// Returns a cell as text, `-` where nothing is known. `weight` is how the table shows a weight.
    pub fn text(&self, row: &R, weight: impl Fn(u64) -> String) -> String {
        match (self.unit, (self.value)(row)) {
            (_, Value::Null) => "-".into(),
            (Unit::Weight, value) => weight(value.as_u64().unwrap_or(0)),
            (Unit::Time, value) => time(value.as_f64().unwrap_or(0.0)),
            (Unit::ShortTime, value) => short_time(value.as_f64().unwrap_or(0.0)),
            (Unit::Plain, Value::String(text)) => text,
            (Unit::Plain, value) => value.to_string(),
        }
    }
}

/// Returns the columns with these keys, in the order of the keys, which spaces separate.
pub fn chosen<'c, R>(columns: &'c [Column<R>], keys: &str) -> Vec<&'c Column<R>> {
    keys.split(' ').filter_map(|key| columns.iter().find(|column| column.key == key)).collect()
}

/// Writes rows as CSV, below a head.
pub fn write_csv<R>(columns: &[impl Borrow<Column<R>>], rows: &[R], out: impl io::Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|column| column.borrow().key)).map_err(io_error)?;
    for row in rows {
        let cells = columns.iter().map(|column| match (column.borrow().value)(row) {
            Value::String(text) => field(&text).into_owned().into(),
            value => value,
        });
        csv.serialize(cells.collect::<Vec<Value>>()).map_err(io_error)?;
    }
    csv.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_description_makes_csv_and_text() {
        let columns: [Column<(&str, Option<u64>)>; 3] = [
            Column::new("name", |row| row.0.into()),
            Column::headed("weight", "Share", Unit::Weight, |row| row.1.into()),
            Column::headed("mean_ns", "Mean", Unit::Time, |row| {
                row.1.map(|weight| weight as f64 / 2.0).into()
            }),
        ];
        let rows = [("=a", Some(3_000_000)), ("b,c", None)];
        let mut bytes = Vec::new();
        write_csv(&columns, &rows, &mut bytes).unwrap();
        let csv = String::from_utf8(bytes).unwrap();
        assert_eq!(csv, "name,weight,mean_ns\n\\x3da,3000000,1500000.0\n\"b,c\",,\n");
        let shown = |row| -> Vec<String> {
            let columns = chosen(&columns, "mean_ns weight").into_iter();
            columns.map(|column| column.text(row, |weight| format!("{weight} of all"))).collect()
        };
        assert_eq!(shown(&rows[0]), ["1.50 ms", "3000000 of all"]);
        assert_eq!(shown(&rows[1]), ["-", "-"]);
    }
    /// A closed reader, as with `head`.
    struct Gone;

    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Lines that fit into the writer's buffer fail as it is emptied, others as they are written.
    #[test]
    fn a_closed_reader_is_told_from_other_errors() {
        let columns: [Column<u64>; 1] = [Column::new("number", |row| (*row).into())];
        for count in [1, 100_000] {
            let rows: Vec<u64> = (0..count).collect();
            let error = write_csv(&columns, &rows, Gone).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{count} rows: {error}");
        }
    }
}
