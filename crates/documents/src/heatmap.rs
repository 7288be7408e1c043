//! Subsecond-offset heat map: weights by second and by offset in it. Activity at the same offset of every second is a line, with a period of
//! 1.1 s a slope, and permanent activity fills the picture.
//!
//! Invariant: the weights of all columns and `untimed` add up to the weight of all samples passed in. Elsewhere: the choice of the samples.

use plumb_analyze::View;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Default number of rows: 20 ms each.
pub const ROWS: usize = 50;
/// Most rows of a heat map.
pub const MOST_ROWS: usize = 1000;
/// Default limit of the number of columns.
pub const COLUMNS: usize = 600;

/// Weights by time and by offset within the second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heatmap {
    /// Start of the first column: a whole second. 0 if no sample has a time.
    pub start_ns: u64,
    /// Length of a column in whole seconds, whose weights are summed.
    pub column_ns: u64,
    /// Length of a row; the last one is shorter if it does not divide a second.
    pub row_ns: u64,
    /// Weights by column and row, lowest offset first.
    pub columns: Vec<Vec<u64>>,
    /// Weight of samples without a time of their own.
    pub untimed: u64,
}

impl Heatmap {
    /// Creates the map of samples, given as time in nanoseconds (`None` if the sample has no time of its own) and weight. Seconds start at multiples
    /// of 10⁹ ns: pass times since 1970 for seconds of the wall clock.
    ///
    /// `rows` is clamped to 1 to [`MOST_ROWS`]; columns are as many seconds long as needed to have at most `most_columns`, at least 1.
    pub fn new<I>(samples: I, rows: usize, most_columns: usize) -> Self
    where
        I: Iterator<Item = (Option<u64>, u64)> + Clone,
    {
        let row_ns = SECOND.div_ceil(rows.clamp(1, MOST_ROWS) as u64);
        let rows = SECOND.div_ceil(row_ns) as usize;
        let seconds = || samples.clone().filter_map(|(time, _)| Some(time? / SECOND));
        let (first, last) = (seconds().min().unwrap_or(0), seconds().max());
        let span = last.map_or(0, |last| last - first + 1);
        let of_column = span.div_ceil(most_columns.max(1) as u64).max(1);
        let columns = span.div_ceil(of_column) as usize;
        let mut map = Self {
            start_ns: first * SECOND,
            column_ns: of_column.saturating_mul(SECOND),
            row_ns,
            columns: vec![vec![0; rows]; columns],
            untimed: 0,
        };
        for (time, weight) in samples {
            let cell = match time {
                None => &mut map.untimed,
                Some(time) => {
                    let column = (time / SECOND - first) / of_column;
                    &mut map.columns[column as usize][(time % SECOND / row_ns) as usize]
                }
            };
            *cell = cell.saturating_add(weight);
        }
        map
    }

    /// Creates the map of a view's samples. Seconds are those of the wall clock if the recording knows it, otherwise they start with the recording.
    /// `is_timed`: whether samples have times of their own, which they lack if identical stacks were aggregated.
    pub fn of_view(view: &View<'_>, is_timed: bool, rows: usize, most_columns: usize) -> Self {
        let meta = &view.profile().meta;
        let time = |time_ns: u64| meta.start_unix_ns.saturating_add(time_ns.saturating_sub(meta.start_ns));
        let samples: Vec<(Option<u64>, u64)> = view
            .samples()
            .map(|kept| (is_timed.then(|| time(kept.sample.time_ns)), kept.sample.weight))
            .collect();
        Self::new(samples.into_iter(), rows, most_columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole second of 2023.
    const START: u64 = 1_700_000_000 * SECOND;

    fn times(map: &Heatmap) -> Vec<(usize, usize, u64)> {
        let cells = map.columns.iter().enumerate().flat_map(|(column, rows)| {
            rows.iter().enumerate().map(move |(row, &weight)| (column, row, weight))
        });
        cells.filter(|&(_, _, weight)| weight > 0).collect()
    }

    #[test]
    fn what_runs_every_second_at_one_offset_is_a_line() {
        let series = (1..=120).map(|second| (Some(START + second * SECOND + 250_000_000), 7));
        let map = Heatmap::new(series, ROWS, COLUMNS);
        assert_eq!((map.start_ns, map.column_ns, map.row_ns), (1_700_000_001 * SECOND, SECOND, 20_000_000));
        // 0.25 s is in the row from 0.24 s to 0.26 s, in each of 120 seconds.
        assert_eq!(times(&map), (0..120).map(|column| (column, 12, 7)).collect::<Vec<_>>());
        // A period of 1.02 s is a slope: one row further in each column.
        let series = (0..20).map(|number| (Some(number * 1_020_000_000), 1));
        let slope = (0..20).map(|number| (number, number, 1)).collect::<Vec<_>>();
        assert_eq!(times(&Heatmap::new(series, ROWS, COLUMNS)), slope);
    }

    #[test]
    fn a_long_time_has_columns_of_several_seconds_and_loses_nothing() {
        let series = (0..3601).map(|second| (Some(second * SECOND), 2)).chain([(None, 5), (None, 6)]);
        let map = Heatmap::new(series, ROWS, 600);
        assert_eq!((map.columns.len(), map.column_ns, map.untimed), (515, 7 * SECOND, 11));
        assert_eq!(map.columns.iter().flatten().sum::<u64>(), 7202);
        assert!(map.columns.iter().all(|rows| rows.len() == 50 && rows[1..].iter().all(|&row| row == 0)));
    }

    #[test]
    fn odd_requests_have_an_answer() {
        let none = Heatmap::new(std::iter::empty(), 0, 0);
        assert_eq!((none.columns.len(), none.column_ns, none.row_ns), (0, SECOND, SECOND));
        let untimed = Heatmap::new([(None, 3)].into_iter(), ROWS, COLUMNS);
        assert_eq!((untimed.columns.len(), untimed.untimed), (0, 3));
        let far = Heatmap::new([(Some(0), 1), (Some(u64::MAX), u64::MAX)].into_iter(), 7, 600);
        assert!(far.columns.len() <= 600 && far.columns[0].len() == 7);
        assert_eq!(far.columns.iter().flatten().copied().max(), Some(u64::MAX));
    }
}
