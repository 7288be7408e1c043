//! The series and profiles of a block, which every query looks at first.

use parquet::errors::ParquetError;

use super::schema::BlockTable;
use super::table_reader::TableReader;
use crate::batch::Millis;
use crate::labels::{LabelTexts, Labels};

/// A profile in a block. Its samples are adjacent rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProfileRow {
    pub series: u32,
    pub time: Millis,
    /// Row of its first sample.
    pub first: usize,
    pub samples: usize,
    pub total: i64,
}

/// Series and profiles of a block.
pub(crate) struct BlockIndex {
    pub series: Vec<Labels>,
    /// Sorted by series and time.
    pub profiles: Vec<ProfileRow>,
    /// Memory that they take.
    pub bytes: usize,
}

impl BlockIndex {
    /// Reads the tables of series and of profiles.
    pub fn read(series: &TableReader, profiles: &TableReader) -> Result<Self, (BlockTable, ParquetError)> {
        let series = read_series(series).map_err(|error| (BlockTable::Series, error))?;
        let profiles = read_profiles(profiles).map_err(|error| (BlockTable::Profiles, error))?;
        if profiles.iter().any(|profile| profile.series as usize >= series.0.len()) {
            return Err((BlockTable::Profiles, ParquetError::General("unknown series".into())));
        }
        Ok(Self::new(series, profiles))
    }

    fn new((series, text_bytes): (Vec<Labels>, usize), profiles: Vec<ProfileRow>) -> Self {
        let labels: usize = series.iter().map(|labels| size_of::<Labels>() + labels.len() * LABEL).sum();
        let bytes = text_bytes + labels + profiles.len() * size_of::<ProfileRow>();
        Self { series, profiles, bytes }
    }
}

/// Bytes of a label beside its texts: two references.
const LABEL: usize = 4 * size_of::<usize>();

/// The labels of each series, and the bytes of their texts.
fn read_series(table: &TableReader) -> Result<(Vec<Labels>, usize), ParquetError> {
    let mut texts = LabelTexts::default();
    let (names, lengths) = table.text_lists(3, &mut texts)?;
    let (values, _) = table.text_lists(4, &mut texts)?;
    let mut pairs = names.into_iter().zip(values);
    let series = lengths.iter().map(|&length| Labels::new(pairs.by_ref().take(length))).collect();
    Ok((series, texts.bytes()))
}

fn read_profiles(table: &TableReader) -> Result<Vec<ProfileRow>, ParquetError> {
    let (series, times) = (table.i32s(0)?, table.i64s(1)?);
    let (samples, totals) = (table.i32s(2)?, table.i64s(3)?);
    let mut first = 0;
    let rows = series.into_iter().zip(times).zip(samples).zip(totals);
    Ok(rows
        .map(|(((series, time), samples), total)| {
            let samples = usize::try_from(samples).unwrap_or(0);
            let row =
                ProfileRow { series: series.cast_unsigned(), time: Millis(time), first, samples, total };
            first += samples;
            row
        })
        .collect())
}
